"""Array functions: groups of equal rows, row offsets, ranges of integers."""

import numpy as np


def group_rows(rows: np.ndarray) -> tuple[np.ndarray, int]:
  """Numbers the distinct rows of an array.

  Args:
    rows: non-negative integers [N, K].

  Returns:
    int64 [N]: the group of each row. Equal rows have the same group.
    The number of groups.
  """
  group = np.zeros(len(rows), dtype=np.int64)
  num_groups = min(len(rows), 1)
  # Renumber the groups after every column. Otherwise keys could overflow.
  for column in rows.T:
    span = int(column.max(initial=0)) + 1
    distinct, group = np.unique(group * span + column, return_inverse=True)
    num_groups = len(distinct)
  return group, num_groups


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """Concatenates the ranges starts[i] .. starts[i] + counts[i] - 1.

  Args:
    starts: int64 [N].
    counts: int64 [N].

  Returns:
    int64 [sum of counts].
  """
  before = indptr_of(counts)[:-1]
  return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def indptr_of(counts: np.ndarray) -> np.ndarray:
  """Returns the row offsets of a CSR array from the sizes of its rows.

  Args:
    counts: integers [N], the number of elements of each row.

  Returns:
    int64 [N + 1]. The elements of row i are those at indptr[i]:indptr[i + 1].
  """
  return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
