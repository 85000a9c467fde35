"""Mutates text files, splits them into lines by strict rules, and runs trials.

This module shares no code with the package.
"""

import argparse
import bz2
import collections
import contextlib
import gzip
import lzma
import pathlib
import random
import tempfile
from collections.abc import Callable, Iterator

_MARKS = (b'\xef\xbb\xbf', b'\xff\xfe', b'\xfe\xff')
_MOST_BYTES = 1 << 20
Trial = Callable[[pathlib.Path, random.Random], tuple[str, str]]
LABELS = (
  'a', 'b', 'NA', 'nan', 'null', '007', '1e5', ' around ', '"quoted"', "it's",
  '#comment', '\\N', 'back\\tslash', 'Zürich', 'Zu\u0308rich', '東京', '🂡',
  'no\u00a0break', 'zero\u200bwidth', 'inner\ufeffmark', 'nul\x00', 'bell\x07',
  'escape\x1b[0m', 'vertical\x0btab', 'form\x0cfeed', 'next\x85line',
  'line\u2028separator', 'inner\rreturn', '/people/place', 'https://a.b/?c=d&e',
)  # fmt: skip
_PIECES = (
  b'\t', b'\t\t', b'\n', b'\n\n', b'\r', b'\r\n', b'\x00', b'\xff', b'\x80',
  b'\xc0\xaf', b'\xed\xa0\x80', b'\xf4\x90\x80\x80', b'\xe2\x80\xa8', b' ',
  b'\xc2\x85', b'**', b',', b',,', b'****', b'"', b'x\ty\tz\n', b'\x1a',
  *_MARKS,
)  # fmt: skip
COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
  '.gz': gzip.compress,
  '.bz2': bz2.compress,
  '.xz': lzma.compress,
}
DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
  '.gz': gzip.decompress,
  '.bz2': bz2.decompress,
  '.xz': lzma.decompress,
}


def strict_lines(
  raw: bytes, *, allow_mark: bool = False
) -> Iterator[tuple[int, str | None, bool]]:
  """Splits a file into lines by the rules of the documentation.

  Args:
    raw: the content of the file.
    allow_mark: whether to leave out a byte-order mark of UTF-8. If False, this
      mark makes the file unreadable.

  Yields:
    The number of the line, from 1.
    The text of the line, or None if the line breaks a rule.
    Whether the file cannot be read beyond this line.
  """
  without = raw.removeprefix(_MARKS[0]) if allow_mark else raw
  allowed = without != raw
  lines = without.split(b'\n')
  ended = [True] * (len(lines) - 1) + [False]
  if not lines[-1]:
    lines, ended = lines[:-1], ended[:-1]
  windows = False  # whether an earlier line ends with CR LF
  for number, (line, has_end) in enumerate(zip(lines, ended, strict=True), 1):
    marked = number == 1 and line.startswith(_MARKS) and not allowed
    if marked or len(line) + has_end > _MOST_BYTES:
      yield number, None, True
      return
    returned = line.endswith(b'\r')
    cut_off = returned and windows and not has_end
    windows |= returned and has_end
    text = None
    with contextlib.suppress(UnicodeDecodeError):
      text = line[: len(line) - (returned and has_end)].decode()
    yield number, None if cut_off else text, False


def _place(data: bytes, generator: random.Random) -> int:
  return generator.randrange(len(data) + 1)


def flip_bit(data: bytes, generator: random.Random) -> bytes:
  """Flips one bit."""
  if not data:
    return data
  place = generator.randrange(len(data))
  changed = data[place] ^ (1 << generator.randrange(8))
  return data[:place] + bytes([changed]) + data[place + 1 :]


def any_byte(data: bytes, generator: random.Random) -> bytes:
  """Replaces or appends one byte."""
  place = _place(data, generator)
  return data[:place] + generator.randbytes(1) + data[place + 1 :]


def cut(data: bytes, generator: random.Random) -> bytes:
  """Deletes at most 30 bytes."""
  start, end = sorted(_place(data, generator) for _ in range(2))
  return data[:start] + data[min(end, start + 30) :]


def truncate(data: bytes, generator: random.Random) -> bytes:
  """Deletes the end."""
  return data[: _place(data, generator)]


def repeat(data: bytes, generator: random.Random) -> bytes:
  """Repeats some bytes."""
  start, end = sorted(_place(data, generator) for _ in range(2))
  return data[:end] + data[start:]


def insert(data: bytes, generator: random.Random) -> bytes:
  """Inserts bytes with a special meaning."""
  place = generator.choice([0, len(data), _place(data, generator)])
  return data[:place] + generator.choice(_PIECES) + data[place:]


