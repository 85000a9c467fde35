"""Writing path data in the format that `path_files` reads."""

import pathlib

import numpy as np

from coke_jax.data import files
from coke_jax.data import paths as paths_lib
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib


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
    files.DataError: a label that the format cannot hold, or a file that is
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
      raise files.DataError(
        f'{there[0]}: is there already: expected a folder without path data'
      )
  for name, paths in contents.items():
    with files.whole_file(folder / name) as path:
      _write(path, paths, data.vocabulary, layout)


def _write(
  path: pathlib.Path,
  paths: paths_lib.PathSet,
  vocabulary: vocabulary_lib.Vocabulary,
  layout: paths_lib.PathFormat,
) -> None:
  group, num_groups = queries_lib.group_rows(paths.relations + 1)
  example = np.zeros(num_groups, dtype=np.int64)
  example[group] = np.arange(len(paths))
  texts = [
    layout.relation_delimiter.join(
      vocabulary.relations[relation]
      for relation in row
      if relation != paths_lib.NO_RELATION
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
      raise files.DataError(
        f'label {label!r} holds {text!r}, which the path format gives another '
        'meaning: expected other delimiters'
      )
