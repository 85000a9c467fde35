"""Selects the triples of a contextual map and groups them."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from coke_jax import errors
from coke_jax.data import arrays
from coke_jax.data import graph as graph_lib

HEAD, RELATION, TAIL = range(3)  # columns of a triple
SIDES = {'head': HEAD, 'tail': TAIL}

# Minimum number of triples in a group, as in the paper. Smaller groups are not
# drawn. In the map of an entity, the groups are relations. In the map of
# relations, the groups are entities.
MIN_RELATION_TRIPLES = 5
MIN_ENTITY_TRIPLES = 10
# Maximum number of points in a map. If there are more triples, a random sample
# is drawn, because t-SNE would take minutes and the map would be crowded.
MAX_POINTS = 5000
_MIN_POINTS = 10
# Minimum Jaccard index of the (head, tail) pairs of a relation and the
# (tail, head) pairs of its inverse.
_MIN_OVERLAP = 0.5


class MapError(errors.CokeError, ValueError):
  """A map that cannot be drawn."""


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
  """The triples of the N points of a map, and their groups.

  Attributes:
    labels: the label of one entity, or the labels of one or two relations.
    kind: the kind of the labels, `entity` or `relation`.
    grouped_by: the kind of the groups: `relation` if `kind` is `entity`, else
      `entity`.
    sides: for each relation of `labels`, the side (`head` or `tail`) whose
      entities are the groups. Empty if `kind` is `entity`.
    least: the minimum number of triples in a group.
    found: the number of distinct training triples that contain one of the
      labels, in groups of any size.
    left_out: the number of groups with fewer than `least` triples.
    kept: the number of triples in groups with at least `least` triples. If the
      points are a sample, this number is larger than N.
    triples: int32 [N, 3]: head entity id, relation index, tail entity id.
    column: int64 [N], for each triple, the column whose hidden state is shown.
    group: int64 [N], the group of each triple, an index into `groups`.
    groups: integers [G], entity ids or relation indices. Larger groups are
      first, except that an inverse directly follows its relation.
    inverse: int64 [G], the index of the inverse relation in `groups`, or -1.
  """

  labels: tuple[str, ...]
  kind: str
  grouped_by: str
  sides: tuple[str, ...]
  least: int
  found: int
  left_out: int
  kept: int
  triples: np.ndarray
  column: np.ndarray
  group: np.ndarray
  groups: np.ndarray
  inverse: np.ndarray


def select_entity(
  data: arrays.DataSet,
  label: str,
  *,
  seed: int = 0,
  most: int | None = None,
) -> Selection:
  """Selects the training triples of an entity, grouped by relation.

  Each triple is one point. If the entity is both head and tail, the point is
  the hidden state of the head.

  Args:
    data: a graph, or path data. The triples of path data are the paths with a
      single relation.
    label: the label of the entity.
    seed: the seed of the sample that is drawn if there are more than `most`
      triples.
    most: the maximum number of points. Default: 5,000.

  Raises:
    MapError: the label is unknown, or has too few triples.
  """
  entity = _look_up(data.vocabulary.entity_id, label)
  everything = _training_triples(data)
  triples = everything[(everything[:, [HEAD, TAIL]] == entity).any(axis=1)]
  selection = _select(
    triples,
    np.where(triples[:, HEAD] == entity, HEAD, TAIL),
    triples[:, RELATION],
    labels=(label,),
    kind='entity',
    grouped_by='relation',
    least=MIN_RELATION_TRIPLES,
    seed=seed,
    most=most,
  )
  return _beside_inverses(selection, everything)


def select_relations(
  data: arrays.DataSet,
  labels: Sequence[str],
  *,
  sides: Sequence[str] | None = None,
  seed: int = 0,
  most: int | None = None,
) -> Selection:
  """Selects the training triples of one or two relations, grouped by entity.

  Args:
    data: a graph, or path data. The triples of path data are the paths with a
      single relation.
    labels: the labels of one or two relations, such as a relation and its
      inverse.
    sides: `head` or `tail` for each relation, the side whose entities are the
      groups. Default: the sides with the most triples in groups of at least
      MIN_ENTITY_TRIPLES triples.
    seed: the seed of the sample that is drawn if there are more than `most`
      triples.
    most: the maximum number of points. Default: 5,000.

  Raises:
    MapError: a label or side is unknown; `labels` is not one label or two
      different labels; or the relations have too few triples.
  """
  if len(labels) not in (1, 2) or len(set(labels)) < len(labels):
    raise MapError(
      f'relations are {", ".join(map(repr, labels))}: expected one label, or '
      'two different labels'
    )
  chosen: list[tuple[str, ...]]
  if sides is None:
    chosen = list(itertools.product(SIDES, repeat=len(labels)))
  else:
    chosen = [tuple(sides)]
    if len(sides) != len(labels) or not set(sides) <= set(SIDES):
      raise MapError(
        f'sides are {tuple(sides)}: expected head or tail for each of '
        f'{len(labels)} relations'
      )
  relations = [_look_up(data.vocabulary.relation_id, label) for label in labels]
  triples = _training_triples(data)
  triples = triples[np.isin(triples[:, RELATION], relations)]
  rows = np.arange(len(triples))
  which = np.isin(triples[:, RELATION], relations[1:]).astype(np.int64)

  def entities(combination: tuple[str, ...]) -> np.ndarray:  # int32 [triples]
    columns = np.array([SIDES[side] for side in combination])
    return triples[rows, columns[which]]

  best = max(chosen, key=lambda some: _num_kept(entities(some)))
  return _select(
    triples,
    np.full(len(triples), RELATION),
    entities(best),
    labels=tuple(labels),
    kind='relation',
    grouped_by='entity',
    sides=best,
    least=MIN_ENTITY_TRIPLES,
    seed=seed,
    most=most,
  )


def _select(
  triples: np.ndarray,  # int32 [N, 3]
  column: np.ndarray,  # int64 [N]
  key: np.ndarray,  # int32 [N], the id that triples are grouped by
  *,
  labels: tuple[str, ...],
  kind: str,
  grouped_by: str,
  least: int,
  seed: int,
  most: int | None,
  sides: tuple[str, ...] = (),
) -> Selection:
  """Leaves out small groups. If there are too many points, draws a sample."""
  groups, group, counts = np.unique(
    key, return_inverse=True, return_counts=True
  )
  order = np.argsort(-counts, kind='stable')
  rows = np.flatnonzero(counts[group] >= least)
  shown = ', '.join(map(repr, labels))
  if len(rows) < _MIN_POINTS:
    raise MapError(
      f'{shown}: {len(rows):,} of {len(triples):,} training triples are in a '
      f'group of at least {least} triples with the same {grouped_by}: expected '
      f'at least {_MIN_POINTS} such triples'
    )
  large = order[counts[order] >= least]
  place = np.full(len(groups), -1)
  place[large] = np.arange(len(large))
  kept = len(rows)
  most = MAX_POINTS if most is None else most
  if kept > most:
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(rows, most, replace=False))
  return Selection(
    labels=labels,
    kind=kind,
    grouped_by=grouped_by,
    sides=sides,
    least=least,
    found=len(triples),
    left_out=len(groups) - len(large),
    kept=kept,
    triples=triples[rows],
    column=column[rows],
    group=place[group[rows]],
    groups=groups[large],
    inverse=np.full(len(large), -1),
  )


def _beside_inverses(selection: Selection, triples: np.ndarray) -> Selection:
  """Reorders groups so that each relation is followed by its inverse."""
  relations = selection.groups.tolist()
  inverses = _inverses(triples, relations)
  pairs = ((one, inverses.get(one, one)) for one in relations)
  order = list(dict.fromkeys(itertools.chain(*pairs)))
  place = {relation: index for index, relation in enumerate(order)}
  return dataclasses.replace(
    selection,
    groups=np.array(order),
    group=np.array([place[one] for one in relations])[selection.group],
    inverse=np.array([place.get(inverses.get(one, -1), -1) for one in order]),
  )


def _inverses(triples: np.ndarray, relations: Sequence[int]) -> dict[int, int]:
  """Finds pairs of inverse relations by the overlap of their triples.

  Args:
    triples: int32 [T, 3], of the whole graph.
    relations: the relation indices to compare.

  Returns:
    A dict from relation to its inverse. Relations without an inverse are left
    out.
  """
  edges: dict[int, set[tuple[int, int]]] = {one: set() for one in relations}
  mirrored: dict[int, set[tuple[int, int]]] = {one: set() for one in relations}
  some = triples[np.isin(triples[:, RELATION], relations)]
  for head, relation, tail in some.tolist():
    edges[relation].add((head, tail))
    mirrored[relation].add((tail, head))

  def overlap(one: int, other: int) -> float:  # the Jaccard index
    common = len(edges[one] & mirrored[other])
    return common / (len(edges[one]) + len(edges[other]) - common)

  found = {}
  for one in relations:
    others = [other for other in relations if other != one]
    best = max(others, key=lambda other: overlap(one, other), default=one)
    if best != one and overlap(one, best) >= _MIN_OVERLAP:
      found[one] = best
  return {a: b for a, b in found.items() if found.get(b) == a}


def _num_kept(key: np.ndarray) -> int:
  """Counts the triples in groups of at least MIN_ENTITY_TRIPLES triples."""
  counts = np.unique(key, return_counts=True)[1]
  return int(counts[counts >= MIN_ENTITY_TRIPLES].sum())


def _training_triples(data: arrays.DataSet) -> np.ndarray:
  """Returns the distinct training triples: int32 [N, 3]."""
  if isinstance(data, graph_lib.KnowledgeGraph):
    return np.unique(data.train, axis=0)
  return np.unique(data.train.single_edges(), axis=0)


def _look_up(find: Callable[[str], int], label: str) -> int:
  try:
    return find(label)
  except KeyError as error:
    raise MapError(error.args[0]) from None
