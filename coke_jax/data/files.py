"""Strict reading of triple files: plain, .gz, .bz2 or .xz.

Labels are opaque text: they are never trimmed, unquoted, re-typed or read as
missing. What cannot be read exactly is an error that names the file, the line
and what was expected; nothing is skipped. However hostile a file is, reading it
takes memory and time in proportion to its size.
"""

import contextlib
import dataclasses
import fcntl
import functools
import os
import pathlib
import re
import uuid
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from coke_jax.data import compression

TRIPLE_COLUMNS = ('head', 'relation', 'tail')

# The names a split's file may have, before the compression suffix.
_SPLIT_STEMS = {
  'train': ('train',),
  'valid': ('valid', 'dev'),
  'test': ('test',),
}
_EXTENSIONS = ('', '.txt', '.tsv')
MOST_LINE_BYTES = 1 << 20  # of a line, its end among them
_BYTE_ORDER_MARKS = (b'\xef\xbb\xbf', b'\xff\xfe', b'\xfe\xff')
_SHOWN_CHARACTERS = 200  # of a wrong line, in its error
_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')  # see `whole_file`


class DataError(ValueError):
  """Input that cannot be read exactly, with the place and what was expected."""


class WriteError(OSError):
  """A file that cannot be written, with its name and the reason."""


class LabelIndex(dict[str, int]):
  """Gives each new label the next integer, in the order of first appearance."""

  def __missing__(self, label: str) -> int:
    self[label] = index = len(self)
    return index


@dataclasses.dataclass(frozen=True)
class TripleFormat:
  """How the lines of a triple file are laid out.

  Attributes:
    columns: the order of `head`, `relation`, `tail` on a line.
    delimiter: the text between two columns.
    header: whether the first line names the columns and is not a triple.
  """

  columns: tuple[str, ...] = TRIPLE_COLUMNS
  delimiter: str = '\t'
  header: bool = False

  def __post_init__(self) -> None:
    if sorted(self.columns) != sorted(TRIPLE_COLUMNS):
      raise DataError(
        f'columns are {self.columns}: expected head, relation and tail, each '
        'once, in the order of the files'
      )
    if not self.delimiter or '\n' in self.delimiter or '\r' in self.delimiter:
      raise DataError(
        f'delimiter is {self.delimiter!r}: expected at least one character '
        'and no line end'
      )


def find_split(folder: pathlib.Path, split: str) -> pathlib.Path:
  """The one file in `folder` that holds `split` (train, valid or test).

  Raises:
    DataError: when there is no such file, or more than one.
  """
  names = [
    stem + extension + suffix
    for stem in _SPLIT_STEMS[split]
    for extension in _EXTENSIONS
    for suffix in ('', *compression.SUFFIXES)
  ]
  found = [folder / name for name in names if (folder / name).is_file()]
  if not found:
    stems = ' or '.join(_SPLIT_STEMS[split])
    raise DataError(
      f'{folder}: no {split} file: expected {stems}, bare or with .txt or '
      '.tsv, plain or with .gz, .bz2 or .xz after it'
    )
  if len(found) > 1:
    raise DataError(
      f'{folder}: more than one {split} file: '
      f'{", ".join(path.name for path in found)}: keep one'
    )
  return found[0]


def read_lines(
  path: pathlib.Path,
  on_bad_line: Callable[[DataError], None] | None = None,
) -> Iterator[tuple[int, str]]:
  r"""Yields (line number from 1, text without its line end) of a UTF-8 file.

  Lines end with `\n`; a file may instead end every line with `\r\n`. The last
  line may lack its end. See `read_stream` for `on_bad_line`.

  Raises:
    DataError: the file cannot be opened or decompressed, expands without end,
      is not UTF-8, starts with a byte-order mark, mixes both line ends, or has
      a line of more than MOST_LINE_BYTES.
  """
  try:
    stream = compression.open_file(path)
  except OSError as error:
    raise DataError(f'{path}: cannot be opened: {error}') from error
  with stream:
    yield from read_stream(stream, str(path), on_bad_line)


