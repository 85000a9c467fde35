"""Array functions: groups of equal rows, row offsets, ranges of integers."""

import math
from typing import NamedTuple

import numpy as np

# Number of rows that `RowFinder` compares at a time.
_ROWS_PER_PART = 1 << 20


def group_rows(rows: np.ndarray) -> tuple[np.ndarray, int]:
  """Numbers the distinct rows of an array.

  Args:
    rows: non-negative integers [N, K].

  Returns:
    int64 [N]: the group of each row. Equal rows have the same group.
    The number of groups.
  """
  steps, group = _pack(rows)
  return group, steps[-1].num_groups if steps else min(len(rows), 1)


def distinct_values(values: np.ndarray) -> np.ndarray:
  """Returns the sorted distinct values of an array [N].

  This function is up to ten times faster than `np.unique`, which finds the
  values by hashing (NumPy 2.4).
  """
  ordered = np.sort(values)
  new = np.ones(len(ordered), dtype=bool)
  np.not_equal(ordered[1:], ordered[:-1], out=new[1:])
  return ordered[new]


def distinct_rows(rows: np.ndarray) -> np.ndarray:
  """Returns the distinct rows of an array in lexicographic order.

  This function takes less memory and time than `group_rows`.

  Args:
    rows: non-negative integers [N, K].

  Returns:
    Integers [groups, K], with the dtype of `rows`.
  """
  spans = [int(column.max(initial=0)) + 1 for column in rows.T]
  if not len(rows) or math.prod(spans) > np.iinfo(np.int64).max:
    group, num_groups = group_rows(rows)
    distinct = np.empty((num_groups, rows.shape[1]), rows.dtype)
    distinct[group] = rows
    return distinct
  keys = np.zeros(len(rows), dtype=np.int64)
  for column, span in zip(rows.T, spans, strict=True):
    keys *= span
    keys += column
  keys = distinct_values(keys)
  distinct = np.empty((len(keys), rows.shape[1]), rows.dtype)
  for place in reversed(range(rows.shape[1])):
    keys, distinct[:, place] = np.divmod(keys, spans[place])
  return distinct


class RowFinder:
  """Finds the rows of other arrays that are equal to one of N stored rows.

  Attributes:
    group: int64 [N], the group of each stored row, as in `group_rows`.
    num_groups: the number of groups.
  """

  def __init__(self, rows: np.ndarray):
    """Sorts the rows to store.

    Args:
      rows: non-negative integers [N, K], K >= 1.
    """
    self._steps, self.group = _pack(rows)
    self.num_groups = self._steps[-1].num_groups

  def find(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Finds rows that are equal to a stored row.

    Args:
      rows: non-negative integers [M, K].

    Returns:
      int64 [found]: the group of each row that is equal to a stored row.
      int64 [found]: the indices of these rows, in ascending order.
    """
    parts = [
      self._find(rows[start : start + _ROWS_PER_PART], start)
      for start in range(0, len(rows), _ROWS_PER_PART)
    ]
    empty = np.zeros(0, np.int64)
    return (
      np.concatenate([empty, *(group for group, _ in parts)]),
      np.concatenate([empty, *(index for _, index in parts)]),
    )

  def _find(
    self, rows: np.ndarray, first: int
  ) -> tuple[np.ndarray, np.ndarray]:
    index = np.arange(len(rows))
    group = np.zeros(len(rows), dtype=np.int64)
    for step in self._steps:
      for column, span in zip(step.columns, step.spans, strict=True):
        values = rows[index, column]
        known = values < span
        index = index[known]
        group = group[known] * span + values[known]
      if not step.num_groups:
        return group[:0], index[:0]
      place = np.searchsorted(step.keys, group)
      place = np.minimum(place, step.num_groups - 1)
      equal = step.keys[place] == group
      index, group = index[equal], place[equal]
    return group, index + first


class _Step(NamedTuple):
  """Splits the groups of the previous step by the values of more columns.

  The key of a row is an integer that combines its previous group with these
  values. Rows with equal keys form a group.

  Attributes:
    columns: the indices of the columns.
    spans: the exclusive upper bound of the values of each column.
    keys: int64 [groups], the sorted distinct keys. The position of a key is the
      number of its group.
  """

  columns: list[int]
  spans: list[int]
  keys: np.ndarray

  @property
  def num_groups(self) -> int:
    return len(self.keys)


def _pack(rows: np.ndarray) -> tuple[list[_Step], np.ndarray]:
  """Numbers the distinct rows, several columns at a time.

  Args:
    rows: non-negative integers [N, K].

  Returns:
    The steps, and int64 [N], the group of each row. Groups are in the
    lexicographic order of the rows.
  """
  group = np.zeros(len(rows), dtype=np.int64)
  steps: list[_Step] = []
  columns: list[int] = []
  spans: list[int] = []
  bound = 1  # All keys are below this number.
  for column, values in enumerate(rows.T):
    span = int(values.max(initial=0)) + 1
    if bound > np.iinfo(np.int64).max // span:
      # Renumber the groups. Otherwise the keys would overflow.
      keys, group = np.unique(group, return_inverse=True)
      steps.append(_Step(columns, spans, keys))
      columns, spans, bound = [], [], max(len(keys), 1)
    group = group * span + values
    columns.append(column)
    spans.append(span)
    bound *= span
  if columns:
    keys, group = np.unique(group, return_inverse=True)
    steps.append(_Step(columns, spans, keys))
  return steps, group


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


def count_before(values: np.ndarray) -> np.ndarray:
  """Counts the equal values that precede each value of an array: int64 [N]."""
  order = np.argsort(values, kind='stable')
  ordered = values[order]
  new = np.ones(len(values), dtype=bool)
  new[1:] = ordered[1:] != ordered[:-1]
  starts = np.flatnonzero(new)
  place = np.arange(len(values)) - starts[np.cumsum(new) - 1]
  counts = np.empty(len(values), dtype=np.int64)
  counts[order] = place
  return counts
