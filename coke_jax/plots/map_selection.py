"""The triples whose states make a map, and the groups they fall into."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from coke_jax import errors
from coke_jax.data import arrays
from coke_jax.data import graph as graph_lib

HEAD, RELATION, TAIL = range(3)  # columns of a triple


SIDES = {'head': HEAD, 'tail': TAIL}

# Triples that a group needs in order to be drawn, as in the paper.
LEAST_OF_RELATION = 5
LEAST_OF_ENTITY = 10
_LEAST_POINTS = 10
_LEAST_OVERLAP = 0.5  # of the edges of a relation and of its inverse, mirrored
_MOST_POINTS = 5000  # t-SNE takes minutes and hides what it shows beyond


class MapError(errors.CokeError, ValueError):
  """A map that cannot be drawn, with the reason."""


@dataclasses.dataclass(frozen=True, eq=False)
class Selection:
  """The N points of a map: which state of which triples, and their groups.

  Attributes:
    labels: the entity, or the relations, that the map is of.
    kind: what they are, `entity` or `relation`.
    grouped_by: what the groups are, the other of the two.
    sides: of relations: the side, of each, whose entities are the groups.
    least: triples that a group needs in order to be here.
    found: distinct training triples with the labels, those left out included.
    left_out: groups that have fewer triples than `least`.
    kept: triples of the groups that have as many; more than N if the points
      are a sample of them.
    triples: int32 [N, 3]: head entity id, relation index, tail entity id.
    column: int64 [N], the column of each triple whose state is the point.
    group: int64 [N], an index into `groups`.
    groups: [G] entity ids or relation indices, the largest group first, a
      relation's inverse right behind it.
    inverse: int64 [G]: which group is of the inverse relation, -1 if none.
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
  data: arrays.DataSet, label: str, *, seed: int = 0
) -> Selection:
  """The training triples of an entity, grouped by relation.

  A triple is one point; of a triple that has the entity on both sides, the
  head.

  Args:
    data: triples, or paths, whose single edges are the triples.
    label: the entity.
    seed: decides which triples are sampled if there are too many.

  Raises:
    MapError: an unknown label, or too few triples.
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
    least=LEAST_OF_RELATION,
    seed=seed,
  )
  return _beside_inverses(selection, everything)


def select_relations(
  data: arrays.DataSet,
  labels: Sequence[str],
  *,
  sides: Sequence[str] | None = None,
  seed: int = 0,
) -> Selection:
  """The training triples of a relation or two, grouped by an entity.

  Args:
    data: triples, or paths, whose single edges are the triples.
    labels: a relation, or two, such as a relation and its inverse.
    sides: `head` or `tail` of each relation: whose entities are the groups.
      By default those that leave the most triples in groups large enough.
    seed: decides which triples are sampled if there are too many.

  Raises:
    MapError: an unknown label or side, or too few triples.
  """
  if len(labels) not in (1, 2) or len(set(labels)) < len(labels):
    raise MapError(
      f'relations are {", ".join(map(repr, labels))}: expected one, or two '
      'different ones'
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
    least=LEAST_OF_ENTITY,
    seed=seed,
  )


def _select(
  triples: np.ndarray,  # int32 [N, 3]
  column: np.ndarray,  # int64 [N]
  key: np.ndarray,  # int32 [N], what they are grouped by
  *,
  labels: tuple[str, ...],
  kind: str,
  grouped_by: str,
  least: int,
  seed: int,
  sides: tuple[str, ...] = (),
) -> Selection:
  """Drops small groups, samples if there are too many points."""
  groups, group, counts = np.unique(
    key, return_inverse=True, return_counts=True
  )
  order = np.argsort(-counts, kind='stable')
  rows = np.flatnonzero(counts[group] >= least)
  shown = ', '.join(map(repr, labels))
  if len(rows) < _LEAST_POINTS:
    raise MapError(
      f'{shown}: {len(triples):,} training triples, {len(rows):,} of them of '
      f'{"a relation" if grouped_by == "relation" else "an entity"} with at '
      f'least {least} here: expected at least {_LEAST_POINTS}'
    )
  large = order[counts[order] >= least]
  place = np.full(len(groups), -1)
  place[large] = np.arange(len(large))
  kept = len(rows)
  if kept > _MOST_POINTS:
    generator = np.random.default_rng(seed)
    rows = np.sort(generator.choice(rows, _MOST_POINTS, replace=False))
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
  """The same points, inverse relations of the graph side by side."""
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
  """Those of some relations that are another's inverse, each with it.

  Two relations are each other's inverse if most of their triples are the
  other's with head and tail exchanged.

  Args:
    triples: int32 [T, 3], of the whole graph.
    relations: relation indices.
  """
  edges: dict[int, set[tuple[int, int]]] = {one: set() for one in relations}
  mirrored: dict[int, set[tuple[int, int]]] = {one: set() for one in relations}
  some = triples[np.isin(triples[:, RELATION], relations)]
  for head, relation, tail in some.tolist():
    edges[relation].add((head, tail))
    mirrored[relation].add((tail, head))

  def overlap(one: int, other: int) -> float:  # Jaccard's
    common = len(edges[one] & mirrored[other])
    return common / (len(edges[one]) + len(edges[other]) - common)

  found = {}
  for one in relations:
    others = [other for other in relations if other != one]
    best = max(others, key=lambda other: overlap(one, other), default=one)
    if best != one and overlap(one, best) >= _LEAST_OVERLAP:
      found[one] = best
  return {a: b for a, b in found.items() if found.get(b) == a}


def _num_kept(key: np.ndarray) -> int:
  """How many triples are in groups that are large enough."""
  counts = np.unique(key, return_counts=True)[1]
  return int(counts[counts >= LEAST_OF_ENTITY].sum())


def _training_triples(data: arrays.DataSet) -> np.ndarray:
  """The distinct training triples: int32 [N, 3]."""
  if isinstance(data, graph_lib.KnowledgeGraph):
    return np.unique(data.train, axis=0)
  return np.unique(data.train.single_edges(), axis=0)


def _look_up(find: Callable[[str], int], label: str) -> int:
  try:
    return find(label)
  except KeyError as error:
    raise MapError(error.args[0]) from None
