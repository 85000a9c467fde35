"""Reads text files strictly, line by line: plain, .gz, .bz2 or .xz.

Labels are opaque text: they are not trimmed, unquoted, converted to numbers or
treated as missing values. A line that cannot be read exactly raises an error.
The message states the file, the line and the reason. Memory and time are
proportional to the size of the file, even for a malicious file.
"""

import codecs
import functools
import logging
import pathlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from coke_jax import errors, progress_bar
from coke_jax.data import compression

MAX_LINE_BYTES = 1 << 20  # maximum length of a line, including its line end

# A file name consists of a stem, an extension and maybe a compression suffix.
_SPLIT_STEMS = {
  'train': ('train',),
  'valid': ('valid', 'dev'),
  'test': ('test',),
}
_EXTENSIONS = ('', '.txt', '.tsv')
_BYTE_ORDER_MARKS = (
  codecs.BOM_UTF8,
  codecs.BOM_UTF16_LE,
  codecs.BOM_UTF16_BE,
)
_SHOWN_FILES = 5  # maximum number of files in an error message
_SHOWN_CHARACTERS = 200  # maximum length of a line in an error message

_MIN_BYTES_OF_BAR = 16 << 20  # Smaller files have no progress bar.
_LINES_PER_UPDATE = 1 << 16  # lines between two updates of a progress bar

_logger = logging.getLogger(__name__)


class DataError(errors.CokeError, ValueError):
  """Data or an option cannot be used. The message states place and reason."""


class LabelIndex(dict[str, int]):
  """A dictionary from label to integer. A new label gets the next integer."""

  def __missing__(self, label: str) -> int:
    self[label] = index = len(self)
    return index


def find_split(folder: pathlib.Path, split: str) -> pathlib.Path:
  """Finds the file of a split in a folder.

  Args:
    folder: the folder.
    split: `train`, `valid` or `test`. The file name consists of this name (or
      `dev` for `valid`), optionally .txt or .tsv, and optionally .gz, .bz2 or
      .xz.

  Raises:
    DataError: there is no such file, or more than one.
  """
  found = split_files(folder, split)
  if not found:
    stems = ' or '.join(_SPLIT_STEMS[split])
    raise DataError(
      f'{folder}: no file of {split}: expected {stems}, optionally followed by '
      '.txt or .tsv, then optionally by .gz, .bz2 or .xz'
      + ('' if split == 'train' else '. The file may be empty')
      + _similar_files(folder, split)
    )
  if len(found) > 1:
    raise DataError(
      f'{folder}: more than one file of {split}: '
      f'{", ".join(path.name for path in found)}: expected one'
    )
  return found[0]


def split_files(folder: pathlib.Path, split: str) -> list[pathlib.Path]:
  """Returns the files of a folder whose name fits a split, see `find_split`."""
  names = [
    stem + extension + suffix
    for stem in _SPLIT_STEMS[split]
    for extension in _EXTENSIONS
    for suffix in ('', *compression.SUFFIXES)
  ]
  return [folder / name for name in names if (folder / name).is_file()]


def _similar_files(folder: pathlib.Path, split: str) -> str:
  """Returns a sentence about files with similar names, or ''."""
  stems = (*_SPLIT_STEMS[split], 'val') if split == 'valid' else (split,)
  similar = sorted(
    path.name
    for path in (folder.iterdir() if folder.is_dir() else ())
    if path.is_file() and path.name.lower().startswith(stems)
  )
  if not similar:
    return ''
  return f'. The folder contains {", ".join(similar[:_SHOWN_FILES])}'


