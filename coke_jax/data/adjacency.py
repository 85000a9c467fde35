"""A graph to walk: which entities are reached along which relations."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np
import scipy.sparse

from coke_jax.data import grouping, vocabulary

# The most edges followed in one sparse product: bounds its memory (~200 MB).
_EDGES_AT_ONCE = 1 << 24


@dataclasses.dataclass(frozen=True, eq=False)
class EntitySets:
  """A set of entities for each of N rows; rows with one set share it.

  Attributes:
    set_of: int32 [N], the set of each row.
    indptr: int64 [S + 1]; set i is indices[indptr[i]:indptr[i + 1]].
    indices: int32 [total], entity ids, sorted and distinct within a set.
    num_entities: V.
  """

  set_of: np.ndarray
  indptr: np.ndarray
  indices: np.ndarray
  num_entities: int

  def __len__(self) -> int:
    return len(self.set_of)

  @property
  def sizes(self) -> np.ndarray:
    """How many entities the set of each row has: int64 [N]."""
    return np.diff(self.indptr)[self.set_of]

  def csr(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The sets of some rows written out, which can be large.

    Args:
      rows: integers [B].

    Returns:
      indptr int64 [B + 1] and indices int32 [total].
    """
    starts, counts = self.indptr[self.set_of[rows]], self.sizes[rows]
    indptr = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
    return indptr, self.indices[grouping.ranges(starts, counts)]

  def mask(self, rows: np.ndarray) -> np.ndarray:
    """Whether each entity is in the set of each of some rows: bool [B, V]."""
    _, first, place = np.unique(
      self.set_of[rows], return_index=True, return_inverse=True
    )
    indptr, indices = self.csr(rows[first])
    distinct = np.zeros((len(first), self.num_entities), dtype=bool)
    distinct[np.repeat(np.arange(len(first)), np.diff(indptr)), indices] = True
    return distinct[place]

  def contains(self, entities: np.ndarray) -> np.ndarray:
    """Whether entity i is in the set of row i: int32 [N] -> bool [N]."""
    low, high = self.indptr[self.set_of], self.indptr[self.set_of + 1]
    end = high
    while (low < high).any():  # a binary search in all sets at once
      middle = (low + high) // 2
      # A finished search may stand at the very end: look anywhere, stay.
      value = self.indices[np.minimum(middle, len(self.indices) - 1)]
      right = (value < entities) & (low < high)
      low = np.where(right, middle + 1, low)
      high = np.where(right, high, middle)
    found = low < end
    found[found] = self.indices[low[found]] == entities[found]
    return found


