"""A trained model that predicts, ranks, scores and embeds labels."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, graph
from coke_jax.model import ensemble
from coke_jax.predict import (
  embeddings,
  entity_methods,
  graph_methods,
  known_facts,
  questions,
  records,
  scorer,
  validation,
)
from coke_jax.predict import parser as parser_lib
from coke_jax.predict import predictor as predictor_lib
from coke_jax.shards import placement as placement_lib

Labels = questions.Labels


class Model(graph_methods.GraphMethods, entity_methods.EntityMethods):
  """A trained model and the data it was trained on.

  The first calls of a method compile programs for the devices. Later calls are
  faster. Questions are processed in batches to limit the memory.

  Examples:
    >>> model = coke_jax.load('runs/countries')
    >>> model.predict(('France', 'official_language', '?'), top=5)
    >>> model.rank([('France', 'borders', 'Spain')])
    >>> model.embed([('France', 'borders', 'Spain')]).vectors

  Attributes:
    data: labels and splits.
    max_path_length: maximum number of relations in a training path.
    parser: converts labels to ids.
    predictor: computes predictions for ids in batches.
  """

  def __init__(
    self,
    model: Any,
    params: Any,
    data: arrays.DataSet,
    max_path_length: int,
    *,
    batch_size: int = 0,
    placement: placement_lib.Placement | None = None,
  ):
    """Combines an encoder with its parameters and data.

    Use `coke_jax.load` for a model that was saved.

    Args:
      model: the Flax module, `encoder.CoKE` or `ensemble.Ensemble`.
      params: parameters of the module on the devices, see `placement`.
      data: labels and splits.
      max_path_length: maximum number of relations in a training path.
      batch_size: number of questions in a batch, over all devices. Default 0:
        the number of questions whose scores take 64 MiB on each device, but at
        least 1 and at most 1024 on each device.
      placement: how the parameters are distributed over the devices. Default:
        every device has a copy.
    """
    self.data = data
    self.max_path_length = max_path_length
    self.parser = parser_lib.Parser(data.vocabulary, max_path_length)
    self.predictor = predictor_lib.Predictor(
      scorer.Scorer(model, params, batch_size, placement), data
    )

  @property
  def encoder(self) -> ensemble.Encoder:
    """The Flax module."""
    return self.predictor.scorer.model

  @property
  def batch_size(self) -> int:
    """Number of questions in a batch, over all devices."""
    return self.predictor.scorer.batch_size

  @property
  def width(self) -> int:
    """K, the number of tokens in an input row of the encoder."""
    return self.predictor.width

  def predict(
    self,
    question: Labels | Sequence[Labels],
    *,
    top: int = 10,
    new_only: bool = False,
    exclude_own: bool = False,
    type_matching: bool = False,
    candidates: Sequence[str] | None = None,
  ) -> Any:
    """Predicts the best answers to one or several questions.

    Args:
      question: one question or several. A question for an entity has `?` as
        first or last label, such as `('France', 'borders', '?')`. It may
        contain several relations. A question for relations is
        `(head, '?', tail)`. Several questions can be in a list, array, data
        frame or generator. If the columns of a data frame have names that
        `prepare` accepts, such as `head`, `relation` and `tail`, the columns
        are read by name. Otherwise, they are read in their order.
      top: the maximum number of answers to each question.
      new_only: whether to remove answers that are known from any split.
      exclude_own: whether to remove the entity of the question from the
        answers.
      type_matching: whether to limit the answers to the known tails of the
        relation before `?`, or the known heads of the relation after `?`.
      candidates: the labels of the possible answers. Default: all entities, or
        all relations.

    Returns:
      For one question, `Records` of `Prediction`, best first. Equal scores are
      ordered by the id of the answer.
      For several questions, a list of such `Records`, one for each question.

    Raises:
      QuestionError: a label is unknown; `?` is missing or misplaced; there are
        more than `max_path_length` relations; `top` is below 1; or a question
        is for relations and `exclude_own` or `type_matching` is True.
      NonFiniteError: a score is NaN or infinite.
    """
    question = validation.materialize(question)
    listed = validation.as_list(question)
    if any(map(self.parser.is_about_relation, listed)):
      validation.check_relation_questions(
        all(map(self.parser.is_about_relation, listed)),
        exclude_own=exclude_own,
        type_matching=type_matching,
      )
      between = self._between(listed, top, new_only, candidates)
      return between[0] if validation.is_single(question) else between
    parsed = list(map(self.parser.question, listed))
    allowed = None
    if candidates is not None:
      validation.check_list('candidates', candidates)
      allowed = np.array([self.parser.entity(c) for c in candidates], np.int64)
    restriction = known_facts.Restriction(
      new_only=new_only,
      exclude_own=exclude_own,
      type_matching=type_matching,
      candidates=allowed,
    )
    answers = self.predictor.answer(parsed, top, restriction)
    return answers[0] if validation.is_single(question) else answers

  def rank(
    self,
    facts: Labels | Sequence[Labels],
    *,
    side: str = 'both',
    splits: Sequence[str] = graph.SPLITS,
    type_matching: bool = False,
  ) -> records.Records[records.Ranking]:
    """Ranks the head or tail of facts in the filtered setting.

    For triples, the default arguments give the ranks of filtered link
    prediction. For paths, `side='tail', splits=('train', 'test'),
    type_matching=True` gives the ranks from which the quantiles of the test
    split are computed.

    Args:
      facts: one or several triples or paths of labels without `?`, as in
        `predict`.
      side: the end to predict, `head`, `tail` or `both`.
      splits: the splits whose facts count as known. Facts of train always
        count.
      type_matching: whether to limit tails to the known tails of the last
        relation, and heads to the known heads of the first relation.

    Returns:
      One `Ranking` for each fact and side, ordered by fact. With `both`, the
      tail comes before the head.

    Raises:
      QuestionError: a label, side or split is unknown; a fact contains `?`; or
        a fact has more than `max_path_length` relations.
      NonFiniteError: a score is NaN or infinite.
    """
    sides = validation.sides(side)
    parsed = list(map(self.parser.fact, validation.as_list(facts)))
    validation.check_splits(splits)
    restriction = known_facts.Restriction(
      splits=tuple(splits), new_only=True, type_matching=type_matching
    )
    both = [(fact, end) for fact in parsed for end in sides]
    return self.predictor.rank(both, restriction)

  def score(
    self, facts: Labels | Sequence[Labels], *, side: str = 'tail'
  ) -> np.ndarray:
    """Computes the log-probabilities of the heads or tails of facts.

    Args:
      facts: one or N triples or paths of labels without `?`, as in `predict`.
      side: `tail`, `head`, or `both` for the mean of both log-probabilities.

    Returns:
      float32 [N]. N is 1 for a single fact.

    Raises:
      QuestionError: as in `rank`.
      NonFiniteError: a score is NaN or infinite.
    """
    sides = validation.sides(side)
    parsed = list(map(self.parser.fact, validation.as_list(facts)))
    total = np.zeros(len(parsed), dtype=np.float32)
    for end in sides:
      total += self.predictor.score(parsed, end)
    return total / np.float32(len(sides))

  def embed(
    self, sequences: Labels | Sequence[Labels], *, layer: int | None = None
  ) -> embeddings.Contextual:
    """Computes contextual embeddings of every position of sequences.

    Args:
      sequences: one or N triples or paths of labels, as in `predict`. One end
        may be `?`, which stands for a masked entity.
      layer: the number of blocks to apply, 0 to `num_layers`. 0 returns the
        input of the first block. Default: all blocks.

    Returns:
      The hidden states, float32 [N, K, D], and the tokens, int32 [N, K].

    Raises:
      QuestionError: a label is unknown, both ends are `?`, there are more
        than `max_path_length` relations, or `layer` is out of range.
      NonFiniteError: a hidden state is NaN or infinite.
    """
    parsed = map(self.parser.sequence, validation.as_list(sequences))
    tokens = self.parser.tokens(list(parsed), self.width)
    vectors = [states for _, states in self.encode(tokens, layer)]
    return embeddings.Contextual(
      vectors=np.concatenate(vectors),
      tokens=tokens,
      labels=self.data.vocabulary.token_labels,
      layer=self.num_layers if layer is None else layer,
    )

  def encode(
    self, tokens: np.ndarray, layer: int | None = None
  ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Computes hidden states batch by batch.

    Args:
      tokens: int32 [N, K] token ids, PAD on the right.
      layer: as in `embed`.

    Yields:
      Pairs of tokens, int32 [B, K], and hidden states, float32 [B, K, D]. The
      hidden states at PAD are zero. If N = 0, yields one batch without rows.

    Raises:
      QuestionError: `layer` is not between 0 and `num_layers`.
      NonFiniteError: a hidden state is NaN or infinite.
    """
    layer = self.num_layers if layer is None else layer
    if layer not in range(self.num_layers + 1):
      raise questions.QuestionError(
        f'layer is {layer}: expected 0 (the input) to {self.num_layers}'
      )
    return self.predictor.encode(tokens, layer)
