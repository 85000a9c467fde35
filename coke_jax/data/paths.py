"""Path data: sources, relations and targets of paths as integer arrays.

The file format is that of Guu, Miller and Liang (2015), "Traversing Knowledge
Graphs in Vector Space". Each line is a path: `source TAB relation,relation,...
TAB target`. The inverse of a relation is written as `**relation`. A relation
and its inverse are two relations of the vocabulary.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from coke_jax.data import graph, text_files
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib


@dataclasses.dataclass(frozen=True)
class PathFormat:
  """The format of the lines of a path file.

  Attributes:
    delimiter: the text between source, path and target.
    relation_delimiter: the text between two relations of a path.
    inverse_marker: the text before the label of an inverse relation.

  Raises:
    text_files.DataError: an attribute is empty, contains a line end, or is
      contained in another attribute.
  """

  delimiter: str = '\t'
  relation_delimiter: str = ','
  inverse_marker: str = '**'

  def __post_init__(self) -> None:
    for name, value in dataclasses.asdict(self).items():
      if not value or '\n' in value or '\r' in value:
        raise text_files.DataError(
          f'{name} is {value!r}: expected at least one character and no line '
          'end'
        )
      for other, text in dataclasses.asdict(self).items():
        if name != other and value in text:
          raise text_files.DataError(
            f'{name} is {value!r} and {other} is {text!r}: expected neither '
            'to contain the other'
          )


@dataclasses.dataclass(frozen=True, eq=False)
class PathSet:
  """N paths with 1 to `longest` relations.

  Attributes:
    source: int32 [N], entity ids.
    relations: int32 [N, longest], relation indices, padded with NO_RELATION on
      the right.
    target: int32 [N], entity ids.

  Raises:
    ValueError: the shapes do not fit together.
  """

  source: np.ndarray
  relations: np.ndarray
  target: np.ndarray

  def __post_init__(self) -> None:
    rows = len(self.source)
    if self.relations.ndim != 2 or len(self.relations) != rows:
      raise ValueError(
        f'relations has the shape {self.relations.shape}: expected [{rows}, '
        'longest]'
      )
    if self.target.shape != (rows,):
      raise ValueError(
        f'target has the shape {self.target.shape}: expected [{rows}]'
      )

  def __len__(self) -> int:
    return len(self.source)

  @property
  def length(self) -> np.ndarray:
    """The number of relations of each path: int32 [N]."""
    return (self.relations != vocabulary_lib.NO_RELATION).sum(
      axis=1, dtype=np.int32
    )

  @property
  def last_relation(self) -> np.ndarray:
    """The last relation of each path: int32 [N]."""
    return self.relations[np.arange(len(self)), self.length - 1]

  def take(self, rows: np.ndarray) -> 'PathSet':
    """Returns the paths at `rows`, integers [M] or booleans [N]."""
    return PathSet(self.source[rows], self.relations[rows], self.target[rows])

  def up_to(self, longest: int) -> 'PathSet':
    """Returns the paths with at most `longest` relations.

    The array `relations` of the result has at most `longest` columns.
    """
    kept = self.take(self.length <= longest)
    return PathSet(kept.source, kept.relations[:, :longest], kept.target)

  def single_edges(self) -> np.ndarray:
    """Returns the paths with a single relation as triples: int32 [edges, 3]."""
    single = self.up_to(1)
    return np.stack(
      [single.source, single.relations[:, 0], single.target], axis=1
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PathData:
  """The paths of three splits, in the order of the lines of the files.

  Attributes:
    name: the name of the data set in results.
    vocabulary: the labels of all splits, including entities unseen in train.
      If the files contain any inverse relation, every relation has an inverse.
    inverse: int32 [R], the index of each relation's inverse. All values are
      NO_RELATION if the files contain no inverse relation.
    train: the training paths.
    valid: the paths for choosing the best checkpoint. It may be empty.
    test: the paths for the final evaluation. It may be empty.
    deduction: a dict from `valid` and `test` to bool [N], True for paths by
      deduction (see the module `deduction`). Entries may be missing.
  """

  name: str
  vocabulary: vocabulary_lib.Vocabulary
  inverse: np.ndarray
  train: PathSet
  valid: PathSet
  test: PathSet
  deduction: dict[str, np.ndarray]

  def split(self, name: str) -> PathSet:
    """Returns the paths of a split.

    Raises:
      ValueError: `name` is not `train`, `valid` or `test`.
    """
    if name not in graph.SPLITS:
      raise ValueError(f'split is {name!r}: expected one of {graph.SPLITS}')
    return getattr(self, name)

  def single_edges(self) -> graph.KnowledgeGraph:
    """Returns the paths with a single relation as the triples of a graph."""
    edges = {name: self.split(name).single_edges() for name in graph.SPLITS}
    name = f'{self.name} (single edges)'
    return graph.KnowledgeGraph(name, self.vocabulary, **edges)

  def num_distinct(self, split: str) -> int:
    """Returns the number of distinct paths of a split."""
    keys = np.sort(path_keys([self.split(split)])[0])
    return int(np.count_nonzero(np.diff(keys))) + min(len(keys), 1)

  def _seen(self) -> np.ndarray:
    """Returns which entities are the source or target of a training path."""
    seen = np.zeros(self.vocabulary.num_entities, dtype=bool)
    seen[self.train.source] = seen[self.train.target] = True
    return seen

  def has_unseen_entity(self, paths: PathSet) -> np.ndarray:
    """Returns which paths have a source or target that is in no training path.

    Args:
      paths: N paths.

    Returns:
      bool [N].
    """
    seen = self._seen()
    return ~(seen[paths.source] & seen[paths.target])

  def summary(self) -> str:
    """Returns a table of the counts of each split."""
    longest = self.train.relations.shape[1]
    head = ['split', 'lines', 'distinct', 'duplicates', 'unseen entity']
    head.extend(f'length {length}' for length in range(1, longest + 1))
    rows = [head]
    for split in graph.SPLITS:
      paths, distinct = self.split(split), self.num_distinct(split)
      unseen = int(self.has_unseen_entity(paths).sum())
      lengths = np.bincount(paths.length, minlength=longest + 1)[1:]
      counts = (len(paths), distinct, len(paths) - distinct, unseen, *lengths)
      rows.append([split, *(f'{count:,}' for count in counts)])
    table = '\n'.join(
      f'  {row[0]:<6}' + ''.join(f'{cell:>14}' for cell in row[1:])
      for row in rows
    )
    deduction = ''.join(
      f'\n  {split}: {int(mask.sum()):,} paths by deduction, '
      f'{int((~mask).sum()):,} by induction'
      for split, mask in self.deduction.items()
    )
    return (
      f'{self.name}: {self.vocabulary.num_entities:,} entities, '
      f'{int((~self._seen()).sum()):,} of them in no training path; '
      f'{self.vocabulary.num_relations:,} relations with their inverses\n'
      f'{table}{deduction}\n'
      '  (unseen entity: paths whose source or target is in no training path)'
    )


def path_keys(sets: Sequence[PathSet]) -> list[np.ndarray]:
  """Returns an integer key for each path.

  Two paths have the same key if and only if they are equal. Only keys of the
  same call are comparable.

  Args:
    sets: path sets with the same number of relation columns.

  Returns:
    int64 [N] for each set.
  """
  keys = np.zeros(sum(map(len, sets)), dtype=np.int64)
  span = 1  # All keys are below this number.
  columns = [
    np.concatenate([paths.source for paths in sets]),
    np.concatenate([paths.target for paths in sets]),
    *np.concatenate([paths.relations for paths in sets]).T,
  ]
  for column in columns:
    size = int(column.max(initial=0)) + 2
    if span > np.iinfo(np.int64).max // size:
      distinct, keys = np.unique(keys, return_inverse=True)
      span = len(distinct)
    keys = keys * size + (column + 1)  # NO_RELATION becomes 0
    span *= size
  return np.split(keys, np.cumsum([len(paths) for paths in sets])[:-1])


def queries_from_paths(
  paths: PathSet,
  vocabulary: vocabulary_lib.Vocabulary,
  *,
  side: str = 'both',
) -> queries_lib.Queries:
  """Makes queries for the source or the target of each path, or for both.

  Args:
    paths: N paths with at most `longest` relations.
    vocabulary: the vocabulary of the token ids.
    side: `head` masks the source of each path, and `tail` masks its target.
      `both` gives the N tail queries, then the N head queries. Default: `both`.

  Returns:
    N or 2 N queries with K = longest + 2 tokens and one answer each.

  Raises:
    ValueError: `side` has another value.
  """
  if side == 'both':
    tail = queries_from_paths(paths, vocabulary, side='tail')
    head = queries_from_paths(paths, vocabulary, side='head')
    return queries_lib.concatenate([tail, head])
  if side not in ('head', 'tail'):
    raise ValueError(f"side is {side!r}: expected 'head', 'tail' or 'both'")
  rows, end = np.arange(len(paths)), paths.length + 1
  tokens = np.full(
    (len(paths), paths.relations.shape[1] + 2),
    vocabulary.pad_id,
    dtype=np.int32,
  )
  walked = paths.relations != vocabulary_lib.NO_RELATION
  tokens[:, 1:-1][walked] = paths.relations[walked] + vocabulary.num_entities
  tokens[:, 0] = paths.source
  tokens[rows, end] = paths.target
  position = {'head': np.zeros_like(end), 'tail': end}[side]
  tokens[rows, position] = vocabulary.mask_id
  return queries_lib.Queries(
    tokens,
    position,
    np.arange(len(paths) + 1, dtype=np.int64),
    {'head': paths.source, 'tail': paths.target}[side].copy(),
  )
