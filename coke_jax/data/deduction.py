"""Divides paths into paths by deduction and paths by induction.

A path is a path by deduction if the training edges lead from its source along
its relations to its target. All other paths are paths by induction. A data set
can list the paths of each kind in separate files. `find_files` finds these
files and `from_parts` checks them. `deducible` computes the kind of each path.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import text_files

# The deduction file and the induction file of a split.
Pair = tuple[pathlib.Path, pathlib.Path]


def deducible(
  paths: paths_lib.PathSet,
  train: np.ndarray,
  num_entities: int,
  inverse: np.ndarray,
) -> np.ndarray:
  """Returns whether each path is a path by deduction.

  Args:
    paths: N paths.
    train: int32 [T, 3], the triples of the training graph.
    num_entities: V, the number of entities.
    inverse: int32 [R], the inverse of each relation, or NO_RELATION if it has
      none.

  Returns:
    bool [N], True for paths by deduction.
  """
  adjacency = adjacency_lib.from_triples(train, num_entities, inverse)
  return adjacency.traverse(paths.source, paths.relations).contains(
    paths.target
  )


def find_files(split_files: Mapping[str, pathlib.Path]) -> dict[str, Pair]:
  """Finds the files that list the deduction and induction paths of splits.

  Args:
    split_files: a dict from the name of a split to its file.

  Returns:
    A dict from the name of a split to its deduction file and its induction
    file. A split without these files has no entry.

  Raises:
    text_files.DataError: a split has only one of the two files, or several
      files of one kind.
  """
  pairs = {}
  for split in ('valid', 'test'):
    path = split_files[split]
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


def from_parts(
  paths: paths_lib.PathSet,
  path_file: pathlib.Path,
  parts: Sequence[paths_lib.PathSet],
  part_files: Pair,
) -> np.ndarray:
  """Returns which paths of a split are in its deduction file.

  Args:
    paths: the N paths of the split.
    path_file: the file of `paths`, for error messages.
    parts: the paths of the deduction file, and those of the induction file.
    part_files: the two files of `parts`, for error messages.

  Returns:
    bool [N], True for deduction and False for induction.

  Raises:
    text_files.DataError: a path of a part is not in the split, or a path of the
      split is in both parts or in neither.
  """
  whole, *part_keys = paths_lib.path_keys([paths, *parts])
  for keys, part_file in zip(part_keys, part_files, strict=True):
    unknown = np.flatnonzero(~np.isin(keys, whole))
    if len(unknown):
      raise text_files.DataError(
        f'{part_file}:{unknown[0] + 1}: this path is not in {path_file.name}'
      )
  deduction, induction = (np.isin(whole, keys) for keys in part_keys)
  wrong = np.flatnonzero(deduction == induction)
  if len(wrong):
    names = ' and '.join(part_file.name for part_file in part_files)
    raise text_files.DataError(
      f'{path_file}:{wrong[0] + 1}: this path is in '
      f'{"both" if deduction[wrong[0]] else "neither"} of {names}: expected '
      'it in exactly one of them'
    )
  return deduction
