"""Sets of entities, such as the known answers of each query."""

import dataclasses

import numpy as np

from coke_jax.data import grouping


@dataclasses.dataclass(frozen=True, eq=False)
class EntitySets:
  """A set of entities for each of N rows. Equal sets are stored once.

  Attributes:
    set_of: int32 [N], the index of each row's set, 0 .. S - 1.
    indptr: int64 [S + 1]. Set i is `indices[indptr[i]:indptr[i + 1]]`.
    indices: int32 [total], the sorted distinct entity ids of each set.
    num_entities: V, the number of entities of the graph.
  """

  set_of: np.ndarray
  indptr: np.ndarray
  indices: np.ndarray
  num_entities: int

  def __len__(self) -> int:
    return len(self.set_of)

  @property
  def sizes(self) -> np.ndarray:
    """The number of entities in each row's set: int64 [N]."""
    return np.diff(self.indptr)[self.set_of]

  def csr(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the sets of some rows in CSR form.

    The result contains a copy of the set for each row, so it can be much larger
    than the stored sets.

    Args:
      rows: integers [B], indices of rows.

    Returns:
      indptr: int64 [B + 1]. The set of the i-th of these rows is
        `indices[indptr[i]:indptr[i + 1]]`.
      indices: int32 [total], entity ids.
    """
    starts, counts = self.indptr[self.set_of[rows]], self.sizes[rows]
    indptr = grouping.indptr_of(counts)
    return indptr, self.indices[grouping.ranges(starts, counts)]

  def mask(self, rows: np.ndarray) -> np.ndarray:
    """Returns the sets of some rows as boolean masks.

    Args:
      rows: integers [B], indices of rows.

    Returns:
      bool [B, V], True for the entities in the set of each row.
    """
    _, first, place = np.unique(
      self.set_of[rows], return_index=True, return_inverse=True
    )
    indptr, indices = self.csr(rows[first])
    distinct = np.zeros((len(first), self.num_entities), dtype=bool)
    distinct[np.repeat(np.arange(len(first)), np.diff(indptr)), indices] = True
    return distinct[place]

  def contains(self, entities: np.ndarray) -> np.ndarray:
    """Returns whether entity i is in the set of row i.

    Args:
      entities: int32 [N], entity ids.

    Returns:
      bool [N].
    """
    low, high = self.indptr[self.set_of], self.indptr[self.set_of + 1]
    end = high
    # Do the binary searches of all rows at once.
    while (low < high).any():
      middle = (low + high) // 2
      # After a search has finished, `middle` can be one past the last index.
      # The value read does not matter then, because `low` and `high` are final.
      value = self.indices[np.minimum(middle, len(self.indices) - 1)]
      right = (value < entities) & (low < high)
      low = np.where(right, middle + 1, low)
      high = np.where(right, high, middle)
    found = low < end
    found[found] = self.indices[low[found]] == entities[found]
    return found
