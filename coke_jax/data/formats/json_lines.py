"""Reads JSON lines: one object or one array per line."""

import json
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from coke_jax.data import text_files
from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import delimited
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib


def read(path: pathlib.Path, options: options_lib.Options) -> rows_lib.Source:
  """Opens a file of JSON lines.

  Each line is an array, or an object whose keys are the names of the columns.
  Numbers are labels exactly as they are written, so 1 and 1.0 are different
  labels. The first line determines the columns. Additional keys in later
  objects are ignored.

  Args:
    path: the file, which may be compressed.
    options: the options.

  Returns:
    The rows. Iterating over them raises `text_files.DataError` if the file
    cannot be read, or if a line cannot be read exactly and `on_bad_line` is
    'stop'.
  """
  log = rows_lib.RowLog(str(path), options.on_bad_line == 'skip')
  return rows_lib.Source(_rows(path, options, log), log)


def _rows(
  path: pathlib.Path, options: options_lib.Options, log: rows_lib.RowLog
) -> Iterator[tuple[int, Sequence[Any]]]:
  decoder = json.JSONDecoder(
    parse_int=str, parse_float=str, object_pairs_hook=_object
  )
  # The keys of head, relation, tail and weight in an object, or their positions
  # in an array.
  keys: list[Any] | None = None
  kind: Any = dict
  for number, line in delimited.read_lines(path, log):
    text = line.strip()
    if not text:
      log.rows += 1
      log.leave_out(number, 'blank line')
      continue
    try:
      value = decoder.decode(text)
    except RecursionError:
      value = None
    except ValueError as error:
      log.rows += 1
      log.bad(
        number,
        text,
        'not JSON',
        f'{error}: expected one JSON object or array on each line',
      )
      continue
    if keys is None and isinstance(value, dict | list):
      keys = _keys(value, options, log, number)
      kind = type(value)
    if keys is None or not isinstance(value, kind):
      log.rows += 1
      if keys is None:
        reason, like = 'not an object or array', ''
      else:
        reason = 'not an object' if kind is dict else 'not an array'
        like = ', as in the first line'
      expected = reason.removeprefix('not ')
      log.bad(number, text, reason, f'expected {expected}{like}')
      continue
    row: Any = value
    try:
      yield number, [row[key] for key in keys]
    except (KeyError, IndexError):
      log.rows += 1
      expected = (
        f'the keys {", ".join(keys)}'
        if kind is dict
        else f'at least {max(keys) + 1} items'
      )
      log.bad(number, text, 'missing column', f'expected {expected}')


def _keys(
  value: Any, options: options_lib.Options, log: rows_lib.RowLog, number: int
) -> list[Any]:
  """Returns the key or the position of each column in the first row."""
  place = log.place(number)
  if isinstance(value, dict):
    names = list(value)
    selection = columns_lib.by_name(names, options, place)
    log.set_columns(selection)
    return [names[position] for position in selection.positions]
  if len(value) < 3:
    raise text_files.DataError(
      f'{place}: {text_files.show_line(str(value))}: expected at least 3 items'
    )
  selection = columns_lib.by_position(value, options, place)
  log.set_columns(selection)
  return list(selection.positions)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
  made = dict(pairs)
  if len(made) < len(pairs):
    raise ValueError('an object has a key twice')
  return made
