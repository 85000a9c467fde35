"""A trained model for people: ask it questions by label.

    model = coke_jax.load('runs/countries')
    model.predict(('France', 'official_language', '?'), top=5)

A question is a path of labels with `?` at one end: `(head, relation, '?')`,
`('?', relation, tail)`, or with several relations in between if the model was
trained on paths.
"""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coke_jax import evaluation, parallel, tasks, trainer, training, workdir
from coke_jax.data import graph, known

UNKNOWN = '?'

Labels = Sequence[str]


class QuestionError(ValueError):
  """A question that the model cannot be asked, with the reason."""


@dataclasses.dataclass(frozen=True)
class Prediction:
  """One answer to a question.

  Attributes:
    label: the entity.
    rank: its place among the entities that were let compete, from 1.
    score: the logarithm of its probability among all entities.
    probability: the softmax over all entities.
    known_in: the first of train, valid and test whose facts (valid and test
      together with those of train) give this answer; empty if none does.
  """

  label: str
  rank: int
  score: float
  probability: float
  known_in: str


def load(folder: str | os.PathLike[str]) -> 'Model':
  """The model of a work folder, with the parameters that validated best.

  Raises:
    workdir.WorkdirError: the folder holds no run, or a damaged one.
    checkpoint.CheckpointError: it has no usable checkpoint.
  """
  place = workdir.Workdir(folder)
  config = place.config()
  task = tasks.make_task(config, place.data())
  params, _ = trainer.load_best_params(config, task, place)
  longest = 1 if task.max_length == 3 else config.data.max_path_length
  model = training.build_model(config, task.data.vocabulary, task.max_length)
  return Model(model, params, task.data, longest)


