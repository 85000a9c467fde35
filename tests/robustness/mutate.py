"""Tests that mutated input files are read exactly, or refused with an error.

    python tests/robustness/mutate.py --inputs=40000

Reads files of triples and paths after random mutations (bytes flipped, lines
cut, fields added, encodings and line ends changed), in all layouts and
compressions. A short strict parser, which shares no code with the package,
reads the same files. If the parser accepts a file, the package must return the
same labels. If the parser refuses a line, the package must raise an error that
names the file and this line.
"""

import argparse
import bz2
import collections
import dataclasses
import gzip
import lzma
import pathlib
import random
import re
import sys
import tempfile
from collections.abc import Callable, Sequence

from coke_jax.data import path_files, text_files, triple_files
from coke_jax.data import paths as paths_lib

Row = tuple[str, ...]  # the labels of a line: head, relations, tail

_MARKS = (b'\xef\xbb\xbf', b'\xff\xfe', b'\xfe\xff')
_MOST_BYTES = 1 << 20
_MOST_RELATIONS = 1000
_LABELS = (
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
_COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
  '.gz': gzip.compress,
  '.bz2': bz2.compress,
  '.xz': lzma.compress,
}
_DECOMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
  '.gz': gzip.decompress,
  '.bz2': bz2.decompress,
  '.xz': lzma.decompress,
}


class RefusedError(Exception):
  """An error of the strict parser; its argument is the number of the line."""


@dataclasses.dataclass(frozen=True)
class Layout:
  """The layout of the lines of an input file."""

  paths: bool
  delimiter: str
  columns: tuple[str, ...]
  header: bool


# ----------------------------------------------------------- the strict parser


def parse(raw: bytes, layout: Layout) -> list[Row]:
  """Parses a file by the rules of the documentation.

  Raises:
    RefusedError: a line breaks a rule. The argument is the number of the first
      such line.
  """
  if raw.startswith(_MARKS):
    raise RefusedError(1)
  lines = raw.split(b'\n')
  ended = [True] * (len(lines) - 1) + [False]
  if not lines[-1]:
    lines, ended = lines[:-1], ended[:-1]
  windows = False  # whether an earlier line ends with CR LF
  rows = []
  for number, (line, has_end) in enumerate(zip(lines, ended, strict=True), 1):
    returned = line.endswith(b'\r')
    if len(line) + has_end > _MOST_BYTES:
      raise RefusedError(number)
    if not has_end and windows and returned:
      raise RefusedError(number)
    windows |= has_end and returned
    try:
      text = line[: len(line) - (has_end and returned)].decode()
    except UnicodeDecodeError:
      raise RefusedError(number) from None
    if layout.header and number == 1:
      continue
    fields = text.split(layout.delimiter)
    if len(fields) != 3 or '' in fields:
      raise RefusedError(number)
    if layout.paths:
      relations = fields[1].split(',')
      if len(relations) > _MOST_RELATIONS:
        raise RefusedError(number)
      if not all(re.fullmatch(r'(\*\*)?(?!\*\*)(?s:.)+', r) for r in relations):
        raise RefusedError(number)
      rows.append((fields[0], *relations, fields[2]))
    else:
      named = dict(zip(layout.columns, fields, strict=True))
      rows.append((named['head'], named['relation'], named['tail']))
  return rows


# ------------------------------------------------------------------ the package


def read(folder: pathlib.Path, layout: Layout) -> list[Row]:
  """Reads the rows of a folder's train file with the package."""
  if layout.paths:
    data = path_files.read_paths(
      folder, 'mutated', paths_lib.PathFormat(delimiter=layout.delimiter)
    )
    names, kinds = data.vocabulary.entities, data.vocabulary.relations
    train = data.train
    return [
      (names[s], *(kinds[r] for r in path if r >= 0), names[t])
      for s, path, t in zip(
        train.source.tolist(),
        train.relations.tolist(),
        train.target.tolist(),
        strict=True,
      )
    ]
  triples = triple_files.read_graph(
    folder,
    'mutated',
    triple_files.TripleFormat(layout.columns, layout.delimiter, layout.header),
  )
  names, kinds = triples.vocabulary.entities, triples.vocabulary.relations
  return [(names[h], kinds[r], names[t]) for h, r, t in triples.train.tolist()]


# -------------------------------------------------------------------- mutations


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
  """Replaces one byte."""
  place = _place(data, generator)
  return data[:place] + generator.randbytes(1) + data[place + 1 :]


def cut(data: bytes, generator: random.Random) -> bytes:
  """Deletes some bytes."""
  start, end = sorted(_place(data, generator) for _ in range(2))
  return data[:start] + data[min(end, start + 30) :]


def truncate(data: bytes, generator: random.Random) -> bytes:
  """Cuts off the end."""
  return data[: _place(data, generator)]


