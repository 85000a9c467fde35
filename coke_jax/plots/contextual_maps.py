"""One entity or relation in all its contexts (paper, section 4.3).

A contextual embedding differs from triple to triple. A map lays out those of
one entity, or of one relation or two, in the plane: every training triple that
contains it is read by the model, without a mask, and the final hidden state at
its place becomes a point by t-SNE. The points of an entity are grouped by
relation, the points of relations by the entity on one side.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from coke_jax import errors
from coke_jax.data import arrays
from coke_jax.plots import map_selection, plot_style, readable_names

_PERPLEXITY = 30.0
_MOST_EXACT = 1000  # points for which t-SNE needs no approximation to be fast


class Embedder(Protocol):
  """What a map asks of a model, see `model.Model`."""

  def embed(self, sequences: Sequence[Sequence[str]]) -> Any:
    """Contextual embeddings of N triples, `vectors` float32 [N, 3, D]."""


@dataclasses.dataclass(frozen=True, eq=False)
class ContextualMap:
  """Points in the plane, and how well their groups hold together.

  Attributes:
    selection: what the points are.
    coordinates: float32 [N, 2], by t-SNE.
    perplexity: of the t-SNE.
    seed: of the t-SNE.
    silhouette: float32 [N], from -1 to 1, of each hidden state among all groups
      (Rousseeuw 1987): positive if its own group is nearer than any other.
      None if all points are of one group.
    silhouette_joined: the mean silhouette when a relation and its inverse are
      one group; None if all points are then of one group.
    mirrored_pairs: pairs of points whose triples are (s, r, o) and (o, r', s).
    mirrored_distance: the median distance of their hidden states, in units of
      the median over all pairs of points; None without such a pair.
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
    """The silhouette score of the groups, None if there is but one."""
    return None if self.silhouette is None else float(self.silhouette.mean())


def make_map(
  model: Embedder,
  data: arrays.DataSet,
  selection: map_selection.Selection,
  *,
  seed: int = 0,
) -> ContextualMap:
  """Reads the triples of a selection and lays out their states by t-SNE.

  Args:
    model: reads triples.
    data: has the labels of the selection's ids.
    selection: the points.
    seed: of the t-SNE.

  Raises:
    map_selection.MapError: the states are all the same.
    errors.NonFiniteError: a state is not finite.
    config.ConfigError: scikit-learn is not installed.
  """
  manifold = plot_style.import_extra('sklearn.manifold')
  metrics = plot_style.import_extra('sklearn.metrics')
  states = model.embed(_sequences(data, selection)).vectors  # [N, 3, D]
  states = states[np.arange(len(states)), selection.column]  # [N, D]
  if not np.isfinite(states).all():
    raise errors.NonFiniteError(
      'hidden states that are not finite numbers: these parameters make no map'
    )
  if not np.ptp(states, axis=0).any():
    raise map_selection.MapError(
      f'{", ".join(selection.labels)}: its hidden state is the same in all '
      f'{len(states):,} triples: this model has learned nothing to show'
    )
  distances = metrics.pairwise_distances(states)  # [N, N]
  perplexity = min(_PERPLEXITY, (len(states) - 1) / 3)
  coordinates = manifold.TSNE(
    perplexity=perplexity,
    init='pca',
    learning_rate='auto',
    method='exact' if len(states) <= _MOST_EXACT else 'barnes_hut',
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
  """A map for programs: its rules, its measures, its groups, its points.

  It is also what `map_plots.draw` draws.
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
  """Rows of (s, r, o) and of (o, r', s): int64 [pairs, 2], each pair once."""
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
  """The labels of the triples, N of them."""
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  return [
    (entities[head], relations[relation], entities[tail])
    for head, relation, tail in selection.triples.tolist()
  ]


def _mean(values: np.ndarray) -> float | None:
  return float(values.mean()) if len(values) else None
