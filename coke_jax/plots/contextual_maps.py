"""Maps of contextual embeddings, as in section 4.3 of the paper.

The contextual embedding of an entity or relation differs from triple to triple.
A map shows the contextual embeddings of one entity, or of one or two relations,
as points in the plane. The model encodes training triples that contain the
entity or one of the relations, without a mask. Then t-SNE maps the final hidden
states to points. In the map of an entity, the points are grouped by relation.
In the map of relations, the points are grouped by head or by tail.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from coke_jax import errors
from coke_jax.data import arrays
from coke_jax.plots import map_selection, plot_style, readable_names

_PERPLEXITY = 30.0
_MAX_EXACT = 1000  # maximum number of points for exact t-SNE, which is slower


class Embedder(Protocol):
  """The method of `predict.model.Model` that a map needs."""

  def embed(self, sequences: Sequence[Sequence[str]]) -> Any:
    """Returns an object with the hidden states of N triples.

    Its attribute `vectors` is float32 [N, 3, D].
    """


@dataclasses.dataclass(frozen=True, eq=False)
class ContextualMap:
  """Points in the plane, and measures of how well their groups separate.

  Attributes:
    selection: the triples of the N points and their groups.
    coordinates: float32 [N, 2], the points computed by t-SNE.
    perplexity: the perplexity of the t-SNE.
    seed: the seed of the t-SNE.
    silhouette: float32 [N], the silhouette coefficient of each hidden state
      (Rousseeuw 1987), from -1 to 1. It is positive if the hidden state is
      nearer to its own group than to any other. None if there is only one
      group.
    silhouette_joined: the mean silhouette when a relation and its inverse
      count as one group. None if all triples are then in one group.
    mirrored_pairs: the number of pairs of points whose triples are (h, r, t)
      and (t, r', h), for any relations r and r'.
    mirrored_distance: the median distance between the two hidden states of a
      mirrored pair, divided by the median distance between any two hidden
      states. None if there are no mirrored pairs, or if the divisor is 0.
  """

  selection: map_selection.Selection
  coordinates: np.ndarray
  perplexity: float
  seed: int
  silhouette: np.ndarray | None
  silhouette_joined: float | None
  mirrored_pairs: int
  mirrored_distance: float | None

  @property
  def mean_silhouette(self) -> float | None:
    """The mean silhouette, or None if there is only one group."""
    return None if self.silhouette is None else float(self.silhouette.mean())


def make_map(
  model: Embedder,
  data: arrays.DataSet,
  selection: map_selection.Selection,
  *,
  seed: int = 0,
) -> ContextualMap:
  """Encodes the triples of a selection and maps the hidden states by t-SNE.

  Args:
    model: the model that encodes the triples.
    data: the data set of the selection.
    selection: the triples of the N points.
    seed: the seed of the t-SNE.

  Raises:
    map_selection.MapError: all hidden states are equal.
    errors.NonFiniteError: a hidden state is NaN or infinite.
    config.ConfigError: scikit-learn is not installed.
  """
  manifold = plot_style.import_extra('sklearn.manifold')
  metrics = plot_style.import_extra('sklearn.metrics')
  states = model.embed(_sequences(data, selection)).vectors  # [N, 3, D]
  states = states[np.arange(len(states)), selection.column]  # [N, D]
  if not np.isfinite(states).all():
    raise errors.NonFiniteError(
      'hidden states are not finite: expected parameters without NaN or '
      'infinity'
    )
  if not np.ptp(states, axis=0).any():
    raise map_selection.MapError(
      f'{", ".join(selection.labels)}: the hidden state is the same in all '
      f'{len(states):,} triples: expected a trained model'
    )
  distances = metrics.pairwise_distances(states)  # [N, N]
  perplexity = min(_PERPLEXITY, (len(states) - 1) / 3)
  coordinates = manifold.TSNE(
    perplexity=perplexity,
    init='pca',
    learning_rate='auto',
    method='exact' if len(states) <= _MAX_EXACT else 'barnes_hut',
    random_state=seed,
  ).fit_transform(states)

  def silhouettes(group: np.ndarray) -> np.ndarray | None:
    if len(np.unique(group)) < 2:
      return None
    values: np.ndarray = metrics.silhouette_samples(
      distances, group, metric='precomputed'
    )
    return values

  places = np.arange(len(selection.groups))
  first = np.where(selection.inverse < 0, places, selection.inverse)
  joined = silhouettes(np.minimum(first, places)[selection.group])
  pairs = _mirrored(selection.triples)
  typical = float(np.median(distances[np.triu_indices(len(states), 1)]))
  return ContextualMap(
    selection=selection,
    coordinates=coordinates,
    perplexity=perplexity,
    seed=seed,
    silhouette=silhouettes(selection.group),
    silhouette_joined=None if joined is None else float(joined.mean()),
    mirrored_pairs=len(pairs),
    mirrored_distance=float(np.median(distances[tuple(pairs.T)])) / typical
    if len(pairs) and typical
    else None,
  )


def to_json(
  contextual_map: ContextualMap,
  data: arrays.DataSet,
  names: readable_names.Names,
) -> dict[str, Any]:
  """Converts a map to JSON types.

  Args:
    contextual_map: the map.
    data: the data set of the map's selection.
    names: the names of entities and relations.

  Returns:
    The document that `map_plots.draw` draws.
  """
  selection = contextual_map.selection
  silhouette = contextual_map.silhouette
  names_of = {'entity': names.entities, 'relation': names.relations}
  all_labels = {
    'entity': data.vocabulary.entities,
    'relation': data.vocabulary.relations,
  }[selection.grouped_by]
  labels = [all_labels[index] for index in selection.groups]
  groups = [
    {
      'label': label,
      'name': names_of[selection.grouped_by][label],
      'inverse': None if inverse < 0 else int(inverse),
      'points': int((selection.group == place).sum()),
      'silhouette': None
      if silhouette is None
      else _mean(silhouette[selection.group == place]),
    }
    for place, (label, inverse) in enumerate(
      zip(labels, selection.inverse, strict=True)
    )
  ]
  points = [
    {'x': round(float(x), 4), 'y': round(float(y), 4)}
    | {'group': int(group), 'triple': triple, 'column': int(column)}
    for (x, y), group, triple, column in zip(
      contextual_map.coordinates,
      selection.group,
      _sequences(data, selection),
      selection.column,
      strict=True,
    )
  ]
  return {
    'dataset': data.name,
    'kind': selection.kind,
    'labels': selection.labels,
    'names': [names_of[selection.kind][label] for label in selection.labels],
    'grouped_by': selection.grouped_by,
    'sides': selection.sides,
    'least_triples_of_a_group': selection.least,
    'triples_found': selection.found,
    'groups_left_out': selection.left_out,
    'triples_kept': selection.kept,
    'perplexity': contextual_map.perplexity,
    'seed': contextual_map.seed,
    'silhouette': contextual_map.mean_silhouette,
    'silhouette_joined': contextual_map.silhouette_joined,
    'mirrored_pairs': contextual_map.mirrored_pairs,
    'mirrored_distance': contextual_map.mirrored_distance,
    'groups': groups,
    'points': points,
  }


def _mirrored(triples: np.ndarray) -> np.ndarray:
  """Returns the pairs of rows whose triples are (h, r, t) and (t, r', h).

  The result is int64 [pairs, 2], indices of `triples`.
  """
  rows: dict[tuple[int, int], list[int]] = {}
  for row, (head, _, tail) in enumerate(triples.tolist()):
    rows.setdefault((head, tail), []).append(row)
  pairs = [
    (row, other)
    for (head, tail), some in rows.items()
    if head < tail
    for row in some
    for other in rows.get((tail, head), ())
  ]
  return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _sequences(
  data: arrays.DataSet, selection: map_selection.Selection
) -> list[tuple[str, str, str]]:
  """Returns the labels of the N triples."""
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  return [
    (entities[head], relations[relation], entities[tail])
    for head, relation, tail in selection.triples.tolist()
  ]


def _mean(values: np.ndarray) -> float | None:
  return float(values.mean()) if len(values) else None