def repeat(data: bytes, generator: random.Random) -> bytes:
  """Repeats some bytes."""
  start, end = sorted(_place(data, generator) for _ in range(2))
  return data[:end] + data[start:]


def insert(data: bytes, generator: random.Random) -> bytes:
  """Inserts a sequence with a special meaning."""
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
  """Changes all line ends, or one, to those of another system."""
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
  """Extends a label to about the maximum length of a line, or far beyond."""
  place = _place(data, generator)
  length = generator.choice([_MOST_BYTES - 8, _MOST_BYTES, 3 * _MOST_BYTES])
  length += generator.randrange(12)
  return data[:place] + b'x' * length + data[place:]


def long_path(data: bytes, generator: random.Random) -> bytes:
  """Inserts relations, about as many as the maximum of a path."""
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


# ------------------------------------------------------------------------ trial


def well_formed(layout: Layout, generator: random.Random) -> bytes:
  """Returns a valid file."""

  def label() -> str:
    chosen = generator.choice(_LABELS)
    return chosen.replace(layout.delimiter, '_').replace(',', '_')

  end = generator.choice(['\n', '\r\n'])
  lines = ['a header'] if layout.header else []
  for _ in range(generator.randrange(7)):
    middle = label()
    if layout.paths:
      steps = range(generator.randint(1, 4))
      middle = ','.join(generator.choice(['', '**']) + label() for _ in steps)
    lines.append(layout.delimiter.join([label(), middle, label()]))
  text = end.join(lines) + (end if generator.random() < 0.8 else '')
  return text.encode()


def trial(folder: pathlib.Path, generator: random.Random) -> tuple[str, str]:
  """Reads one mutated input.

  Returns:
    The outcome: `same labels`, `accepted` or the kind of error. Then a
    description of what is wrong with this outcome, or an empty text.
  """
  is_paths = generator.random() < 0.5
  columns = list(triple_files.TRIPLE_COLUMNS)
  if not is_paths:
    generator.shuffle(columns)
  layout = Layout(
    paths=is_paths,
    delimiter=generator.choice(['\t', '\t', '\t', ' ||| ', ';']),
    columns=tuple(columns),
    header=not is_paths and generator.random() < 0.2,
  )
  for split in ('valid', 'test'):
    (folder / f'{split}.txt').write_text('a header\n' if layout.header else '')
  raw = mutate(well_formed(layout, generator), generator)
  suffix, stored = '', raw
  readable = True
  if generator.random() < 0.3:
    suffix = generator.choice(sorted(_COMPRESSORS))
    stored = _COMPRESSORS[suffix](raw)
    if generator.random() < 0.5:  # also mutate the archive
      stored = mutate(stored, generator)
      try:
        raw = _DECOMPRESSORS[suffix](stored)
      except Exception:  # a wrong line may precede the damage
        readable = False
  path = folder / f'train.txt{suffix}'
  path.write_bytes(stored)
  try:
    got: Sequence[Row] | str = read(folder, layout)
  except text_files.DataError as error:
    got = str(error)
  finally:
    path.unlink()
  if not readable:
    outcome = 'error: a damaged archive' if isinstance(got, str) else 'accepted'
    return outcome, '' if str(path) in got else f'{got} from a damaged archive'
  return judge(got, raw, layout, path, archived=bool(suffix))


def judge(
  got: Sequence[Row] | str,
  raw: bytes,
  layout: Layout,
  path: pathlib.Path,
  *,
  archived: bool,
) -> tuple[str, str]:
  """Compares the package with the parser. Returns the same as `trial`."""
  expected: list[Row] = []
  line = None
  try:
    expected = parse(raw, layout)
  except RefusedError as error:
    line = error.args[0]
  if not isinstance(got, str):
    if line is not None:
      return 'same labels', f'accepted, but line {line} of {raw!r} is wrong'
    same = list(got) == expected
    return 'same labels', '' if same else f'{got} read from {raw!r}'
  if not got.startswith(str(path)) or len(got) > 2000:
    return 'error', f'does not name the file: {got[:500]}'
  if archived and re.search(r': cannot be read after line \d+: .', got):
    return 'error: a damaged archive', ''
  if 'to train on' in got:
    return 'error: empty', '' if line is None and not expected else got
  if line is None:
    return 'error', f'refused without reason: {got[:500]} for {raw!r}'
  named = got.startswith(f'{path}:{line}: ')
  return 'error: a line', '' if named else f'line {line}, but {got[:500]}'


def main(argv: list[str] | None = None) -> int:
  """Tries random inputs. Returns 1 if any is misread."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--inputs', type=int, default=40_000)
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  outcomes: collections.Counter[str] = collections.Counter()
  failures = []
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    for number in range(flags.inputs):
      generator = random.Random(f'{flags.seed} {number}')
      try:
        outcome, wrong = trial(folder, generator)
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


if __name__ == '__main__':
  sys.exit(main())
