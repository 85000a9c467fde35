"""Reads CSV and TSV files, with or without quoting and column names."""

import codecs
import csv
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any

from coke_jax.data import compression, text_files
from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib
from coke_jax.data.formats import values

DELIMITERS = {'csv': ',', 'tsv': '\t'}
QUOTES = {'csv': '"', 'tsv': 'none'}
_BYTE_ORDER_MARK = '\ufeff'
_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
# Delimiters that error messages suggest. If a row has at least three fields,
# only tab, semicolon and vertical bar are suggested, because labels rarely
# contain them.
_HINTED = ('\t', ';', '|', ',', ' ')
# Maps the first bytes of a compressed file to its compression and its suffix.
# The suffix is empty if such files cannot be read.
_COMPRESSED = {
  b'\x1f\x8b': ('gzip', '.gz'),
  b'BZh': ('bzip2', '.bz2'),
  b'\xfd7zXZ': ('xz', '.xz'),
  b'PK\x03\x04': ('zip', ''),
}


def read(
  path: pathlib.Path, format: str, options: options_lib.Options
) -> rows_lib.Source:
  """Opens a CSV or TSV file.

  A byte-order mark at the start of the file is not part of the first label.
  Fields are not trimmed. Blank lines are left out.

  Args:
    path: the file, which may be compressed.
    format: 'csv' or 'tsv', for the default delimiter and quote.
    options: the options.

  Returns:
    The rows. Iterating over them raises `text_files.DataError` if the file
    cannot be read, or if a line cannot be read exactly and `on_bad_line` is
    'stop'.

  Raises:
    text_files.DataError: the quote is not 'none', and the delimiter equals the
      quote or has more than one character.
  """
  delimiter = options.delimiter or DELIMITERS[format]
  quote = options.quote or QUOTES[format]
  if quote != 'none' and (len(delimiter) > 1 or delimiter == quote):
    raise text_files.DataError(
      f'delimiter is {delimiter!r} and quote is {quote!r}: expected a '
      "delimiter of one character that is not the quote, or the quote 'none'"
    )
  log = rows_lib.RowLog(
    str(path), options.on_bad_line == 'skip', unquoted=quote == 'none'
  )
  split = (
    _split(path, delimiter, log)
    if quote == 'none'
    else _unquote(path, delimiter, quote, log)
  )
  return rows_lib.Source(_select(split, delimiter, options, log), log)


def read_lines(
  path: pathlib.Path, log: rows_lib.RowLog
) -> Iterator[tuple[int, str]]:
  """Yields the numbered lines of a UTF-8 file, including their line ends.

  A UTF-8 byte-order mark at the start of the file is left out.

  Raises:
    text_files.DataError: the file cannot be opened or decompressed, or a line
      is too long. For a line that is not UTF-8, `log.bad` is called.
  """
  number = 0
  try:
    stream = compression.open_file(path)
  except OSError as error:
    raise text_files.DataError(f'{path}: cannot be opened: {error}') from error
  try:
    with stream:
      limit = text_files.MAX_LINE_BYTES
      while raw := stream.readline(limit + 1):
        number += 1
        if number == 1 and raw.startswith(_UTF_16):
          raise text_files.DataError(
            f'{path}:1: starts with the byte-order mark of UTF-16: expected '
            'UTF-8'
          )
        if len(raw) > limit:
          raise text_files.DataError(
            f'{path}:{number}: {text_files.show_line(raw)}: is longer than '
            f'{limit:,} bytes: expected at most that many'
          )
        try:
          line = raw.decode('utf-8')
        except UnicodeDecodeError as error:
          if number == 1:
            _check_uncompressed(path, raw)
          log.rows += 1
          log.bad(
            number,
            raw,
            'not UTF-8',
            f'byte {raw[error.start]:#04x} at column {error.start + 1} is not '
            f'UTF-8 ({error.reason}): expected UTF-8. `iconv -f ENCODING -t '
            'UTF-8` converts a file from another encoding, such as LATIN1',
          )
          continue
        if number == 1:
          line = line.removeprefix(_BYTE_ORDER_MARK)
        yield number, line
  except compression.ERRORS as error:
    raise text_files.DataError(
      f'{path}: cannot be read after line {number}: {error}'
    ) from error


def _check_uncompressed(path: pathlib.Path, raw: bytes) -> None:
  """Raises an error if the start of a file is that of a compressed file."""
  for start, (kind, suffix) in _COMPRESSED.items():
    if raw.startswith(start):
      raise text_files.DataError(
        f'{path}: is compressed with {kind}: expected uncompressed text'
        + (f', or a file name that ends in {suffix}' if suffix else '')
      )


def strip_line_end(line: str) -> str:
  r"""Returns a line without its `\n` or `\r\n`."""
  if line.endswith('\n'):
    return line[: -2 if line.endswith('\r\n') else -1]
  return line


