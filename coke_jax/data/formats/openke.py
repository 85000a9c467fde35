"""Reads the id files of OpenKE: entity2id.txt, relation2id.txt, train2id.txt.

The first line of each file is the number of lines that follow. In entity2id.txt
and relation2id.txt, each line contains a label and its id. In train2id.txt,
valid2id.txt and test2id.txt, each line contains the ids of head, tail and
relation, in this order.
"""

import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from coke_jax.data import text_files
from coke_jax.data.formats import delimited
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib


def is_openke(folder: pathlib.Path) -> bool:
  """Returns whether a folder contains the files of OpenKE."""
  return all(
    (folder / f'{name}2id.txt').is_file()
    for name in ('entity', 'relation', 'train')
  )


def read(path: pathlib.Path, options: options_lib.Options) -> rows_lib.Source:
  """Opens a file of triples of ids, and reads the labels in its folder.

  Args:
    path: the file of triples, such as train2id.txt.
    options: the options. Only `on_bad_line` and `escape_labels` are used.

  Returns:
    The rows, which contain labels. Iterating over them raises
    `text_files.DataError` if the file cannot be read or line 1 states a wrong
    number of triples. If `on_bad_line` is 'stop', a bad line also raises this
    error.

  Raises:
    text_files.DataError: the labels cannot be read.
  """
  skip = options.on_bad_line == 'skip'
  entities = _labels(path.with_name('entity2id.txt'))
  relations = _labels(path.with_name('relation2id.txt'))
  log = rows_lib.RowLog(str(path), skip)
  return rows_lib.Source(_rows(path, entities, relations, log), log)


def _rows(
  path: pathlib.Path,
  entities: dict[str, str],
  relations: dict[str, str],
  log: rows_lib.RowLog,
) -> Iterator[tuple[int, Sequence[Any]]]:
  for number, line in _counted_lines(path, log):
    fields = line.split()
    if len(fields) != 3:
      log.rows += 1
      log.bad(
        number,
        line,
        'wrong number of fields',
        f'expected the ids of head, tail and relation, got {len(fields)} '
        'fields',
      )
      continue
    head, tail, relation = fields
    try:
      yield number, (entities[head], relations[relation], entities[tail])
    except KeyError as error:
      log.rows += 1
      log.bad(
        number,
        line,
        'unknown id',
        f'id {error.args[0]} is unknown: expected the ids of head, tail and '
        f'relation, as in {path.parent}/entity2id.txt and relation2id.txt',
      )


def _labels(path: pathlib.Path) -> dict[str, str]:
  """Reads a file of labels and ids. Returns a dict from ids to labels."""
  log = rows_lib.RowLog(str(path))
  labels: dict[str, str] = {}
  lines: dict[str, int] = {}  # Maps each label to the number of its line.
  for number, line in _counted_lines(path, log):
    # A label may contain spaces.
    label, tab, text = line.rpartition('\t')
    if not tab:
      label, _, text = line.rpartition(' ')
    text = text.strip()
    if not label or not (text.isascii() and text.isdecimal()):
      log.bad(number, line, '', 'expected a label, a tab and an id')
    if text in labels:
      log.bad(number, line, '', f'an earlier line has the same id {text}')
    if label in lines:
      log.bad(number, line, '', f'line {lines[label]} has the same label')
    labels[text] = label
    lines[label] = number
  return labels


def _counted_lines(
  path: pathlib.Path, log: rows_lib.RowLog
) -> Iterator[tuple[int, str]]:
  """Yields the lines after line 1, which states the number of these lines.

  Raises:
    text_files.DataError: the number in the first line is wrong.
  """
  expected = -1
  count = 0
  for number, line in delimited.read_lines(path, log):
    log.count_line_end(line)
    text = delimited.strip_line_end(line)
    if number == 1:
      stripped = text.strip()
      if not (stripped.isascii() and stripped.isdecimal()):
        raise text_files.DataError(
          f'{path}:1: {text_files.show_line(text)}: expected the number of '
          'lines that follow'
        )
      expected = int(stripped)
    elif text.strip():
      count += 1
      yield number, text
  if expected < 0:
    raise text_files.DataError(
      f'{path}: empty: expected the number of lines that follow in line 1'
    )
  if count != expected:
    raise text_files.DataError(
      f'{path}: line 1 states {expected:,}: expected as many lines after it, '
      f'but {count:,} follow'
    )
