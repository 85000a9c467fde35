"""Paths by deduction and by induction.

A path of the valid or test split follows by deduction if its target can be
reached from its source along its relations in the graph of the training edges.
Otherwise predicting it takes induction. Path data can list both kinds of paths
in separate files, which this module finds and checks; `deducible` computes the
kind.
"""

import pathlib
import re
from collections.abc import Mapping, Sequence

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import text_files

Pair = tuple[pathlib.Path, pathlib.Path]  # deduction file, induction file


def deducible(
  paths: paths_lib.PathSet,
  train: np.ndarray,
  num_entities: int,
  inverse: np.ndarray,
) -> np.ndarray:
  """Returns whether each path's target is reached in the training graph.

  Args:
    paths: N paths.
    train: int32 [T, 3], the triples of the training graph.
    num_entities: V.
    inverse: int32 [R], the inverse of each relation, NO_RELATION where there is
      none.

  Returns:
    bool [N].
  """
  adjacency = adjacency_lib.from_triples(train, num_entities, inverse)
  return adjacency.traverse(paths.source, paths.relations).contains(
    paths.target
  )


def find_files(split_files: Mapping[str, pathlib.Path]) -> dict[str, Pair]:
  """Finds the files that list the deduction and induction paths of splits.

  Args:
    split_files: the file of each split.

  Returns:
    The two files of `valid` and `test`, for the splits that have them.

  Raises:
    text_files.DataError: only one of the two files exists, or several of one
      kind.
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
  """Returns which paths of a split are listed as deduction.

  Args:
    paths: the N paths of the split.
    path_file: the file of `paths`, for errors.
    parts: the paths of the deduction and of the induction file.
    part_files: the files of `parts`, for errors.

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
