"""Strict reading of path files: plain, .gz, .bz2 or .xz.

As with triples, labels are opaque text, and what cannot be read exactly is an
error that names the file, the line and what was expected.
"""

import array
import pathlib
import re
from collections.abc import Sequence

import numpy as np

from coke_jax.data import atomic_files, graph, grouping, text_files
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

# The table of all paths is as wide as the longest of them: one hostile line
# must not make it larger than memory.
MOST_RELATIONS = 1000


def read_paths(
  folder: pathlib.Path, name: str, layout: paths_lib.PathFormat
) -> paths_lib.PathData:
  """Reads the `train`, `valid` (or `dev`) and `test` files of a folder.

  The folder may also say which paths of a split can be deduced from the
  training edges: `dev_deduction` and `dev_induction`, `test_deduction` and
  `test_induction`. Every path of the split is then in exactly one of the two.

  Args:
    folder: where the files are; see `text_files.find_split` for their names.
    name: what results call this data set.
    layout: how the lines are laid out.

  Returns:
    The data, its labels sorted, so that the same files give the same ids. All
    splits have as many columns of relations as the longest path of any.

  Raises:
    text_files.DataError: a file is missing, a line is wrong, or train is empty.
  """
  reader = _Reader(layout)
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  read = {split: reader.read(path) for split, path in found.items()}
  if not len(read['train']):
    raise text_files.DataError(f'{found["train"]}: holds no path to train on')
  part_files = find_deduction(found)
  parts = [reader.read(path) for pair in part_files.values() for path in pair]
  vocabulary, sets = reader.finish([*read.values(), *parts])
  splits = dict(zip(graph.SPLITS, sets, strict=False))
  parted = iter(sets[len(graph.SPLITS) :])
  deduction = {
    split: _deduction(
      splits[split], found[split], (next(parted), next(parted)), pair
    )
    for split, pair in part_files.items()
  }
  return paths_lib.PathData(
    name=name,
    vocabulary=vocabulary,
    inverse=inverse_relations(vocabulary, layout.inverse_marker),
    **splits,
    deduction=deduction,
  )


class _Reader:
  """Reads files one after the other into ids by first appearance."""

  def __init__(self, layout: paths_lib.PathFormat) -> None:
    self.layout = layout
    self.entities = text_files.LabelIndex()
    self.relations = text_files.LabelIndex()
    self.path_ids: dict[str, int] = {}  # a path's text -> its row in `paths`
    self.paths: list[list[int]] = []  # relations of each distinct text

  def read(self, path: pathlib.Path) -> np.ndarray:
    """Source, row in `paths` and target of each line: int32 [lines, 3]."""
    delimiter = self.layout.delimiter
    entities, path_ids = self.entities, self.path_ids
    flat = array.array('i')
    for number, line in text_files.read_lines(path):
      fields = line.split(delimiter)
      if len(fields) != 3 or not all(fields):
        raise text_files.DataError(
          f'{path}:{number}: {text_files.show_line(line)}: expected 3 '
          f'non-empty fields (source, path, target) between {delimiter!r}, got '
          f'{text_files.count_fields(fields)}'
        )
      source, text, target = fields
      path_id = path_ids.get(text)
      if path_id is None:
        path_id = path_ids[text] = self._new_path(
          text, f'{path}:{number}: {text_files.show_line(line)}'
        )
      flat.extend((entities[source], path_id, entities[target]))
    return np.array(flat, dtype=np.int32).reshape(-1, 3)

  def _new_path(self, text: str, place: str) -> int:
    """Splits a path seen for the first time and gives its row in `paths`."""
    marker = self.layout.inverse_marker
    path = text.split(self.layout.relation_delimiter)
    if len(path) > MOST_RELATIONS:
      raise text_files.DataError(
        f'{place}: a path of {len(path):,} relations: expected at most '
        f'{MOST_RELATIONS:,}'
      )
    for step, label in enumerate(path, start=1):
      plain = label.removeprefix(marker)
      if not plain or plain.startswith(marker):
        raise text_files.DataError(
          f'{place}: relation {step} of {len(path)} is {label!r}: expected '
          f'a label, with at most one {marker!r} before it'
        )
    self.paths.append([self.relations[label] for label in path])
    return len(self.paths) - 1

  def finish(
    self, read: Sequence[np.ndarray]
  ) -> tuple[vocabulary_lib.Vocabulary, list[paths_lib.PathSet]]:
    """Gives relations their inverses, sorts labels, makes the final ids."""
    marker = self.layout.inverse_marker
    if any(label.startswith(marker) for label in self.relations):
      for label in list(self.relations):
        self.relations[invert(label, marker)]
    entity_labels, entity_places = vocabulary_lib.sort_labels(self.entities)
    relation_labels, relation_places = vocabulary_lib.sort_labels(
      self.relations
    )
    longest = max(map(len, self.paths))
    shape = (len(self.paths), longest)
    table = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
    for row, path in enumerate(self.paths):
      table[row, : len(path)] = relation_places[path]
    sets = [
      paths_lib.PathSet(
        entity_places[lines[:, 0]],
        table[lines[:, 1]],
        entity_places[lines[:, 2]],
      )
      for lines in read
    ]
    return vocabulary_lib.Vocabulary(entity_labels, relation_labels), sets


