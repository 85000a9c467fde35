"""Reads data frames, NumPy arrays and iterables of triples."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import text_files
from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib
from coke_jax.data.formats import values as values_lib


def read(data: Any, options: options_lib.Options) -> rows_lib.Source:
  """Opens data in memory.

  Args:
    data: a pandas or polars data frame, a pyarrow table, a NumPy array with at
      least three columns, or an iterable of triples. A triple is a tuple, a
      list or an array. Triples of a set are sorted, because the order of a set
      differs between processes.
    options: the options. `columns` contains names, or positions counted from
      '1'. If `header` is 'yes', the first row of an array or iterable contains
      the names.

  Returns:
    The rows.

  Raises:
    text_files.DataError: the data have another type or shape, or a column
      cannot be read.
  """
  skip = options.on_bad_line == 'skip'
  names = column_names(data)
  if names is not None:
    log = rows_lib.RowLog('data frame', skip, ', row ')
    selection = columns_lib.by_name(names, options, 'data frame')
    log.set_columns(selection)
    values = [column_values(data, position) for position in selection.positions]
    if not skip:
      for position, column in zip(
        selection.positions[:3], values, strict=False
      ):
        _check_no_fractions(names[position], column, log)
    return rows_lib.Source(enumerate(zip(*values, strict=True), 1), log)
  if isinstance(data, np.ndarray):
    log = rows_lib.RowLog('array', skip, ', row ')
    if data.ndim != 2 or data.shape[1] < 3:
      raise text_files.DataError(
        f'array has the shape {data.shape}: expected [triples, 3]'
      )
    return rows_lib.Source(_sequences(data.tolist(), options, log), log)
  if is_readable(data):
    log = rows_lib.RowLog('triples', skip, ', number ')
    if isinstance(data, set | frozenset):
      data = sorted(data, key=repr)
    return rows_lib.Source(_sequences(data, options, log), log)
  raise text_files.DataError(
    f'data of type {type(data).__name__}: expected the path of a file, a data '
    'frame, an array or an iterable of triples'
  )


def _check_no_fractions(
  name: str, column: list[Any], log: rows_lib.RowLog
) -> None:
  """Checks that pandas did not convert whole numbers to float.

  Raises:
    text_files.DataError: the first value is a float, and a later value is
      missing.
  """
  if not column or not isinstance(column[0], float):
    return
  missing = [
    row for row, value in enumerate(column, 1) if values_lib.is_missing(value)
  ]
  if missing and missing[0] > 1:
    raise text_files.DataError(
      f'{log.place(1)}: {column[0]!r} is a label of type float: expected a '
      f'text or an integer. The column {name!r} has a missing value in row '
      f'{missing[0]}, and pandas then converts whole numbers to float. Leave '
      'out the rows with missing values, and convert the column with '
      "astype('Int64')"
    )


def is_readable(data: Any) -> bool:
  """Returns whether data have a type that `read` accepts."""
  if column_names(data) is not None or isinstance(data, np.ndarray):
    return True
  return isinstance(data, Iterable) and not isinstance(data, str | bytes | dict)


def column_names(data: Any) -> list[str] | None:
  """Returns the column names of a data frame or table, None for other data."""
  if hasattr(data, 'column_names') and hasattr(data, 'column'):
    return list(data.column_names)  # pyarrow
  if hasattr(data, 'columns') and hasattr(data, '__getitem__'):
    return [str(name) for name in data.columns]  # pandas, polars
  return None


def column_values(data: Any, position: int) -> list[Any]:
  """Returns the values of a column of a data frame or table as a list.

  Args:
    data: the data frame or table, for which `column_names` returns a list.
    position: the position of the column, counted from 0.
  """
  if hasattr(data, 'column_names'):
    return list(data.column(position).to_pylist())
  if hasattr(data, 'iloc'):
    return list(data.iloc[:, position].tolist())
  return list(data[data.columns[position]].to_list())


def _sequences(
  data: Iterable[Any], options: options_lib.Options, log: rows_lib.RowLog
) -> Iterator[tuple[int, Sequence[Any]]]:
  """Yields the selected items of each sequence."""
  iterator = iter(data)
  first = next(iterator, None)
  if first is None:
    return
  if not _is_row(first) or len(first) < 3:
    raise text_files.DataError(
      f'{log.place(1)}: {text_files.show_line(repr(first))}: expected a '
      'sequence of head, relation and tail'
    )
  width = len(first)
  rows = enumerate(itertools.chain([first], iterator), 1)
  if hasattr(first, '_fields'):  # a named tuple
    selection = columns_lib.by_name(first._fields, options, log.place(1))
  elif options.header == 'yes':
    log.header = tuple(map(str, first))
    selection = columns_lib.by_name(first, options, log.place(1))
    next(rows)
  else:
    # By default, the first row is a triple, even if it has usual column names.
    log.may_have_header = options.header == 'auto' and columns_lib.is_header(
      first, options_lib.Options()
    )
    selection = columns_lib.by_position(first, options, log.place(1))
  log.set_columns(selection)
  positions = selection.positions
  for number, row in rows:
    if _is_row(row) and len(row) == width:
      yield number, [row[position] for position in positions]
    else:
      log.rows += 1
      log.bad(
        number,
        row,
        'wrong number of items',
        f'expected a sequence of {width} items, as in the first row',
      )


def _is_row(row: Any) -> bool:
  return isinstance(row, tuple | list | np.ndarray)
