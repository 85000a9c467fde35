"""Converts a data set to a dictionary of arrays and back."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from coke_jax.data import graph as graph_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

DataSet = graph_lib.KnowledgeGraph | paths_lib.PathData

_PATH_FIELDS = tuple(
  field.name for field in dataclasses.fields(paths_lib.PathSet)
)


def equal(left: DataSet, right: DataSet) -> bool:
  """Returns whether two data sets are equal, except for their names.

  Splits with the same lines in a different order are not equal.
  """
  if type(left) is not type(right) or left.vocabulary != right.vocabulary:
    return False
  first, second = to_arrays(left), to_arrays(right)
  return first.keys() == second.keys() and all(
    np.array_equal(first[name], second[name]) for name in first
  )


def to_arrays(data: DataSet) -> dict[str, np.ndarray]:
  """Returns the arrays of a data set, without its name and labels.

  Args:
    data: a graph or path data.

  Returns:
    A dictionary of arrays. For a graph:
      `<split>`: int32 [lines, 3], for each of the three splits.
    For path data:
      `inverse`: the index of each relation's inverse.
      `<split> <field>`, such as `train source`: a field of a `paths.PathSet`.
      `<split> deduction`: the mask in `data.deduction`, if it has this split.
  """
  if isinstance(data, graph_lib.KnowledgeGraph):
    return {split: data.split(split) for split in graph_lib.SPLITS}
  arrays = {'inverse': data.inverse}
  for split in graph_lib.SPLITS:
    for field in _PATH_FIELDS:
      arrays[f'{split} {field}'] = getattr(data.split(split), field)
  for split, mask in data.deduction.items():
    arrays[f'{split} deduction'] = mask
  return arrays


def from_arrays(
  name: str,
  vocabulary: vocabulary_lib.Vocabulary,
  arrays: Mapping[str, np.ndarray],
) -> DataSet:
  """Restores a data set from the arrays of `to_arrays`.

  Args:
    name: the name of the data set in results.
    vocabulary: the labels of all ids.
    arrays: the arrays by name. The result is path data if there is an array
      `inverse`, and a graph otherwise.

  Raises:
    KeyError: an array is missing.
    ValueError: an array does not have the expected shape or dtype, or contains
      an id without a label.
  """
  if 'inverse' not in arrays:
    splits = {split: arrays[split] for split in graph_lib.SPLITS}
    for split, triples in splits.items():
      if triples.ndim != 2 or triples.shape[1] != 3:
        raise ValueError(
          f'{split} has the shape {triples.shape}: expected [lines, 3]'
        )
      _check(split, triples[:, [0, 2]], 0, vocabulary.num_entities)
      _check(split, triples[:, 1], 0, vocabulary.num_relations)
    return graph_lib.KnowledgeGraph(name, vocabulary, **splits)
  sets = {
    split: paths_lib.PathSet(
      *(arrays[f'{split} {field}'] for field in _PATH_FIELDS)
    )
    for split in graph_lib.SPLITS
  }
  no_relation = vocabulary_lib.NO_RELATION
  for split, paths in sets.items():
    _check(split, paths.source, 0, vocabulary.num_entities)
    _check(split, paths.target, 0, vocabulary.num_entities)
    _check(split, paths.relations, no_relation, vocabulary.num_relations)
  _check('inverse', arrays['inverse'], no_relation, vocabulary.num_relations)
  deduction = {
    split: arrays[f'{split} deduction']
    for split in graph_lib.SPLITS
    if f'{split} deduction' in arrays
  }
  return paths_lib.PathData(
    name, vocabulary, arrays['inverse'], **sets, deduction=deduction
  )


def _check(name: str, ids: np.ndarray, least: int, end: int) -> None:
  if ids.dtype.kind != 'i':
    raise ValueError(f'{name} holds {ids.dtype}: expected integers')
  if ids.size and not (least <= ids.min() and ids.max() < end):
    raise ValueError(
      f'{name} holds ids from {ids.min()} to {ids.max()}: expected {least} to '
      f'{end - 1}'
    )
