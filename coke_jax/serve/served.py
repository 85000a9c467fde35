"""A loaded model, and indexes that are computed once for each model."""

import contextlib
import copy
import functools
import os
import re
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coke_jax.data import paths as paths_lib
from coke_jax.data import text_files
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import device_call
from coke_jax.predict import load, questions, scorer, validation
from coke_jax.predict import model as model_lib
from coke_jax.predict.jobs import explain as explain_lib
from coke_jax.serve import label_search, neighborhood
from coke_jax.storage import checksums

# The error about an unknown label lists at most this number of similar labels.
_HINTS = 3
# If the unknown label has more characters, only its start is compared.
_COMPARED = 200
# If the valid split has at most this number of facts, a model without a
# calibration is calibrated when it is loaded.
_MAX_CALIBRATED = 5000


class Served:
  """A model and its indexes, which do not change while the model is served.

  Attributes:
    model: the model.
    identity: the first characters of the SHA-256 of the parameters.
    loaded: the time at which the model was loaded, in seconds since 1970.
    neighborhood: the known facts by entity.
    entities: finds entity labels.
    relations: finds relation labels.
  """

  def __init__(self, model: model_lib.Model):
    self.model = model
    params = model.predictor.scorer.whole_params()
    self.identity = checksums.of_arrays(params)[:12]
    self.loaded = time.time()
    words = model.data.vocabulary
    self.neighborhood = neighborhood.Neighborhood(model.data)
    self.entities = label_search.LabelSearch(
      words.entities, self.neighborhood.degree
    )
    facts = self.neighborhood.facts.triples[:, 1]
    self.relations = label_search.LabelSearch(
      words.relations, np.bincount(facts, minlength=words.num_relations)
    )

  def describes(self, other: 'Served') -> bool:
    """Returns whether another model has the same content as this one."""
    return (
      self.identity == other.identity
      and self.model.calibration == other.model.calibration
      and self.model.data.vocabulary == other.model.data.vocabulary
    )

  @functools.cached_property
  def embeddings(self) -> np.ndarray:
    """The static embeddings of the entities, float32 [V, D]."""
    return self.model.embed_elements().entities

  @functools.cached_property
  def explainer(self) -> explain_lib.Explainer:
    """Explains facts with the graph of known facts."""
    return self._explainer(self.model)

  def entity(self, label: str, *, hints: bool = True) -> int:
    """Returns the id of an entity.

    Args:
      label: the entity label.
      hints: whether the error message lists similar labels.

    Raises:
      questions.QuestionError: the label is unknown.
    """
    found = self.model.data.vocabulary.entity_ids.get(label)
    if found is None:
      raise self._unknown('entity', label, hints)
    return found

  def relation(self, label: str, *, hints: bool = True) -> int:
    """Returns the index of a relation.

    Args:
      label: the relation label.
      hints: as in `entity`.

    Raises:
      questions.QuestionError: the label is unknown.
    """
    found = self.model.data.vocabulary.relation_ids.get(label)
    if found is None:
      raise self._unknown('relation', label, hints)
    return found

  def question(
    self, labels: Sequence[str], *, hints: bool = True
  ) -> questions.Question:
    """Converts labels to a question. Errors are those of `Parser.question`."""
    self._check(labels, hints=hints)
    return self.model.parser.question(labels, hints=False)

  def fact(self, labels: Sequence[str]) -> questions.Fact:
    """Converts labels to a fact. Errors are those of `Parser.fact`."""
    self._check(labels)
    return self.model.parser.fact(labels)

  def base_fact(self, labels: Sequence[str]) -> questions.Fact:
    """Converts labels to a fact of a base relation, see `Model.base_fact`."""
    self._check(labels)
    return self.model.base_fact(labels)

  def step(self, relation: str, backwards: bool) -> neighborhood.Step:
    """Converts the label of a relation and a direction to a step.

    For an inverse relation, the step follows the base relation in the other
    direction.

    Raises:
      questions.QuestionError: the label is unknown.
    """
    index = self.relation(relation)
    data = self.model.data
    if index in self._base or not isinstance(data, paths_lib.PathData):
      return neighborhood.Step(index, backwards)
    return neighborhood.Step(int(data.inverse[index]), not backwards)

  def calibrated(
    self,
    scores: np.ndarray,
    known: np.ndarray,
  ) -> list[float] | list[None]:
    """Returns the calibrated probabilities of answers.

    Args:
      scores: floats [k], log-probabilities.
      known: integers [k], for each answer the number of other answers that are
        known from train.

    Returns:
      k probabilities. Each is None if the model has no calibration.
    """
    calibration = self.model.calibration
    if calibration is None:
      return [None] * len(scores)
    logs = np.log(np.maximum(known, 1))
    found: list[float] = calibration.probability(scores + logs).tolist()
    return found

  def pausing(self, pause: Callable[[], None]) -> 'Served':
    """Returns a copy that calls a function before each batch on the devices."""
    own = copy.copy(self)
    own.model = copy.copy(self.model)
    own.model.predictor = copy.copy(self.model.predictor)
    own.model.predictor.scorer = _PausingScorer(
      self.model.predictor.scorer, pause
    )
    own.__dict__['explainer'] = self.explainer.with_predictor(
      own.model.predictor
    )
    return own

  def metadata(self) -> dict[str, Any]:
    """Returns information about the model for clients."""
    words = self.model.data.vocabulary
    data = self.model.data
    facts = self.neighborhood.facts
    return {
      'name': re.sub(r'.*[/\\]', '', data.name),
      'model': self.identity,
      'loaded': self.loaded,
      'entities': words.num_entities,
      'relations': len(self.neighborhood.base),
      'facts': len(facts.triples),
      'max_path_length': self.model.max_path_length,
      'inverse_relations': isinstance(data, paths_lib.PathData),
      'num_layers': self.model.num_layers,
      'calibrated_on': self.model.calibration.split
      if self.model.calibration
      else None,
    }

  @functools.cached_property
  def _base(self) -> frozenset[int]:
    return frozenset(self.neighborhood.base)

  def _explainer(self, model: model_lib.Model) -> explain_lib.Explainer:
    return explain_lib.Explainer(
      model.predictor, self.embeddings, model.max_path_length
    )

  def _check(self, labels: Sequence[str], *, hints: bool = True) -> None:
    """Raises an error with hints from `label_search` if a label is unknown.

    In a large graph, `label_search` finds hints faster than the parser.
    """
    if len(labels) < 3 or questions.UNKNOWN in labels[1:-1]:
      return  # The parser raises the error about such labels.
    for label in (labels[0], labels[-1]):
      if label != questions.UNKNOWN:
        self.entity(label, hints=hints)
    for label in labels[1:-1][: self.model.max_path_length]:
      self.relation(label, hints=hints)

  def _unknown(
    self, kind: str, label: str, hints: bool
  ) -> questions.QuestionError:
    """Returns the error about an unknown label.

    The error lists labels that contain the unknown label, or else the most
    similar labels, as the error of `Parser` does.
    """
    words = self.model.data.vocabulary
    search, labels = {
      'entity': (self.entities, words.entities),
      'relation': (self.relations, words.relations),
    }[kind]
    near: list[str] = []
    if hints and label.strip():
      text = label[:_COMPARED]
      near = [labels[one] for one in search.find(text, _HINTS)]
      near = near or vocabulary_lib.closest(
        text, [labels[one] for one in search.near(text)], _HINTS
      )
    hint = ' or '.join(map(validation.short, near))
    return questions.QuestionError(
      f'unknown {kind} {text_files.show_line(label)}'
      + (f': did you mean {hint}?' if hint else '')
    )


class _PausingScorer(scorer.Scorer):
  """A copy of a scorer that calls a function before each batch."""

  def __init__(self, other: scorer.Scorer, pause: Callable[[], None]):
    self.__dict__.update(other.__dict__)
    self._pause = pause

  def _run(
    self, call: device_call.DeviceCall, batch: device_call.Batch
  ) -> device_call.Batch:
    self._pause()
    return super()._run(call, batch)


def load_served(folder: str | os.PathLike[str]) -> Served:
  """Loads a model. Errors are those of `load.load`.

  A model without a stored calibration is calibrated if its valid split is
  small.
  """
  model = load.load(folder)
  few = len(model.data.split('valid')) <= _MAX_CALIBRATED
  if model.calibration is None and few:
    # An error means that there are no new facts to calibrate with.
    with contextlib.suppress(questions.QuestionError):
      model.calibrate()
  return Served(model)
