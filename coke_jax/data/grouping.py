"""Groups of equal rows, and ranges of integers, as arrays."""

import numpy as np


def group_rows(rows: np.ndarray) -> tuple[np.ndarray, int]:
  """Numbers the distinct rows of an integer array [N, K].

  Returns:
    int64 [N], equal where rows are equal, and how many distinct rows there are.
  """
  group = np.zeros(len(rows), dtype=np.int64)
  num_groups = min(len(rows), 1)
  for column in rows.T:  # a column at a time, so that no key can overflow
    span = int(column.max(initial=0)) + 1
    distinct, group = np.unique(group * span + column, return_inverse=True)
    num_groups = len(distinct)
  return group, num_groups


def ranges(starts: np.ndarray, counts: np.ndarray) -> np.ndarray:
  """The integers from starts[i] on, counts[i] of them, one i after the other.

  Args:
    starts: int64 [N].
    counts: int64 [N].

  Returns:
    int64 [sum of counts].
  """
  before = indptr_of(counts)[:-1]
  return np.arange(int(counts.sum())) + np.repeat(starts - before, counts)


def indptr_of(counts: np.ndarray) -> np.ndarray:
  """Where each row's answers begin and the last row's end: int64 [N + 1]."""
  return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)])
