"""Tests that mutated input files are read exactly, or refused with an error.

    python tests/robustness/mutate.py --inputs=40000

Mutates files of triples and paths: flips bits, deletes bytes, adds fields or
changes the encoding. The files have various layouts and compressions. A short
strict parser, which shares no code with the package, reads the same files. If
the parser accepts a file, the package must return the same labels. If the
parser refuses a line, the package must raise an error that names the file and
this line.
"""

import dataclasses
import pathlib
import random
import re
import sys
from collections.abc import Sequence

import mutations

from coke_jax.data import path_files, text_files, triple_files
from coke_jax.data import paths as paths_lib

Row = tuple[str, ...]  # the labels of a line: head, relations, tail
_MOST_RELATIONS = 1000


class RefusedError(Exception):
  """A line breaks a rule. The argument is the number of the first such line."""


@dataclasses.dataclass(frozen=True)
class Layout:
  """The layout of an input file."""

  paths: bool
  delimiter: str
  columns: tuple[str, ...]
  header: bool


# ----------------------------------------------------------- the strict parser


def parse(raw: bytes, layout: Layout) -> list[Row]:
  """Parses a file by the rules of the documentation.

  Raises:
    RefusedError: a line breaks a rule.
  """
  rows = []
  for number, text, _ in mutations.strict_lines(raw):
    if text is None:
      raise RefusedError(number)
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


# ------------------------------------------------------------------------ trial


def well_formed(layout: Layout, generator: random.Random) -> bytes:
  """Returns the content of a valid file."""

  def label() -> str:
    chosen = generator.choice(mutations.LABELS)
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
    The outcome, such as `same labels` or `error: a line`. Then what is wrong,
    or an empty text.
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
  raw = mutations.mutate(well_formed(layout, generator), generator)
  suffix, stored = '', raw
  readable = True
  if generator.random() < 0.3:
    suffix = generator.choice(sorted(mutations.COMPRESSORS))
    stored = mutations.COMPRESSORS[suffix](raw)
    if generator.random() < 0.5:
      # If the mutated archive is damaged, the package must report the damage,
      # or a wrong line before the damage.
      stored = mutations.mutate(stored, generator)
      try:
        raw = mutations.DECOMPRESSORS[suffix](stored)
      except Exception:
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
  if 'contains no' in got:
    return 'error: empty', '' if line is None and not expected else got
  if line is None:
    return 'error', f'refused without reason: {got[:500]} for {raw!r}'
  named = got.startswith(f'{path}:{line}: ')
  return 'error: a line', '' if named else f'line {line}, but {got[:500]}'


if __name__ == '__main__':
  sys.exit(mutations.run(trial, __doc__))