def read_lines(
  path: pathlib.Path,
  on_bad_line: Callable[[DataError], None] | None = None,
  *,
  warn: bool = True,
  allow_mark: bool = False,
  progress: str = '',
) -> Iterator[tuple[int, str]]:
  r"""Yields the numbered lines of a UTF-8 file.

  A line ends with `\n` or `\r\n`. The last line may have no line end. If a file
  has both kinds of line ends, a warning states the number of lines with each
  kind. A `\r` elsewhere is part of a label.

  Args:
    path: the file. It is decompressed if its suffix is .gz, .bz2 or .xz.
    on_bad_line: as in `read_stream`.
    warn: whether a mixture of line ends is reported. Default: True.
    allow_mark: as in `read_stream`.
    progress: label of a progress bar for files of 16 MiB or more. Default: no
      bar.

  Yields:
    The line number, counted from 1, and the text without its line end.

  Raises:
    DataError: the file cannot be opened or decompressed, expands too much, is
      not UTF-8, starts with a byte-order mark that is not allowed, ends between
      `\r` and `\n`, or has a line of more than MAX_LINE_BYTES.
  """
  try:
    stream = compression.open_file(path)
  except OSError as error:
    raise DataError(f'{path}: cannot be opened: {error}') from error
  with stream:
    lines = read_stream(
      stream, str(path), on_bad_line, warn=warn, allow_mark=allow_mark
    )
    size = path.stat().st_size
    if not progress or size < _MIN_BYTES_OF_BAR:
      yield from lines
      return
    with progress_bar.create(
      progress, total=size, unit='B', unit_scale=True, leave=False
    ) as bar:
      for number, line in lines:
        if number % _LINES_PER_UPDATE == 0:
          bar.update(compression.position(stream) - bar.n)
        yield number, line


def read_stream(
  stream: BinaryIO,
  name: str,
  on_bad_line: Callable[[DataError], None] | None = None,
  *,
  warn: bool = True,
  allow_mark: bool = False,
) -> Iterator[tuple[int, str]]:
  r"""Does the same as `read_lines` for an open byte stream.

  Args:
    stream: a binary stream such as `sys.stdin.buffer`.
    name: the name of the stream in error messages.
    on_bad_line: a function that is called with the error if a line is not UTF-8
      or ends between `\r` and `\n`. The line is then skipped. Default: the
      error is raised.
    warn: as in `read_lines`.
    allow_mark: whether a UTF-8 byte-order mark at the start of the stream is
      skipped. Otherwise, the mark is an error. Default: False.

  Yields:
    The line number, counted from 1, and the text without its line end.

  Raises:
    DataError: as in `read_lines`.
  """
  windows = unix = 0  # counts of the line ends CR LF and LF
  number = 0
  try:
    read_line = functools.partial(stream.readline, MAX_LINE_BYTES + 1)
    for number, raw in enumerate(iter(read_line, b''), start=1):
      if len(raw) > MAX_LINE_BYTES:
        raise DataError(
          f'{name}:{number}: {raw[:_SHOWN_CHARACTERS]!r}... is longer than '
          f'{MAX_LINE_BYTES:,} bytes: expected at most that many'
        )
      if number == 1 and allow_mark and raw.startswith(codecs.BOM_UTF8):
        raw = raw.removeprefix(codecs.BOM_UTF8)
        if not raw:  # The stream has only the mark.
          break
      elif number == 1 and raw.startswith(_BYTE_ORDER_MARKS):
        raise DataError(
          f'{name}:1: starts with a byte-order mark: expected plain UTF-8'
        )
      wrong, whole = '', raw
      if raw.endswith(b'\r\n'):
        raw = raw[:-2]
        windows += 1
      elif raw.endswith(b'\n'):
        raw = raw[:-1]
        unix += 1
      elif windows and raw.endswith(b'\r'):
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
  if warn:
    warn_of_line_ends(name, windows, unix)


def warn_of_line_ends(name: str, windows: int, unix: int) -> None:
  """Logs a warning if a file has both kinds of line ends.

  Args:
    name: the name of the file.
    windows: number of lines that end with CR LF.
    unix: number of lines that end with LF only.
  """
  if windows and unix:
    _logger.warning(
      '%s: %d lines end with CR LF and %d lines with LF: neither is part of a '
      'label',
      name,
      windows,
      unix,
    )


def show_line(line: str | bytes) -> str:
  """Returns a line for an error message: quoted, escaped and shortened."""
  if len(line) > _SHOWN_CHARACTERS:
    return f'{line[:_SHOWN_CHARACTERS]!r}... (length {len(line)})'
  return repr(line)


def show_value(value: Any) -> str:
  """Returns a value and its type for an error message."""
  text = ' '.join(repr(value).split())  # A data frame has several lines.
  if len(text) > _SHOWN_CHARACTERS:
    text = f'{text[:_SHOWN_CHARACTERS]}...'
  return f'{text}, of type {type(value).__name__}'


def count_fields(fields: list[str]) -> str:
  """Returns the number of fields of a line for an error message."""
  empty = sum(not field for field in fields)
  return f'{len(fields)}' + (f', {empty} of them empty' if empty else '')