def read_stream(
  stream: BinaryIO,
  name: str,
  on_bad_line: Callable[[DataError], None] | None = None,
) -> Iterator[tuple[int, str]]:
  """Like `read_lines`, of bytes that are open already.

  Args:
    stream: gives lines of bytes, such as `sys.stdin.buffer`.
    name: what errors call it.
    on_bad_line: is told of a line that is not UTF-8 or ends unlike the first,
      which is left out then; None: it is an error.
  """
  carriage_return = False  # whether the lines end with \r\n
  number = 0
  try:
    read_line = functools.partial(stream.readline, MOST_LINE_BYTES + 1)
    for number, raw in enumerate(iter(read_line, b''), start=1):
      if len(raw) > MOST_LINE_BYTES:
        raise DataError(
          f'{name}:{number}: {raw[:_SHOWN_CHARACTERS]!r}... is longer than '
          f'{MOST_LINE_BYTES:,} bytes: expected a line that is no longer'
        )
      if number == 1:
        if raw.startswith(_BYTE_ORDER_MARKS):
          raise DataError(
            f'{name}:1: starts with a byte-order mark: expected plain UTF-8'
          )
        carriage_return = raw.endswith(b'\r\n')
      wrong, whole = '', raw
      if raw.endswith(b'\n'):
        if raw.endswith(b'\r\n') != carriage_return:
          wrong = (
            f'ends with {"LF" if carriage_return else "CR LF"} and line 1 with '
            f'{"CR LF" if carriage_return else "LF"}: expected one kind of '
            'line end in the whole file'
          )
        raw = raw[: -2 if carriage_return else -1]
      elif carriage_return and raw.endswith(b'\r'):
        wrong = 'ends in the middle of a CR LF'
      try:
        text = raw.decode('utf-8')
      except UnicodeDecodeError as error:
        wrong = wrong or (
          f'byte {raw[error.start]:#04x} at column {error.start + 1} is not '
          f'UTF-8 ({error.reason})'
        )
      if wrong:
        bad = DataError(f'{name}:{number}: {show_line(whole)}: {wrong}')
        if on_bad_line is None:
          raise bad
        on_bad_line(bad)
        continue
      yield number, text
  except compression.ERRORS as error:
    raise DataError(
      f'{name}: cannot be read after line {number}: {error}'
    ) from error


def read_triples(
  path: pathlib.Path,
  entities: LabelIndex,
  relations: LabelIndex,
  layout: TripleFormat,
) -> np.ndarray:
  """The triples of one file, as integers by first appearance of each label.

  Args:
    path: the file, see `find_split`.
    entities: grows by the entity labels met for the first time.
    relations: grows by the relation labels met for the first time.
    layout: how the lines are laid out.

  Returns:
    int32 [lines, 3]: head, relation, tail.

  Raises:
    DataError: with file, line number, line and expectation.
  """
  head, relation, tail = (layout.columns.index(c) for c in TRIPLE_COLUMNS)
  delimiter = layout.delimiter
  flat: list[int] = []
  lines = read_lines(path)
  if layout.header and next(lines, None) is None:
    raise DataError(f'{path}: empty: expected a header line')
  for number, line in lines:
    fields = line.split(delimiter)
    if len(fields) != 3 or not all(fields):
      raise DataError(
        f'{path}:{number}: {show_line(line)}: expected 3 non-empty fields '
        f'({", ".join(layout.columns)}) between {delimiter!r}, got '
        f'{count_fields(fields)}'
      )
    flat.append(entities[fields[head]])
    flat.append(relations[fields[relation]])
    flat.append(entities[fields[tail]])
  return np.array(flat, dtype=np.int32).reshape(-1, 3)


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Names the file that is written in a `with` statement if that fails.

  Raises:
    WriteError: for any OSError, such as of a full disk.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(f'{path}: cannot be written: {error}') from error


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """A file to write beside `path`, which takes its place when all is well.

  Its name is its own, so that several processes can do the same at once. What
  was at `path` before stays until then, and stays if the block fails. A kill
  leaves the unfinished file behind, for `remove_unfinished`.

  Raises:
    WriteError: it cannot be written.
  """
  unfinished = path.with_name(f'.{path.name}.{uuid.uuid4().hex}')
  try:
    with writing(path), unfinished.open('xb') as held:
      with contextlib.suppress(OSError):  # some network file systems have none
        fcntl.flock(held, fcntl.LOCK_EX)
      yield unfinished
      os.fsync(held.fileno())
      unfinished.replace(path)
  finally:
    with contextlib.suppress(OSError):  # it may never have been there
      unfinished.unlink()


def remove_unfinished(folder: pathlib.Path) -> None:
  """Deletes what kills have left of `whole_file`, in one folder.

  A process that is still writing holds a lock, and keeps its file.
  """
  for path in list(folder.iterdir()):
    if _UNFINISHED.fullmatch(path.name):
      with contextlib.suppress(OSError), path.open('rb') as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()


def show_line(line: str | bytes) -> str:
  """A line as it goes into an error: quoted, control characters visible."""
  if len(line) > _SHOWN_CHARACTERS:
    return f'{line[:_SHOWN_CHARACTERS]!r}... ({len(line)} in all)'
  return repr(line)


def count_fields(fields: list[str]) -> str:
  """How many fields a line has, as it goes into an error."""
  empty = sum(not field for field in fields)
  return f'{len(fields)}' + (f', {empty} of them empty' if empty else '')
