"""Finds pairs of relations that share (head, tail) pairs."""

import dataclasses

import numpy as np
import scipy.sparse

from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping


@dataclasses.dataclass(frozen=True)
class Rules:
  """M pairs of relations that give triples away, see `leaks`.

  Attributes:
    first: integers [M], the relation with the smaller index.
    second: integers [M], the relation with the larger index. For a symmetric
      relation, `second` equals `first`.
    shared: integers [M], as in `leaks.RelationLeak`.
    overlap: float64 [M], as in `leaks.RelationLeak`.
    matrix: int32 [R, R], symmetric, with 1 for the M pairs, otherwise 0.
  """

  first: np.ndarray
  second: np.ndarray
  shared: np.ndarray
  overlap: np.ndarray
  matrix: scipy.sparse.csr_array

  def count(self, relation: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Returns the number of triples that each pair of relations gives away.

    Args:
      relation: int [N], the relation of each triple that is given away.
      other: int [N], the relation of the training triple that gives it away.

    Returns:
      int64 [M].
    """
    size = self.matrix.shape[0]
    keys = self.first.astype(np.int64) * size + self.second
    hits = np.minimum(relation, other).astype(np.int64) * size
    hits += np.maximum(relation, other)
    place = {key: i for i, key in enumerate(keys.tolist())}
    counts = np.zeros(len(keys), dtype=np.int64)
    for key, count in zip(
      *(values.tolist() for values in np.unique(hits, return_counts=True)),
      strict=True,
    ):
      counts[place[key]] = count
    return counts


class Pairs:
  """The relations between each ordered pair of entities."""

  def __init__(self, graph: graph_lib.KnowledgeGraph):
    triples = graph.triples(*graph_lib.SPLITS)
    head, relation, tail = triples.T
    ends = np.concatenate(
      [np.stack([head, tail], axis=1), np.stack([tail, head], axis=1)]
    )
    ids, num_pairs = grouping.group_rows(ends)
    shape = (num_pairs, graph.vocabulary.num_relations)
    forward, backward = np.split(ids, 2)
    loop = head == tail
    self._all = _incidence(forward, relation, shape)
    self._open = _incidence(forward[~loop], relation[~loop], shape)
    self._swapped = _incidence(backward[~loop], relation[~loop], shape)
    sizes = np.cumsum([len(graph.split(split)) for split in graph_lib.SPLITS])
    self._of_split = {
      split: tuple(parts)
      for split, *parts in zip(
        graph_lib.SPLITS,
        *(np.split(a, sizes[:-1]) for a in (forward, backward, loop)),
        strict=True,
      )
    }
    self._train = _incidence(
      self._of_split['train'][0], graph.train[:, 1], shape
    )

  def in_train(self, split: str, *, reverse: bool) -> scipy.sparse.csr_array:
    """Finds the training relations between the two entities of each triple.

    Args:
      split: a split with N triples.
      reverse: whether to find relations from tail to head. If so, no relation
        is found for triples with equal head and tail.

    Returns:
      int32 [N, R], 1 for each relation that was found, otherwise 0.
    """
    forward, backward, loop = self._of_split[split]
    if not reverse:
      return self._train[forward]
    keep = scipy.sparse.diags_array((~loop).astype(np.int32), dtype=np.int32)
    found = (keep @ self._train[backward]).tocsr()
    found.eliminate_zeros()
    return found

  def overlaps(
    self, swapped: bool, threshold: float, min_shared: int, *, diagonal: bool
  ) -> Rules:
    """Returns the pairs of relations with enough entity pairs in common.

    Args:
      swapped: whether to swap head and tail of one relation. If so, triples
        with equal head and tail are not counted.
      threshold: as in `leaks.find`.
      min_shared: as in `leaks.find`.
      diagonal: whether to compare each relation with itself. Otherwise, each
        relation is compared with all other relations.
    """
    left = self._open if swapped else self._all
    right = self._swapped if swapped else self._all
    sizes = np.asarray(left.sum(axis=0)).ravel()
    shared = (left.T @ right).tocoo()
    first, second = shared.row, shared.col
    larger = np.maximum(sizes[first], sizes[second])
    overlap = shared.data / np.maximum(larger, 1)
    keep = (first == second) if diagonal else (first < second)
    keep &= (overlap >= threshold) & (shared.data >= min_shared)
    first, second = first[keep], second[keep]
    shape = (len(sizes), len(sizes))
    both = np.concatenate([first, second]), np.concatenate([second, first])
    matrix = _incidence(*both, shape)
    return Rules(first, second, shared.data[keep], overlap[keep], matrix)


def _incidence(
  rows: np.ndarray, columns: np.ndarray, shape: tuple[int, int]
) -> scipy.sparse.csr_array:
  """Returns a sparse int32 matrix with 1 at each (row, column)."""
  ones = np.ones(len(rows), dtype=np.int32)
  matrix = scipy.sparse.coo_array((ones, (rows, columns)), shape=shape).tocsr()
  matrix.data[:] = 1
  return matrix
