"""Reads questions from tables and rows whose columns have names.

Columns with usual names, such as `head`, `relation` and `tail`, are found by
name, as in `prepare`. Columns with other names are read in their order.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import in_memory
from coke_jax.predict import questions


def rows(table: Any) -> list[list[Any]] | None:
  """Returns the rows of a data frame, or None for data of another kind.

  Args:
    table: a pandas or polars data frame, a pyarrow table, a structured array of
      NumPy, or anything else.

  Raises:
    questions.QuestionError: the data frame has the columns of head, relation
      and tail, and another column.
  """
  if isinstance(table, np.ndarray) and table.dtype.names:
    positions = _order(table.dtype.names)
    listed = table.reshape(-1).tolist()
    return [[labels[position] for position in positions] for labels in listed]
  names = in_memory.column_names(table)
  if not names:
    return None
  columns = [
    in_memory.column_values(table, position) for position in _order(names)
  ]
  return list(map(list, zip(*columns, strict=True)))


def row(labels: Any) -> Any:
  """Returns the labels of a row in the order head, relation, tail.

  Args:
    labels: a named tuple, a row of a pandas data frame or of a structured array
      of NumPy. Anything else is returned unchanged.

  Raises:
    questions.QuestionError: as in `rows`.
  """
  names = getattr(labels, '_fields', None)
  if isinstance(labels, np.void):
    names, labels = labels.dtype.names, labels.item()
  elif hasattr(labels, 'iloc') and getattr(labels, 'ndim', 0) == 1:
    if not len(labels) or not isinstance(labels.iloc[0], str):
      return labels  # It may be a series of many questions.
    names, labels = list(labels.index), labels.tolist()
  if not names:
    return labels
  return [labels[position] for position in _order(names)]


def _order(names: Sequence[Any]) -> list[int]:
  """Returns the positions of the columns to read, in order."""
  texts = [str(name) for name in names]
  usual = columns_lib.usual(texts)
  if usual is None:
    return list(range(len(texts)))
  others = [text for place, text in enumerate(texts) if place not in usual]
  if others:
    expected = [texts[position] for position in usual]
    raise questions.QuestionError(
      f'the table has {", ".join(map(repr, others))} besides the columns '
      f'{", ".join(map(repr, expected))}: expected only these three columns. '
      'For paths, rename these three columns: columns with other names are '
      'read in their order'
    )
  return usual
