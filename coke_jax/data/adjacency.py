"""The edges of a graph by relation, and traversal along relation paths."""

import dataclasses
import functools
import itertools
from collections.abc import Iterator

import numpy as np
import scipy.sparse

from coke_jax.data import entity_sets, grouping, vocabulary

# Approximate number of edges in one sparse product. It limits the memory of the
# product to about 200 MB and does not change the result.
EDGES_PER_CHUNK = 1 << 24


@dataclasses.dataclass(frozen=True, eq=False)
class Adjacency:
  """The distinct edges of a graph in both directions.

  If a relation r has an inverse s, there is an edge (t, s, h) for each edge
  (h, r, t).

  Attributes:
    num_entities: V, the number of entities.
    edges: int32 [E, 3], the head, relation and tail of each distinct edge. The
      edges are sorted by relation, then by head, then by tail.
    start: int64 [R + 1]. The edges of relation r are
      `edges[start[r]:start[r + 1]]`.
    base: another graph with the same entities and relations. The edges of this
      graph are those in `edges` and those of `base`. Many graphs can share a
      large base. Default: no other edges.
  """

  num_entities: int
  edges: np.ndarray
  start: np.ndarray
  base: 'Adjacency | None' = None

  @property
  def num_relations(self) -> int:
    """R, the number of relations, including inverse relations."""
    return len(self.start) - 1

  def edges_of(self, relation: int) -> np.ndarray:
    """Returns the distinct edges of a relation: int32 [edges, 3], sorted."""
    edges = self.edges[self.start[relation] : self.start[relation + 1]]
    if self.base is None:
      return edges
    if not len(edges):
      return self.base.edges_of(relation)
    return _distinct(np.concatenate([edges, self.base.edges_of(relation)]))

  def matrix(self, relation: int) -> scipy.sparse.csr_array:
    """Returns the adjacency matrix of a relation: sparse bool [V, V]."""
    edges = self.edges_of(relation)
    counts = np.bincount(edges[:, 0], minlength=self.num_entities)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    shape = (self.num_entities, self.num_entities)
    return scipy.sparse.csr_array(
      (np.ones(len(edges), dtype=bool), edges[:, 2], indptr), shape=shape
    )

  def candidates(self, relation: int) -> np.ndarray:
    """Returns the sorted distinct tails of a relation: int32 [tails].

    These are the candidates C of Guu, Miller and Liang (2015). The tails of an
    inverse relation are the heads of the original relation.
    """
    return np.unique(self.edges_of(relation)[:, 2])

  def candidate_mask(self) -> np.ndarray:
    """Returns bool [R, V]: whether relation r has an edge with tail v."""
    mask = np.zeros((self.num_relations, self.num_entities), dtype=bool)
    mask[self.edges[:, 1], self.edges[:, 2]] = True
    return mask if self.base is None else mask | self.base.candidate_mask()

  def traverse(
    self, source: np.ndarray, relations: np.ndarray
  ) -> entity_sets.EntitySets:
    """Returns all entities reached from each source along its relations.

    These are the answers P of Guu, Miller and Liang (2015). The set is empty if
    the graph has no such path from the source. If a row has no relation, the
    set contains only the source.

    Many queries reach the same set of entities after some step, for example
    after the relation `gender`. For each distinct set and relation, the next
    set is computed once and stored once.

    Args:
      source: int32 [N], entity ids.
      relations: int32 [N, k], relation indices, padded with NO_RELATION on the
        right.

    Returns:
      The sets of the N queries.

    Raises:
      ValueError: an entity id or a relation index is out of range, or
        NO_RELATION precedes a relation in a row.
    """
    _check_ids('source', source, 0, self.num_entities)
    _check_ids('relations', relations, -1, self.num_relations)
    walked = relations != vocabulary.NO_RELATION
    if (walked[:, 1:] & ~walked[:, :-1]).any():
      raise ValueError(
        'relations have gaps: expected NO_RELATION only at the end of a row'
      )
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
    return entity_sets.EntitySets(
      set_of,
      grouping.indptr_of(sizes),
      np.concatenate([rows.indices for rows in finished], dtype=np.int32),
      self.num_entities,
    )

  def _neighbors(
    self, entities: np.ndarray, relations: np.ndarray
  ) -> Iterator[np.ndarray]:
    """Yields the sorted neighbors of each entity along its relation.

    Args:
      entities: int32 [M], entity ids.
      relations: int64 [M], the relation of each entity.

    Yields:
      int32 [neighbors], M times.
    """
    keys = relations.astype(np.int64) * self.num_entities + entities
    first = np.searchsorted(self._edge_keys, keys, side='left')
    end = np.searchsorted(self._edge_keys, keys, side='right')
    if self.base is None:
      for low, high in zip(first.tolist(), end.tolist(), strict=True):
        yield self._tails[low:high]
      return
    below = self.base._neighbors(entities, relations)
    for low, high, others in zip(
      first.tolist(), end.tolist(), below, strict=True
    ):
      yield others if low == high else np.union1d(self._tails[low:high], others)

  @functools.cached_property
  def _edge_keys(self) -> np.ndarray:
    """An integer for the relation and head of each edge: int64 [E], sorted."""
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
      reached: sparse bool [sets, V], the sets to start from.
      moves: int64 [M], the distinct pairs of a set and a relation to follow,
        each as set * R + relation.

    Returns:
      Sparse bool [new sets, V] with sorted indices: the distinct sets that the
      moves lead to.
      int64 [M]: the row of the new set of each move.
    """
    # Maps the sorted ids of a set to the row of the set.
    new: dict[bytes, int] = {}
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
  triples: np.ndarray,
  num_entities: int,
  inverse: np.ndarray,
  base: Adjacency | None = None,
) -> Adjacency:
  """Builds the graph of triples, with edges in both directions.

  Args:
    triples: int32 [T, 3], head, relation and tail. A triple may occur several
      times, also as a triple of the inverse relation.
    num_entities: V, the number of entities.
    inverse: int32 [R], the inverse of each relation. NO_RELATION for relations
      without an inverse, whose edges have one direction.
    base: a graph whose edges are added. Default: no other edges.
  """
  back = triples[:, ::-1].copy()  # The columns are tail, relation, head.
  back[:, 1] = inverse[triples[:, 1]]
  both = np.concatenate([triples, back[back[:, 1] != vocabulary.NO_RELATION]])
  edges = _distinct(both)
  counts = np.bincount(edges[:, 1], minlength=len(inverse))
  return Adjacency(num_entities, edges, grouping.indptr_of(counts), base)


def _distinct(triples: np.ndarray) -> np.ndarray:
  """Returns distinct triples sorted by relation, head, tail: int32 [E, 3]."""
  return grouping.distinct_rows(triples[:, [1, 0, 2]])[:, [1, 0, 2]]


def _rows(
  indices: np.ndarray, indptr: np.ndarray, width: int
) -> scipy.sparse.csr_array:
  """Returns sets of entities as rows of a sparse bool matrix [sets, width]."""
  ones = np.ones(len(indices), dtype=bool)
  shape = (len(indptr) - 1, width)
  return scipy.sparse.csr_array((ones, indices, indptr), shape=shape)


def _products(
  reached: scipy.sparse.csr_array,
  sets: np.ndarray,
  step: scipy.sparse.csr_array,
) -> Iterator[np.ndarray]:
  """Yields for each of M sets the entities that a relation leads to.

  Args:
    reached: sparse bool [all sets, V].
    sets: integers [M], the rows of the M sets in `reached`.
    step: sparse bool [V, V], the adjacency matrix of the relation.

  Yields:
    int32 [entities], sorted entity ids, M times.
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
  """Divides rows with costs [M] into slices that cost about EDGES_PER_CHUNK."""
  passed = np.cumsum(cost, dtype=np.int64) // EDGES_PER_CHUNK
  cuts = np.flatnonzero(np.diff(passed)) + 1
  ends = [0, *cuts.tolist(), len(cost)]
  for low, high in itertools.pairwise(ends):
    yield slice(low, high)


def _check_ids(name: str, ids: np.ndarray, least: int, end: int) -> None:
  if ids.size and (ids.min() < least or ids.max() >= end):
    raise ValueError(
      f'{name} from {ids.min()} to {ids.max()}: expected {least} to {end - 1}'
    )
