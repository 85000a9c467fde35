"""Strict reading and writing of path files.

`text_files` describes which lines raise an error.
"""

import array
import pathlib
from collections.abc import Sequence

import numpy as np

from coke_jax.data import (
  atomic_files,
  deduction,
  graph,
  grouping,
  inverses,
  text_files,
)
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

# Maximum number of relations in a path. The array of all paths is as wide as
# the longest path. Without a limit, one malicious line could fill the memory.
MAX_RELATIONS = 1000


def read_paths(
  folder: pathlib.Path, name: str, layout: paths_lib.PathFormat
) -> paths_lib.PathData:
  """Reads the `train`, `valid` (or `dev`) and `test` files of a folder.

  For valid and test, the folder can also contain a deduction file and an
  induction file, such as `dev_deduction` and `dev_induction`. The deduction
  file lists the paths of the split that follow from the training edges. The
  induction file lists all other paths of the split.

  Args:
    folder: the folder of the files, named as in `text_files.find_split`.
    name: the name of the data set in results.
    layout: the format of the lines.

  Returns:
    The data. Ids are assigned to labels in sorted order. The array `relations`
    of every split is as wide as the longest path of the data set.

  Raises:
    text_files.DataError: a file is missing or ambiguous, a line cannot be read,
      train is empty, or the deduction files do not match their split.
  """
  reader = _Reader(layout)
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  read = {split: reader.read(path) for split, path in found.items()}
  if not len(read['train']):
    raise text_files.DataError(
      f'{found["train"]}: contains no path: expected at least one'
    )
  part_files = deduction.find_files(found)
  parts = [reader.read(path) for pair in part_files.values() for path in pair]
  vocabulary, sets = reader.finish([*read.values(), *parts])
  splits = dict(zip(graph.SPLITS, sets, strict=False))
  parted = iter(sets[len(graph.SPLITS) :])
  masks = {
    split: deduction.from_parts(
      splits[split], found[split], (next(parted), next(parted)), pair
    )
    for split, pair in part_files.items()
  }
  return paths_lib.PathData(
    name=name,
    vocabulary=vocabulary,
    inverse=inverses.inverse_relations(vocabulary, layout.inverse_marker),
    **splits,
    deduction=masks,
  )


class _Reader:
  """Reads files one by one, with ids in the order of first appearance."""

  def __init__(self, layout: paths_lib.PathFormat) -> None:
    self.layout = layout
    self.entities = text_files.LabelIndex()
    self.relations = text_files.LabelIndex()
    # Maps the text of a path to its index in `paths`.
    self.path_ids: dict[str, int] = {}
    self.paths: list[list[int]] = []  # Contains relation indices.

  def read(self, path: pathlib.Path) -> np.ndarray:
    """Reads the N lines of a file.

    Returns:
      int32 [N, 3]: the source of each line, the index of its path in `paths`,
      and its target.
    """
    delimiter = self.layout.delimiter
    entities, path_ids = self.entities, self.path_ids
    flat = array.array('i')
    for number, line in text_files.read_lines(path):
      fields = line.split(delimiter)
      if len(fields) != 3 or not all(fields):
        raise text_files.DataError(
          f'{path}:{number}: {text_files.show_line(line)}: expected 3 '
          f'non-empty fields (source, path, target), separated by '
          f'{delimiter!r}, got {text_files.count_fields(fields)}'
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
    """Adds a path to `paths` and returns its index."""
    marker = self.layout.inverse_marker
    path = text.split(self.layout.relation_delimiter)
    if len(path) > MAX_RELATIONS:
      raise text_files.DataError(
        f'{place}: a path of {len(path):,} relations: expected at most '
        f'{MAX_RELATIONS:,}'
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
    """Adds missing inverses, sorts the labels and assigns the final ids."""
    marker = self.layout.inverse_marker
    if any(label.startswith(marker) for label in self.relations):
      for label in list(self.relations):
        self.relations[inverses.invert(label, marker)]
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


def write_paths(
  folder: pathlib.Path, data: paths_lib.PathData, layout: paths_lib.PathFormat
) -> None:
  """Writes path data as files that `read_paths` reads.

  The files are `train`, `dev` and `test`. For each split in `data.deduction`,
  there are also a deduction file and an induction file. Each file gets its
  final name when it is complete. `train` is written last.

  Args:
    folder: the folder of the files; created if it is missing.
    data: the paths.
    layout: the format of the lines.

  Raises:
    text_files.DataError: a label contains a delimiter or a line end, or the
      folder already contains path data.
    atomic_files.WriteError: a file cannot be written.
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
      mask = data.deduction[split]
      contents[f'{stem}_deduction'] = paths.take(mask)
      contents[f'{stem}_induction'] = paths.take(~mask)
    contents[stem] = paths
  with atomic_files.writing(folder):
    folder.mkdir(parents=True, exist_ok=True)
  for name in [*contents, 'valid', 'valid_deduction', 'valid_induction']:
    there = sorted({*folder.glob(name), *folder.glob(f'{name}.*')})
    if there:
      raise text_files.DataError(
        f'{there[0]}: already exists: expected a folder without path data'
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
        f'label {label!r} contains {text!r}, which separates fields, relations '
        'or lines: expected a label without it, or another delimiter'
      )