@dataclasses.dataclass(frozen=True, eq=False)
class Adjacency:
  """The distinct edges of a graph, each also in its inverse direction.

  Attributes:
    num_entities: V.
    edges: int32 [E, 3] head, relation, tail; distinct, sorted by relation,
      then head, then tail.
    start: int64 [R + 1]; the edges of relation r are
      edges[start[r]:start[r + 1]].
  """

  num_entities: int
  edges: np.ndarray
  start: np.ndarray

  @property
  def num_relations(self) -> int:
    """R: relations, with their inverses."""
    return len(self.start) - 1

  def matrix(self, relation: int) -> scipy.sparse.csr_array:
    """Which entity leads to which by a relation: sparse bool [V, V]."""
    edges = self.edges[self.start[relation] : self.start[relation + 1]]
    counts = np.bincount(edges[:, 0], minlength=self.num_entities)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (self.num_entities, self.num_entities)
    return scipy.sparse.csr_array(
      (np.ones(len(edges), dtype=bool), edges[:, 2], indptr), shape=shape
    )

  def candidates(self, relation: int) -> np.ndarray:
    """The set C: the entities that end an edge of a relation, sorted.

    For an inverse relation these are the entities that start one.
    """
    edges = self.edges[self.start[relation] : self.start[relation + 1]]
    return np.unique(edges[:, 2])

  def candidate_mask(self) -> np.ndarray:
    """Whether each entity is a candidate of each relation: bool [R, V]."""
    mask = np.zeros((self.num_relations, self.num_entities), dtype=bool)
    mask[self.edges[:, 1], self.edges[:, 2]] = True
    return mask

  def traverse(self, source: np.ndarray, relations: np.ndarray) -> EntitySets:
    """The set P of each query: all entities reached along its relations.

    Queries meet at the same entities again and again (after `gender` there are
    two places to be), so that each distinct set of entities is followed only
    once along each relation, and stored once. A source without edges and a dead
    end reach nothing; a path of no relation reaches its source.

    Args:
      source: int32 [N], entity ids.
      relations: int32 [N, k], relation indices, NO_RELATION on the right.

    Returns:
      The sets of the N queries.

    Raises:
      ValueError: an entity or a relation that the graph cannot have.
    """
    _check_ids('source', source, 0, self.num_entities)
    _check_ids('relations', relations, -1, self.num_relations)
    walked = relations != vocabulary.NO_RELATION
    if (walked[:, 1:] & ~walked[:, :-1]).any():
      raise ValueError('relations have gaps: expected NO_RELATION on the right')
    lengths = walked.sum(axis=1)
    entities, here = np.unique(source, return_inverse=True)
    reached = _rows(entities, np.arange(len(entities) + 1), self.num_entities)
    set_of = np.empty(len(source), dtype=np.int32)
    finished: list[scipy.sparse.csr_array] = []
    num_finished = 0
    for step in range(relations.shape[1] + 1):
      ended = np.flatnonzero(lengths == step)
      kept, place = np.unique(here[ended], return_inverse=True)
      finished.append(reached[kept])
      set_of[ended] = place + num_finished
      num_finished += len(kept)
      walking = np.flatnonzero(lengths > step)
      if not len(walking):
        break
      moves, move = np.unique(
        here[walking] * self.num_relations + relations[walking, step],
        return_inverse=True,
      )
      reached, ends = self._follow(reached, moves)
      here[walking] = ends[move]
    sizes = np.concatenate([np.diff(rows.indptr) for rows in finished])
    return EntitySets(
      set_of,
      np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]),
      np.concatenate([rows.indices for rows in finished], dtype=np.int32),
      self.num_entities,
    )

  def _neighbors(
    self, entities: np.ndarray, relations: np.ndarray
  ) -> Iterator[np.ndarray]:
    """Yields where one entity leads by one relation, sorted: int32 [ids].

    Args:
      entities: int32 [M].
      relations: int64 [M].
    """
    keys = relations.astype(np.int64) * self.num_entities + entities
    first = np.searchsorted(self._edge_keys, keys, side='left')
    end = np.searchsorted(self._edge_keys, keys, side='right')
    for low, high in zip(first.tolist(), end.tolist(), strict=True):
      yield self._tails[low:high]

  @functools.cached_property
  def _edge_keys(self) -> np.ndarray:
    """Relation and head of each edge as one number, ascending: int64 [E]."""
    head, relation, _ = self.edges.T
    return relation.astype(np.int64) * self.num_entities + head

  @functools.cached_property
  def _tails(self) -> np.ndarray:
    """The tail of each edge: int32 [E]."""
    return np.ascontiguousarray(self.edges[:, 2])

  def _follow(
    self, reached: scipy.sparse.csr_array, moves: np.ndarray
  ) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """Follows sets of entities along relations.

    Args:
      reached: sparse bool [sets, V].
      moves: int64 [M], set * R + relation, distinct.

    Returns:
      The distinct sets arrived at, sparse bool [new sets, V] with sorted
      indices, and which of them each move ends in: int64 [M].
    """
    new: dict[bytes, int] = {}  # a set's sorted ids -> its row
    ends = np.empty(len(moves), dtype=np.int64)
    sets, relations = np.divmod(moves, self.num_relations)
    alone = np.diff(reached.indptr)[sets] == 1
    moving = np.flatnonzero(alone)
    entities = reached.indices[reached.indptr[sets[moving]]]
    arrived: Iterator[np.ndarray] = self._neighbors(entities, relations[moving])
    for move, ids in zip(moving, arrived, strict=True):
      ends[move] = new.setdefault(ids.tobytes(), len(new))
    for relation in np.unique(relations[~alone]):
      step = self.matrix(relation)
      moving = np.flatnonzero((relations == relation) & ~alone)
      arrived = _products(reached, sets[moving], step)
      for move, ids in zip(moving, arrived, strict=True):
        ends[move] = new.setdefault(ids.tobytes(), len(new))
    indices = np.frombuffer(b''.join(new), dtype=np.int32)
    sizes = np.array([len(key) for key in new]) // indices.itemsize
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return _rows(indices, indptr, self.num_entities), ends


