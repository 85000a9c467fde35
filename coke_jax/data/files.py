"""Strict reading of triple files: plain, .gz, .bz2 or .xz.

Labels are opaque text: they are never trimmed, unquoted, re-typed or read as
missing. What cannot be read exactly is an error that names the file, the line
and what was expected; nothing is skipped.
"""

import bz2
import contextlib
import dataclasses
import io
import lzma
import os
import pathlib
import uuid
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import numpy as np

TRIPLE_COLUMNS = ('head', 'relation', 'tail')

# The names a split's file may have, before the compression suffix.
_SPLIT_STEMS = {
  'train': ('train',),
  'valid': ('valid', 'dev'),
  'test': ('test',),
}
_EXTENSIONS = ('', '.txt', '.tsv')
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
  '.gz': lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
  '.bz2': bz2.BZ2Decompressor,
  '.xz': lzma.LZMADecompressor,
}
_CHUNK_BYTES = 1 << 18
_BYTE_ORDER_MARKS = (b'\xef\xbb\xbf', b'\xff\xfe', b'\xfe\xff')
_SHOWN_CHARACTERS = 200  # of a wrong line, in its error


class DataError(ValueError):
  """Input that cannot be read exactly, with the place and what was expected."""


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
    for suffix in ('', *_DECOMPRESSORS)
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


def read_lines(path: pathlib.Path) -> Iterator[tuple[int, str]]:
  r"""Yields (line number from 1, text without its line end) of a UTF-8 file.

  Lines end with `\n`; a file may instead end every line with `\r\n`. The last
  line may lack its end.

  Raises:
    DataError: the file cannot be opened or decompressed, is not UTF-8, starts
      with a byte-order mark, or mixes both line ends.
  """
  with _open(path) as stream:
    yield from read_stream(stream, str(path))


def read_stream(stream: BinaryIO, name: str) -> Iterator[tuple[int, str]]:
  """Like `read_lines`, of bytes that are open already.

  Args:
    stream: gives lines of bytes, such as `sys.stdin.buffer`.
    name: what errors call it.
  """
  carriage_return = False  # whether the lines end with \r\n
  number = 0
  try:
    for number, raw in enumerate(stream, start=1):
      if number == 1:
        if raw.startswith(_BYTE_ORDER_MARKS):
          raise DataError(
            f'{name}:1: starts with a byte-order mark: expected plain UTF-8'
          )
        carriage_return = raw.endswith(b'\r\n')
      if raw.endswith(b'\n'):
        if raw.endswith(b'\r\n') != carriage_return:
          raise DataError(
            f'{name}:{number}: {show_line(raw)} ends with '
            f'{"LF" if carriage_return else "CR LF"} and line 1 with '
            f'{"CR LF" if carriage_return else "LF"}: expected one kind of '
            'line end in the whole file'
          )
        raw = raw[: -2 if carriage_return else -1]
      elif carriage_return and raw.endswith(b'\r'):
        raise DataError(
          f'{name}:{number}: {show_line(raw)} ends in the middle of a CR LF'
        )
      try:
        text = raw.decode('utf-8')
      except UnicodeDecodeError as error:
        raise DataError(
          f'{name}:{number}: {show_line(raw)}: byte '
          f'{raw[error.start]:#04x} at column {error.start + 1} is not UTF-8 '
          f'({error.reason})'
        ) from None
      yield number, text
  except (OSError, EOFError, lzma.LZMAError, zlib.error) as error:
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
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """A file to write beside `path`, which takes its place when all is well.

  Its name is its own, so that several processes can do the same at once. What
  was at `path` before stays until then, and stays if the block fails.
  """
  unfinished = path.with_name(f'.{path.name}.{uuid.uuid4().hex}')
  try:
    yield unfinished
    with unfinished.open('rb+') as written:
      os.fsync(written.fileno())
    unfinished.replace(path)
  finally:
    unfinished.unlink(missing_ok=True)


def _open(path: pathlib.Path) -> BinaryIO:
  """Opens a file for reading bytes, decompressed by its suffix."""
  try:
    raw = path.open('rb')
  except OSError as error:
    raise DataError(f'{path}: cannot be opened: {error}') from error
  if path.suffix not in _DECOMPRESSORS:
    return raw
  return io.BufferedReader(
    _Decompressed(raw, _DECOMPRESSORS[path.suffix]), _CHUNK_BYTES
  )


class _Decompressed(io.RawIOBase):
  """The content of one or more compressed streams, and nothing beside them.

  The standard library's readers pass over bytes that follow a stream, and take
  a file of no bytes for an empty one; here both are errors.
  """

  def __init__(self, raw: BinaryIO, new_decompressor: Callable[[], Any]):
    self._raw = raw
    self._new = new_decompressor
    self._decompressor = new_decompressor()
    self._compressed = b''

  def readable(self) -> bool:
    """True."""
    return True

  def readinto(self, buffer: Any) -> int:
    """Fills a buffer; 0 at the end of the last stream."""
    while True:
      wants_input = getattr(self._decompressor, 'needs_input', True)
      if not self._compressed and (wants_input or self._decompressor.eof):
        self._compressed = self._raw.read(_CHUNK_BYTES)
      exhausted = wants_input and not self._compressed
      if self._decompressor.eof:
        if not self._compressed:
          return 0
        self._decompressor = self._new()
      data = self._decompressor.decompress(self._compressed, len(buffer))
      self._compressed = self._left_over()
      if data:
        buffer[: len(data)] = data
        return len(data)
      if exhausted and not self._decompressor.eof:
        raise EOFError('the compressed data end too early')

  def _left_over(self) -> bytes:
    """Input that the decompressor has not taken."""
    left: bytes = self._decompressor.unused_data
    return left or getattr(self._decompressor, 'unconsumed_tail', b'')

  def close(self) -> None:
    """Closes the file below, too."""
    self._raw.close()
    super().close()


def show_line(line: str | bytes) -> str:
  """A line as it goes into an error: quoted, control characters visible."""
  if len(line) > _SHOWN_CHARACTERS:
    return f'{line[:_SHOWN_CHARACTERS]!r}... ({len(line)} in all)'
  return repr(line)


def count_fields(fields: list[str]) -> str:
  """How many fields a line has, as it goes into an error."""
  empty = sum(not field for field in fields)
  return f'{len(fields)}' + (f', {empty} of them empty' if empty else '')
