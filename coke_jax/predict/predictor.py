"""Computes predictions for questions, facts and token sequences in batches."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, entity_sets
from coke_jax.data import queries as queries_lib
from coke_jax.predict import (
  known_facts,
  questions,
  records,
  scorer,
  validation,
)

_NO_RESTRICTION = known_facts.Restriction()

Answers = records.Records[records.Records[records.Prediction]]


class Predictor:
  """Predicts with an encoder and the known facts of its data set.

  Attributes:
    scorer: runs the encoder.
    data: labels and splits.
  """

  def __init__(self, scorer: scorer.Scorer, data: arrays.DataSet):
    self.scorer = scorer
    self.data = data
    self._known = known_facts.KnownAnswers(data)

  def with_scorer(self, scorer: scorer.Scorer) -> 'Predictor':
    """Returns a predictor with another encoder and the same known facts."""
    other = copy.copy(self)
    other.scorer = scorer
    return other

  @property
  def width(self) -> int:
    """K, the number of tokens in an input row of the encoder."""
    width: int = self.scorer.model.max_length
    return width

  def answer(
    self,
    parsed: Sequence[questions.Question],
    top: int,
    restriction: known_facts.Restriction = _NO_RESTRICTION,
  ) -> Answers:
    """Predicts the best answers to several questions.

    Args:
      parsed: the questions, see `parser.Parser.question`.
      top: the maximum number of answers to each question.
      restriction: filters the answers. Default: no filter.

    Returns:
      The answers to each question, best first.

    Raises:
      questions.QuestionError: `top` is below 1.
      errors.NonFiniteError: a score is NaN or infinite.
    """
    top = validation.whole_number('top', top, least=1)
    top = min(top, self.data.vocabulary.num_entities)
    answers: Answers = records.Records(kind=records.Prediction, nested=True)
    for batch in self._batches(parsed):
      known = self._known.by_split(batch)
      candidates = None
      if not restriction.is_none:
        candidates = self._known.candidates(batch, known, restriction)
      entities, scores = self.scorer.top_k(
        self._queries(batch), top, candidates
      )
      known_in = known_facts.first_split(known, entities)
      labels = self.data.vocabulary.entities
      answers += records.predictions(labels, entities, scores, known_in)
    return answers

  def known(
    self, parsed: list[questions.Question], split: str
  ) -> entity_sets.EntitySets:
    """Returns the answers to B questions that are known from train and a split.

    See `known_facts.KnownAnswers.answers`.
    """
    return self._known.answers(parsed, split)

  def ends(self, question: questions.Question) -> np.ndarray:
    """Returns the known heads or tails of the relation next to `?`.

    See `known_facts.KnownAnswers.ends`. All splits are used.
    """
    return self._known.ends(question)

  def rank(
    self,
    facts: Sequence[tuple[questions.Fact, str]],
    restriction: known_facts.Restriction,
  ) -> records.Records[records.Ranking]:
    """Ranks the head or tail of several facts.

    Args:
      facts: pairs of a fact and the side to predict, `head` or `tail`.
      restriction: filters the candidates.

    Returns:
      One record for each pair, in the order of the pairs.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    rankings = records.Records[records.Ranking](kind=records.Ranking)
    for batch in self._batches(facts):
      parsed = [fact.question(side) for fact, side in batch]
      gold = np.array([fact.answer(side) for fact, side in batch], np.int32)
      known = self._known.by_split(parsed)
      candidates = self._known.candidates(parsed, known, restriction)
      ranks, scores = self.scorer.rank(self._queries(parsed, gold), candidates)
      known_in = known_facts.first_split(known, gold[:, None])[:, 0]
      labels = [(fact.labels, side) for fact, side in batch]
      rankings += records.rankings(labels, ranks, scores, known_in)
    return rankings

  def score(self, facts: Sequence[questions.Fact], side: str) -> np.ndarray:
    """Computes the log-probabilities of the heads or tails of N facts.

    Args:
      facts: N facts.
      side: the side to predict, `head` or `tail`.

    Returns:
      float32 [N].

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    scores = [np.zeros(0, dtype=np.float32)]
    for batch in self._batches(facts):
      queries = self._queries(
        [fact.question(side) for fact in batch],
        np.array([fact.answer(side) for fact in batch], np.int32),
      )
      shape = (len(batch), self.data.vocabulary.num_entities)
      scores.append(self.scorer.rank(queries, np.ones(shape, dtype=bool))[1])
    return np.concatenate(scores)

  def encode(
    self, tokens: np.ndarray, layer: int
  ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Computes the hidden states of sequences.

    Args:
      tokens: int32 [N, K] token ids, PAD on the right.
      layer: the number of blocks to apply. 0 returns the input of the first
        block.

    Yields:
      Pairs of tokens, int32 [B, K], and hidden states, float32 [B, K, D]. The
      hidden states at PAD are zero. If N = 0, yields one batch without rows.

    Raises:
      errors.NonFiniteError: a hidden state is NaN or infinite.
    """
    if not len(tokens):
      shape = (*tokens.shape, self.scorer.model.hidden_size)
      yield tokens, np.zeros(shape, dtype=np.float32)
    for batch in self._batches(tokens):
      states = self.scorer.encode(batch, layer)
      real = batch != self.data.vocabulary.pad_id
      yield batch, np.where(real[..., None], states, 0)

  def _batches(self, items: Any) -> Iterator[Any]:
    """Yields slices of at most `Scorer.batch_size` items."""
    size = self.scorer.batch_size
    for start in range(0, len(items), size):
      yield items[start : start + size]

  def _queries(
    self,
    parsed: Sequence[questions.Question],
    gold: np.ndarray | None = None,
  ) -> queries_lib.Queries:
    answers = np.zeros(0, np.int32) if gold is None else gold
    return questions.to_queries(
      parsed, answers, self.data.vocabulary, self.width
    )
