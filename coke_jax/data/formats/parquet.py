"""Reads Parquet files with pyarrow."""

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from coke_jax.data import text_files
from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import extras
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib


def read(path: pathlib.Path, options: options_lib.Options) -> rows_lib.Source:
  """Opens a Parquet file.

  Only the needed columns are read, in batches.

  Args:
    path: the file.
    options: the options.

  Returns:
    The rows, numbered from 1. Iterating over them raises `text_files.DataError`
    if the file cannot be read.

  Raises:
    text_files.DataError: pyarrow is not installed, the file cannot be opened,
      or a column does not exist.
  """
  log = rows_lib.RowLog(str(path), options.on_bad_line == 'skip', ', row ')
  module = extras.load('pyarrow.parquet', path)
  problems = (OSError, extras.load('pyarrow', path).ArrowException)
  try:
    file = module.ParquetFile(path)
  except problems as error:
    raise text_files.DataError(f'{path}: cannot be read: {error}') from error
  names = list(file.schema_arrow.names)
  selection = columns_lib.by_name(names, options, str(path))
  log.set_columns(selection)
  return rows_lib.Source(_rows(file, selection, log, problems), log)


def _rows(
  file: Any,
  selection: columns_lib.Selection,
  log: rows_lib.RowLog,
  problems: tuple[type[Exception], ...],
) -> Iterator[tuple[int, Sequence[Any]]]:
  names = [file.schema_arrow.names[place] for place in selection.positions]
  number = 0
  try:
    with file:
      for batch in file.iter_batches(columns=names):
        columns = [batch.column(name).to_pylist() for name in names]
        for row in zip(*columns, strict=True):
          number += 1
          yield number, row
  except problems as error:
    raise text_files.DataError(
      f'{log.name}: cannot be read after row {number}: {error}'
    ) from error