def from_triples(
  triples: np.ndarray, num_entities: int, inverse: np.ndarray
) -> Adjacency:
  """The graph of some triples, with every edge in both directions.

  Args:
    triples: int32 [T, 3] head, relation, tail; may hold the same edge several
      times, also as an edge of the inverse relation.
    num_entities: V.
    inverse: int32 [R], the inverse of each relation; NO_RELATION for none.
  """
  back = triples[:, ::-1].copy()  # tail, relation, head
  back[:, 1] = inverse[triples[:, 1]]
  both = np.concatenate([triples, back[back[:, 1] != vocabulary.NO_RELATION]])
  edges = _distinct(both)
  counts = np.bincount(edges[:, 1], minlength=len(inverse))
  start = np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
  return Adjacency(num_entities, edges, start)


def _distinct(triples: np.ndarray) -> np.ndarray:
  """Distinct triples by relation, head, tail: int32 [T, 3] -> [E, 3]."""
  head, relation, tail = triples.T
  order = np.lexsort((tail, head, relation))
  ordered = triples[order]
  new = np.ones(len(ordered), dtype=bool)
  new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
  return ordered[new]


def _rows(
  indices: np.ndarray, indptr: np.ndarray, width: int
) -> scipy.sparse.csr_array:
  """Sets of entities as the rows of a sparse bool matrix [sets, width]."""
  ones = np.ones(len(indices), dtype=bool)
  shape = (len(indptr) - 1, width)
  return scipy.sparse.csr_array((ones, indices, indptr), shape=shape)


def _products(
  reached: scipy.sparse.csr_array,
  sets: np.ndarray,
  step: scipy.sparse.csr_array,
) -> Iterator[np.ndarray]:
  """Yields the entities that each of some sets leads to, sorted: int32 [ids].

  Args:
    reached: sparse bool [all sets, V].
    sets: integers [M], rows of `reached`.
    step: sparse bool [V, V].
  """
  degrees = np.diff(step.indptr).astype(np.int64)
  for rows in _chunks(np.diff(reached.indptr)[sets]):
    leaving = reached[sets[rows]]
    for part in _chunks(leaving @ degrees):
      product = leaving[part] @ step
      product.sort_indices()
      ids = product.indices.astype(np.int32, copy=False)
      for low, high in itertools.pairwise(product.indptr):
        yield ids[low:high]


def _chunks(cost: np.ndarray) -> Iterator[slice]:
  """Cuts rows where their summed cost [M] passes another _EDGES_AT_ONCE."""
  passed = np.cumsum(cost, dtype=np.int64) // _EDGES_AT_ONCE
  cuts = np.flatnonzero(np.diff(passed)) + 1
  ends = [0, *cuts.tolist(), len(cost)]
  for low, high in itertools.pairwise(ends):
    yield slice(low, high)


def _check_ids(name: str, ids: np.ndarray, least: int, end: int) -> None:
  if ids.size and (ids.min() < least or ids.max() >= end):
    raise ValueError(
      f'{name} from {ids.min()} to {ids.max()}: expected {least} to {end - 1}'
    )