def _split(
  path: pathlib.Path, delimiter: str, log: rows_lib.RowLog
) -> Iterator[tuple[int, list[str]]]:
  """Yields the number and the fields of each line, without quoting."""
  for number, line in read_lines(path, log):
    if line.endswith('\r\n'):
      text = line[:-2]
      log.windows_ends += 1
    elif line.endswith('\n'):
      text = line[:-1]
      log.unix_ends += 1
    else:
      text = line
    yield number, text.split(delimiter) if text else []


def _unquote(
  path: pathlib.Path, delimiter: str, quote: str, log: rows_lib.RowLog
) -> Iterator[tuple[int, list[str]]]:
  """Yields the number of the first line of each row, and the row's fields."""
  numbered = read_lines(path, log)
  current: list[tuple[int, str]] = []  # Contains the lines of the current row.

  def texts() -> Iterator[str]:
    for line in numbered:
      current.append(line)
      yield line[1]

  # The limit applies to the whole process, so it is never lowered.
  csv.field_size_limit(max(csv.field_size_limit(), values.MAX_LABEL_BYTES))
  while True:
    reader = csv.reader(
      texts(), delimiter=delimiter, quotechar=quote, strict=True
    )
    try:
      for fields in reader:
        number = current[0][0]
        # Inside quotes, a line break is part of a field.
        log.count_line_end(current[-1][1])
        current.clear()
        yield number, fields
    except csv.Error as error:
      first, *rest = current
      current.clear()
      log.rows += 1
      reason = 'wrong quoting'
      detail = (
        f'{error}: expected fields separated by {delimiter!r}. A field with a '
        f'special character must be between two {quote!r}. Inside such a '
        f'field, a quote must be written as {quote * 2!r}'
      )
      if 'field limit' in str(error):
        reason = 'field too long'
        detail = (
          f'has a field of more than {csv.field_size_limit():,} characters: '
          f'expected at most that many, and a {quote!r} at the end of each '
          f'field that starts with {quote!r}'
        )
      log.bad(first[0], strip_line_end(first[1]), reason, detail)
      # The next row starts on the next line, even if a quote was not closed.
      numbered = itertools.chain(rest, numbered)
      continue
    return


def _select(
  split: Iterator[tuple[int, list[str]]],
  delimiter: str,
  options: options_lib.Options,
  log: rows_lib.RowLog,
) -> Iterator[tuple[int, Sequence[Any]]]:
  """Yields the selected columns of each row."""
  first = next(split, None)
  while first is not None and not first[1]:
    log.rows += 1
    log.leave_out(first[0], 'blank line')
    first = next(split, None)
  if first is None:
    return
  number, fields = first
  width = len(fields)
  if columns_lib.is_header(fields, options):
    log.header = tuple(fields)
    selection = columns_lib.by_name(fields, options, log.place(number))
  else:
    log.may_have_header = options.header == 'auto'
    _check_width(number, fields, delimiter, log)
    try:
      selection = columns_lib.by_position(
        fields,
        options,
        log.place(number),
        may_be_header=log.may_have_header,
      )
    except text_files.DataError as error:
      hint = _other_delimiter(fields, delimiter, _HINTED[:3])
      raise text_files.DataError(f'{error}{hint}') from error
    split = itertools.chain([first], split)
  log.set_columns(selection)
  positions = selection.positions
  as_they_are = width == 3 and positions == (0, 1, 2)
  for number, fields in split:
    if len(fields) == width:
      yield (
        number,
        fields if as_they_are else [fields[position] for position in positions],
      )
    elif not fields:
      log.rows += 1
      log.leave_out(number, 'blank line')
    else:
      log.rows += 1
      log.bad(
        number,
        delimiter.join(fields),
        'wrong number of fields',
        f'expected {width} fields separated by {delimiter!r}, as in the first '
        f'line, got {text_files.count_fields(fields)}',
      )


def _check_width(
  number: int,
  fields: list[str],
  delimiter: str,
  log: rows_lib.RowLog,
) -> None:
  """Raises an error if the first row has fewer than three fields."""
  if len(fields) >= 3:
    return
  raise text_files.DataError(
    f'{log.place(number)}: {text_files.show_line(delimiter.join(fields))}: '
    f'expected at least 3 fields separated by {delimiter!r}, got {len(fields)}'
    f'{_other_delimiter(fields, delimiter, _HINTED)}'
  )


def _other_delimiter(
  fields: list[str], delimiter: str, others: Sequence[str]
) -> str:
  """Returns a sentence that suggests another delimiter, or ''."""
  line = delimiter.join(fields)
  for other in others:
    if other != delimiter and len(line.split(other)) >= 3:
      return (
        f'. The delimiter may be {other!r}: use coke prepare with '
        f'--column-delimiter={other!r} (in Python: delimiter={other!r})'
      )
  return ''