class Model:
  """A trained model and the data it was trained on.

  Attributes:
    data: labels and splits.
    max_path_length: relations in the longest question it was trained on.
  """

  def __init__(self, model: Any, params: Any, data: Any, max_path_length: int):
    self.data = data
    self.max_path_length = max_path_length
    self._model = model
    self._params = params
    self._known = known.KnownAnswers(data)
    self._batch_size = evaluation.batch_rows(model.num_entities)
    self._log_probabilities = parallel.map_devices(self._on_device)

  def predict(
    self,
    question: Labels | Sequence[Labels],
    *,
    top: int = 10,
    new_only: bool = False,
    type_matching: bool = False,
    candidates: Sequence[str] | None = None,
  ) -> Any:
    """The best answers to a question, or to each of several.

    Args:
      question: labels with `?` first or last, or a list of such.
      top: answers a question gets, at most.
      new_only: leave out answers that are known from any split.
      type_matching: only entities that are found beside the question's
        outermost relation, on this side, in some fact.
      candidates: only these entities.

    Returns:
      A list of `Prediction`, best first; a list of such lists for several
      questions. Entities of equal score come in the order of their ids.

    Raises:
      QuestionError: an unknown label, no `?` at an end, or more relations than
        the model was trained on.
    """
    if top < 1:
      raise QuestionError(f'top is {top}: expected at least 1')
    single = bool(question) and isinstance(question[0], str)
    asked = [question] if single else list(question)
    parsed = [self._parse(labels) for labels in asked]  # type: ignore[arg-type]
    allowed = None
    if candidates is not None:
      allowed = np.zeros(self._model.num_entities, dtype=bool)
      allowed[[self._entity(label) for label in candidates]] = True
    answers: list[list[Prediction]] = []
    for start in range(0, len(parsed), self._batch_size):
      part = parsed[start : start + self._batch_size]
      scores = self._score(part)
      known_masks = self._known_masks(part)
      for row, one in enumerate(part):
        competing = np.ones(scores.shape[1], dtype=bool)
        if allowed is not None:
          competing &= allowed
        if type_matching:
          ends = np.zeros_like(competing)
          ends[self._known.ends(one)] = True
          competing &= ends
        if new_only:
          for mask in known_masks.values():
            competing &= ~mask[row]
        best = _best(scores[row], competing, top)
        answers.append(
          [
            Prediction(
              label=self.data.vocabulary.entities[entity],
              rank=rank,
              score=float(scores[row, entity]),
              probability=float(np.exp(scores[row, entity])),
              known_in=next(
                (
                  split
                  for split in graph.SPLITS
                  if known_masks[split][row, entity]
                ),
                '',
              ),
            )
            for rank, entity in best
          ]
        )
    return answers[0] if single else answers

  def _parse(self, labels: Labels) -> known.Question:
    vocabulary = self.data.vocabulary
    shown = ' '.join(map(repr, labels))
    if len(labels) < 3:
      raise QuestionError(
        f'{shown}: expected an entity, one or more relations and {UNKNOWN!r}'
      )
    if (labels[0] == UNKNOWN) == (labels[-1] == UNKNOWN):
      raise QuestionError(
        f'{shown}: expected {UNKNOWN!r} at one end: the model predicts one '
        'entity, and no relations'
      )
    relations = labels[1:-1]
    if UNKNOWN in relations:
      raise QuestionError(
        f'{shown}: the model was never trained to predict a relation'
      )
    if len(relations) > self.max_path_length:
      raise QuestionError(
        f'{shown}: {len(relations)} relations: the model was trained on at '
        f'most {self.max_path_length}'
      )
    asks_head = labels[0] == UNKNOWN
    try:
      return known.Question(
        entity=self._entity(labels[-1] if asks_head else labels[0]),
        relations=tuple(map(vocabulary.relation_id, relations)),
        asks_head=asks_head,
      )
    except KeyError as error:
      raise QuestionError(f'{shown}: {error.args[0]}') from None

  def _entity(self, label: str) -> int:
    try:
      return int(self.data.vocabulary.entity_id(label))
    except KeyError as error:
      raise QuestionError(error.args[0]) from None

  def _known_masks(
    self, questions: list[known.Question]
  ) -> dict[str, np.ndarray]:
    """Whether each entity is a known answer, by split: bool [B, V]."""
    rows = np.arange(len(questions))
    return {
      split: self._known.answers(questions, split).mask(rows)
      for split in graph.SPLITS
    }

  def _score(self, questions: list[known.Question]) -> np.ndarray:
    """Log-probabilities of all entities for B questions: float32 [B, V].

    The batch always has the same shape, so that nothing is compiled twice.
    """
    vocabulary = self.data.vocabulary
    width = self._model.max_length
    size = self._batch_size
    tokens = np.full((size, width), vocabulary.pad_id, dtype=np.int32)
    position = np.zeros(size, dtype=np.int32)
    for row, question in enumerate(questions):
      relations = np.array(question.relations) + vocabulary.num_entities
      ends = [question.entity, vocabulary.mask_id]
      first, last = ends[::-1] if question.asks_head else ends
      sequence = [first, *relations, last]
      tokens[row, : len(sequence)] = sequence
      position[row] = 0 if question.asks_head else len(sequence) - 1
    tokens[len(questions) :] = tokens[0]
    batch = parallel.shard({'tokens': tokens, 'mask_position': position})
    with jax.default_matmul_precision('highest'):
      unusable, scores = self._log_probabilities(self._params, batch, None)
    if int(unusable):
      raise FloatingPointError(
        'scores that are not finite numbers: these parameters cannot be asked'
      )
    scores = np.asarray(scores).reshape(size, -1)
    return scores[: len(questions)]

  def _on_device(
    self, params: Any, batch: dict[str, jax.Array], _: None
  ) -> tuple[jax.Array, jax.Array]:
    logits: Any = self._model.apply(
      {'params': params}, batch['tokens'], batch['mask_position']
    )
    scores = jax.nn.log_softmax(logits)
    unusable = (~jnp.isfinite(scores)).sum()
    return parallel.sum_over_devices(unusable), scores


def _best(
  scores: np.ndarray, competing: np.ndarray, top: int
) -> list[tuple[int, int]]:
  """(rank, entity) of the best competing entities, by score, then id."""
  entities = np.flatnonzero(competing)
  top = min(top, len(entities))
  if not top:
    return []
  negative = -scores[entities]
  # All that tie with the last place are sorted, so that ids decide among them.
  limit = np.partition(negative, top - 1)[top - 1]
  near = np.flatnonzero(negative <= limit)
  order = near[np.argsort(negative[near], kind='stable')][:top]
  return [(rank, int(entities[i])) for rank, i in enumerate(order, start=1)]