def noise(data: bytes, generator: random.Random) -> bytes:
  """Inserts random bytes."""
  place = _place(data, generator)
  inserted = generator.randbytes(generator.randrange(9))
  return data[:place] + inserted + data[place:]


def drop_field(data: bytes, generator: random.Random) -> bytes:
  """Removes the last field of a line."""
  lines = data.split(b'\n')
  place = generator.randrange(len(lines))
  lines[place] = lines[place].rpartition(b'\t')[0]
  return b'\n'.join(lines)


def add_field(data: bytes, generator: random.Random) -> bytes:
  """Adds a field to a line."""
  lines = data.split(b'\n')
  lines[generator.randrange(len(lines))] += b'\tmore'
  return b'\n'.join(lines)


def line_ends(data: bytes, generator: random.Random) -> bytes:
  """Changes one or all line ends."""
  end = generator.choice([b'\r\n', b'\r', b'\n\r', b'\n'])
  if generator.random() < 0.5:
    return data.replace(b'\r\n', b'\n').replace(b'\n', end)
  lines = data.split(b'\n')
  place = generator.randrange(len(lines))
  return b'\n'.join(lines[:place]) + end + b'\n'.join(lines[place:])


def encode(data: bytes, generator: random.Random) -> bytes:
  """Changes the encoding."""
  text = data.decode(errors='replace')
  name = generator.choice(['utf-16', 'utf-16-le', 'latin-1', 'utf-8-sig'])
  return text.encode(name, errors='replace')


def huge_label(data: bytes, generator: random.Random) -> bytes:
  """Extends a line to about the maximum length, or far beyond."""
  place = _place(data, generator)
  length = generator.choice([_MOST_BYTES - 8, _MOST_BYTES, 3 * _MOST_BYTES])
  length += generator.randrange(12)
  return data[:place] + b'x' * length + data[place:]


def long_path(data: bytes, generator: random.Random) -> bytes:
  """Inserts about 1000 relations, the maximum of a path."""
  place = _place(data, generator)
  length = generator.choice([998, 999, 1000, 1001])
  return data[:place] + b'r,' * length + data[place:]


def move_line(data: bytes, generator: random.Random) -> bytes:
  """Moves or copies a line."""
  lines = data.split(b'\n')
  line = generator.choice(lines)
  if generator.random() < 0.5:
    lines.remove(line)
  lines.insert(generator.randrange(len(lines) + 1), line)
  return b'\n'.join(lines)


def other_letter(data: bytes, generator: random.Random) -> bytes:
  """Replaces one letter everywhere."""
  old, new = generator.choices(b'abcdefghNx', k=2)
  return data.replace(bytes([old]), bytes([new]))


_COMMON = (
  flip_bit, any_byte, cut, truncate, repeat, insert, noise, drop_field,
  add_field, line_ends, encode, move_line, other_letter,
)  # fmt: skip
_RARE = (huge_label, long_path)
_RARELY = 0.003


def mutate(data: bytes, generator: random.Random) -> bytes:
  """Applies one to three random mutations."""
  for _ in range(generator.randint(1, 3)):
    kinds = _RARE if generator.random() < _RARELY else _COMMON
    data = generator.choice(kinds)(data, generator)
  return data


def run(trial: Trial, description: str, argv: list[str] | None = None) -> int:
  """Tries random inputs, and prints the outcomes.

  Args:
    trial: reads one mutated input in a folder. Returns the outcome, and a text
      that states what is wrong. This text is empty if nothing is wrong.
    description: the help text of the script.
    argv: the command line. Default: that of the process.

  Returns:
    1 if an input was misread, otherwise 0.
  """
  parser = argparse.ArgumentParser(
    description=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('--inputs', type=int, default=40_000)
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  outcomes: collections.Counter[str] = collections.Counter()
  failures = []
  with tempfile.TemporaryDirectory() as temporary:
    for number in range(flags.inputs):
      generator = random.Random(f'{flags.seed} {number}')
      try:
        outcome, wrong = trial(pathlib.Path(temporary), generator)
      except Exception as error:
        outcome, wrong = 'crash', f'{type(error).__name__}: {error}'
      outcomes[outcome] += 1
      if wrong:
        failures.append(f'input {number}: {wrong[:2000]}')
        print(failures[-1], flush=True)
  print(
    f'{flags.inputs:,} mutated inputs: '
    + ', '.join(f'{n:,} {name}' for name, n in outcomes.most_common())
    + f'; {len(failures):,} misread'
  )
  return bool(failures)
