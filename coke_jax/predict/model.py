"""A trained model: predictions, ranks, scores and embeddings by label."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, graph
from coke_jax.model import encoder as encoder_lib
from coke_jax.predict import (
  embeddings,
  known_facts,
  questions,
  records,
  scorer,
  validation,
)
from coke_jax.predict import parser as parser_lib
from coke_jax.predict import predictor as predictor_lib

Labels = questions.Labels


class Model:
  """A trained model and the data it was trained on.

  The first call of each method compiles a program for the devices; later calls
  reuse it. Any number of questions is processed in batches, so that memory use
  is bounded.

  Examples:
    >>> model = coke_jax.load('runs/countries')
    >>> model.predict(('France', 'official_language', '?'), top=5)
    >>> model.rank([('France', 'borders', 'Spain')])
    >>> model.embed([('France', 'borders', 'Spain')]).vectors

  Attributes:
    data: labels and splits.
    max_path_length: relations in the longest path the model was trained on.
    parser: reads labels as ids.
    predictor: predicts for ids, batch by batch.
  """

  def __init__(
    self,
    model: Any,
    params: Any,
    data: arrays.DataSet,
    max_path_length: int,
    *,
    batch_size: int = 0,
  ):
    """Combines an encoder with its parameters and data.

    Use `coke_jax.load` for a model that was saved.

    Args:
      model: the Flax module, `encoder.CoKE`.
      params: its parameters, replicated, see `parallel.replicate`.
      data: labels and splits.
      max_path_length: relations in the longest path the model was trained on.
      batch_size: questions at a time over all devices. Default 0: as many as
        have at most 64 MiB of scores, and at most 1024, for each device.
    """
    self.data = data
    self.max_path_length = max_path_length
    self.parser = parser_lib.Parser(data.vocabulary, max_path_length)
    self.predictor = predictor_lib.Predictor(
      scorer.Scorer(model, params, batch_size), data
    )

  @property
  def encoder(self) -> encoder_lib.CoKE:
    """The Flax module."""
    return self.predictor.scorer.model

  @property
  def batch_size(self) -> int:
    """Questions that are processed at a time."""
    return self.predictor.scorer.batch_size

  @property
  def num_layers(self) -> int:
    """Blocks of the encoder."""
    layers: int = self.encoder.num_layers
    return layers

  @property
  def width(self) -> int:
    """Tokens in a row of the encoder's input, K."""
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
      question: labels with `?` first or last, such as
        `('France', 'borders', '?')`, or a list of these. There are several
        relations in a question about a path.
      top: the maximum number of answers to each question.
      new_only: whether to remove answers that are known from any split.
      exclude_own: whether to remove the entity of the question.
      type_matching: whether to limit the answers to entities that occur in a
        fact of any split on the unknown side of the relation next to `?`.
      candidates: entity labels to limit the answers to. Default: all entities.

    Returns:
      `Records` of `Prediction`, best first, equal scores ordered by entity id.
      For a list of questions, `Records` of such `Records`.

    Raises:
      QuestionError: a label is unknown, there is no `?` at one end, there are
        more relations than the model was trained on, or `top` is below 1.
      NonFiniteError: a score is NaN or infinite.
    """
    listed = validation.as_list(question)
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
    """Ranks the head or tail of facts among the entities not known as answers.

    With the defaults, the ranks of triples are those of filtered link
    prediction. For paths, `side='tail', splits=('train', 'test'),
    type_matching=True` gives the ranks from which the quantiles of the test
    split are computed.

    Args:
      facts: a triple or path of labels without `?`, or a list of these.
      side: the end to predict, `head`, `tail` or `both`.
      splits: the splits from which answers are known, in addition to train.
      type_matching: whether to limit the candidates to entities that occur in a
        known fact on the predicted side of the outermost relation.

    Returns:
      One `Ranking` for each fact and side, ordered by fact. With `both`, the
      tail comes before the head.

    Raises:
      QuestionError: a label, side or split is unknown, a fact contains `?`, or
        there are more relations than the model was trained on.
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
    """Computes the log-probability of each fact's head or tail, given the rest.

    Args:
      facts: a triple or path of labels without `?`, or a list of N of these.
      side: `tail`, `head`, or `both` for the mean of the two.

    Returns:
      float32 [N], N = 1 for one fact.

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
      sequences: a triple or path of labels, or a list of N of these. `?` at one
        end is the masked entity.
      layer: the number of blocks to apply, 0 to `num_layers`; 0 gives the input
        of the first block. Default: all.

    Returns:
      The hidden states float32 [N, K, D] and their tokens.

    Raises:
      QuestionError: a label is unknown, both ends are `?`, there are more
        relations than the model was trained on, or there is no such layer.
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

  def embed_elements(self) -> embeddings.Static:
    """Returns the static embeddings of all entities and relations."""
    vocabulary = self.data.vocabulary
    count = vocabulary.num_entities + vocabulary.num_relations
    table = np.array(self.predictor.scorer.params['element_embedding'])
    return embeddings.Static(
      vectors=table[:count],
      labels=vocabulary.token_labels[:count],
      num_entities=vocabulary.num_entities,
    )

  def encode(
    self, tokens: np.ndarray, layer: int | None = None
  ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Computes hidden states batch by batch.

    Args:
      tokens: int32 [N, K] token ids, PAD on the right.
      layer: as in `embed`.

    Yields:
      Tokens [B, K] and their hidden states float32 [B, K, D], zero at PAD. If
      N = 0, one batch without rows.

    Raises:
      QuestionError: there is no such layer.
      NonFiniteError: a hidden state is NaN or infinite.
    """
    layer = self.num_layers if layer is None else layer
    if layer not in range(self.num_layers + 1):
      raise questions.QuestionError(
        f'layer is {layer}: expected 0 (the input) to {self.num_layers}'
      )
    return self.predictor.encode(tokens, layer)