def find_deduction(
  found: dict[str, pathlib.Path],
) -> dict[str, tuple[pathlib.Path, pathlib.Path]]:
  """The files that part a split by deduction and induction, where there are.

  Args:
    found: the file of each split.

  Returns:
    For `valid` and `test`, if there: the `_deduction` and `_induction` file.

  Raises:
    text_files.DataError: one of the two is missing, or there are two of one
      kind.
  """
  pairs = {}
  for split in ('valid', 'test'):
    path = found[split]
    stem = path.name.partition('.')[0]
    pair = []
    for kind in ('deduction', 'induction'):
      pattern = rf'{stem}_{kind}(\.txt|\.tsv)?(\.gz|\.bz2|\.xz)?'
      pair.append(
        [
          other
          for other in sorted(path.parent.iterdir())
          if re.fullmatch(pattern, other.name)
        ]
      )
    if not any(pair):
      continue
    if [len(names) for names in pair] != [1, 1]:
      names = ', '.join(other.name for names in pair for other in names)
      raise text_files.DataError(
        f'{path.parent}: {names}: expected one {stem}_deduction file and one '
        f'{stem}_induction file, or neither'
      )
    pairs[split] = (pair[0][0], pair[1][0])
  return pairs


def _deduction(
  paths: paths_lib.PathSet,
  path_file: pathlib.Path,
  parts: Sequence[paths_lib.PathSet],
  part_files: tuple[pathlib.Path, pathlib.Path],
) -> np.ndarray:
  """Which of a split's paths are in its deduction file: bool [N]."""
  whole, *part_keys = paths_lib.path_keys([paths, *parts])
  for keys, part_file in zip(part_keys, part_files, strict=True):
    strange = np.flatnonzero(~np.isin(keys, whole))
    if len(strange):
      raise text_files.DataError(
        f'{part_file}:{strange[0] + 1}: this path is not in {path_file.name}'
      )
  deduction, induction = (np.isin(whole, keys) for keys in part_keys)
  wrong = np.flatnonzero(deduction == induction)
  if len(wrong):
    names = ' and '.join(part_file.name for part_file in part_files)
    raise text_files.DataError(
      f'{path_file}:{wrong[0] + 1}: this path is in '
      f'{"both" if deduction[wrong[0]] else "neither"} of {names}: expected '
      'one of them'
    )
  return deduction


def inverse_relations(
  vocabulary: vocabulary_lib.Vocabulary, marker: str
) -> np.ndarray:
  """The index of each relation's inverse, or NO_RELATION: int32 [R]."""
  ids = vocabulary.relation_ids
  return np.array(
    [
      ids.get(invert(label, marker), vocabulary_lib.NO_RELATION)
      for label in vocabulary.relations
    ],
    dtype=np.int32,
  )


def invert(label: str, marker: str) -> str:
  """The label of a relation's inverse."""
  plain = label.removeprefix(marker)
  return plain if plain != label else marker + label


def write_paths(
  folder: pathlib.Path, data: paths_lib.PathData, layout: paths_lib.PathFormat
) -> None:
  """Writes `train`, `dev`, `test` and which of them can be deduced.

  The files are what `path_files.read_paths` reads. Each is complete as soon as
  it has its name, and the last to get its name is `train`.

  Args:
    folder: made when missing; holds no path data yet.
    data: the paths and, for valid and test, deduction.
    layout: how the lines are laid out.

  Raises:
    text_files.DataError: a label that the format cannot hold, or a file that is
      there already.
  """
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  for label in entities:
    _check_label(label, [layout.delimiter])
  for label in relations:
    plain = label.removeprefix(layout.inverse_marker)
    _check_label(plain, [layout.delimiter, layout.relation_delimiter])
  contents: dict[str, paths_lib.PathSet] = {}
  for split, stem in (('test', 'test'), ('valid', 'dev'), ('train', 'train')):
    paths = data.split(split)
    if split in data.deduction:
      deduction = data.deduction[split]
      contents[f'{stem}_deduction'] = paths.take(deduction)
      contents[f'{stem}_induction'] = paths.take(~deduction)
    contents[stem] = paths
  folder.mkdir(parents=True, exist_ok=True)
  for name in [*contents, 'valid', 'valid_deduction', 'valid_induction']:
    there = sorted({*folder.glob(name), *folder.glob(f'{name}.*')})
    if there:
      raise text_files.DataError(
        f'{there[0]}: is there already: expected a folder without path data'
      )
  for name, paths in contents.items():
    with atomic_files.whole_file(folder / name) as path:
      _write(path, paths, data.vocabulary, layout)


def _write(
  path: pathlib.Path,
  paths: paths_lib.PathSet,
  vocabulary: vocabulary_lib.Vocabulary,
  layout: paths_lib.PathFormat,
) -> None:
  group, num_groups = grouping.group_rows(paths.relations + 1)
  example = np.zeros(num_groups, dtype=np.int64)
  example[group] = np.arange(len(paths))
  texts = [
    layout.relation_delimiter.join(
      vocabulary.relations[relation]
      for relation in row
      if relation != vocabulary_lib.NO_RELATION
    )
    for row in paths.relations[example].tolist()
  ]
  entities, delimiter = vocabulary.entities, layout.delimiter
  with path.open('w', encoding='utf-8', newline='\n') as stream:
    stream.writelines(
      f'{entities[source]}{delimiter}{texts[text]}{delimiter}'
      f'{entities[target]}\n'
      for source, text, target in zip(
        paths.source.tolist(),
        group.tolist(),
        paths.target.tolist(),
        strict=True,
      )
    )


def _check_label(label: str, delimiters: list[str]) -> None:
  for text in ['\n', '\r', *delimiters]:
    if text in label:
      raise text_files.DataError(
        f'label {label!r} holds {text!r}, which the path format gives another '
        'meaning: expected other delimiters'
      )
