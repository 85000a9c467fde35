"""Chooses and computes the contextual maps of a report."""

import importlib.util
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays
from coke_jax.data import graph as graph_lib
from coke_jax.plots import contextual_maps, map_selection, readable_names
from coke_jax.predict import model as model_lib
from coke_jax.report import content

# Maximum number of points of a map. t-SNE of 1,000 points takes 23 s on one
# core.
_MAX_POINTS = 500
_MOST_TRIED = 20  # maximum number of entities or relations that are tried
# Suitable numbers of groups. A map with fewer groups shows little, and a map
# with more groups is hard to read.
_GROUPS = range(3, 13)

Chosen = dict[str, map_selection.Selection | content.Missing]


def choose(
  data: arrays.DataSet,
  entity: str | None = None,
  relations: Sequence[str] = (),
  *,
  seed: int = 0,
) -> Chosen:
  """Chooses the triples of two maps: of an entity and of a relation.

  Args:
    data: the data set.
    entity: the entity. Default: one of the entities with the most training
      triples.
    relations: one or two relations. Default: one of the relations with the most
      training triples.
    seed: the seed of the samples of large maps.

  Returns:
    The triples by kind, `entity` and `relation`.

  Raises:
    map_selection.MapError: a given label is unknown or has too few triples.
  """

  def of_entity(label: str) -> map_selection.Selection:
    return map_selection.select_entity(data, label, seed=seed, most=_MAX_POINTS)

  def of_relations(*labels: str) -> map_selection.Selection:
    return map_selection.select_relations(
      data, labels, seed=seed, most=_MAX_POINTS
    )

  words, triples = data.vocabulary, _training_triples(data)
  return {
    'entity': of_entity(entity)
    if entity is not None
    else _first(of_entity, words.entities, triples[:, [0, 2]]),
    'relation': of_relations(*relations)
    if relations
    else _first(of_relations, words.relations, triples[:, 1]),
  }


def compute(
  model: model_lib.Model,
  chosen: Chosen,
  given: dict[str, str],
  *,
  seed: int = 0,
) -> dict[str, dict[str, Any] | content.Missing]:
  """Computes the chosen maps.

  Args:
    model: the model.
    chosen: the result of `choose`.
    given: a dict from some labels to names.
    seed: the seed of the t-SNE.

  Returns:
    The numbers of `contextual_maps.to_json` by kind.

  Raises:
    errors.NonFiniteError: a hidden state is NaN or infinite.
  """
  if importlib.util.find_spec('sklearn') is None:
    reason = 'Maps need scikit-learn, which is not installed.'
    missing = content.Missing(reason, "pip install 'coke_jax[plots]'")
    return dict.fromkeys(chosen, missing)
  names = readable_names.make_names(model.data.vocabulary, given)
  found: dict[str, dict[str, Any] | content.Missing] = {}
  for kind, selection in chosen.items():
    if isinstance(selection, content.Missing):
      found[kind] = selection
      continue
    try:
      made = contextual_maps.make_map(model, model.data, selection, seed=seed)
    except map_selection.MapError as error:
      found[kind] = content.Missing(f'No map: {error}.')
    else:
      found[kind] = contextual_maps.to_json(made, model.data, names)
  return found


def _first(
  select: Callable[[str], map_selection.Selection],
  labels: Sequence[str],
  values: np.ndarray,
) -> map_selection.Selection | content.Missing:
  """Selects the most frequent label whose map has a suitable number of groups.

  If no map is suitable, selects the most frequent label that has a map.

  Args:
    select: selects the triples of a label.
    labels: the labels by id.
    values: the ids of all occurrences, of any shape.
  """
  counts = np.bincount(values.ravel(), minlength=len(labels))
  second = None
  for index in np.argsort(-counts, kind='stable')[:_MOST_TRIED].tolist():
    try:
      selection = select(labels[index])
    except map_selection.MapError:
      continue
    if len(selection.groups) in _GROUPS:
      return selection
    second = second or selection
  return second or content.Missing('No map: there are too few triples.')


def _training_triples(data: arrays.DataSet) -> np.ndarray:
  """Returns the training triples: int32 [N, 3]."""
  if isinstance(data, graph_lib.KnowledgeGraph):
    return data.train
  return data.train.single_edges()
