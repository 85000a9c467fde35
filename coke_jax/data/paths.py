"""Path data: `source, relations along the path, target`, as integer arrays.

The files of Guu, Miller and Liang (2015), "Traversing Knowledge Graphs in
Vector Space": one path a line, `source TAB relation,relation,... TAB target`,
with `**` before a relation that is walked against its direction. A relation
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
  """How the lines of a path file are laid out.

  Attributes:
    delimiter: the text between source, path and target.
    relation_delimiter: the text between two relations of a path.
    inverse_marker: the text before a relation walked against its direction.
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
  """N paths of 1 to `longest` relations.

  Attributes:
    source: int32 [N], entity ids.
    relations: int32 [N, longest], relation indices, NO_RELATION on the right.
    target: int32 [N], entity ids.
  """

  source: np.ndarray
  relations: np.ndarray
  target: np.ndarray

  def __post_init__(self) -> None:
    rows = len(self.source)
    if self.relations.ndim != 2 or len(self.relations) != rows:
      raise ValueError(
        f'relations {self.relations.shape}: expected [{rows}, longest]'
      )
    if self.target.shape != (rows,):
      raise ValueError(f'target {self.target.shape}: expected [{rows}]')

  def __len__(self) -> int:
    return len(self.source)

  @property
  def length(self) -> np.ndarray:
    """How many relations each path has: int32 [N]."""
    return (self.relations != vocabulary_lib.NO_RELATION).sum(
      axis=1, dtype=np.int32
    )

  @property
  def last_relation(self) -> np.ndarray:
    """The relation that leads to the target: int32 [N]."""
    return self.relations[np.arange(len(self)), self.length - 1]

  def take(self, rows: np.ndarray) -> 'PathSet':
    """The paths at `rows` (integers [M] or booleans [N]), in that order."""
    return PathSet(self.source[rows], self.relations[rows], self.target[rows])

  def up_to(self, longest: int) -> 'PathSet':
    """The paths of at most `longest` relations, no wider than that."""
    kept = self.take(self.length <= longest)
    return PathSet(kept.source, kept.relations[:, :longest], kept.target)

  def single_edges(self) -> np.ndarray:
    """The paths of one relation as triples: int32 [edges, 3]."""
    single = self.up_to(1)
    return np.stack(
      [single.source, single.relations[:, 0], single.target], axis=1
    )


@dataclasses.dataclass(frozen=True, eq=False)
class PathData:
  """Paths in three splits; every line of the files is kept, in its order.

  Attributes:
    name: what results call this data set.
    vocabulary: the labels of all splits; entities unseen in train are entities.
      When the files hold an inverse, every relation has one.
    inverse: int32 [R], the index of each relation's inverse; NO_RELATION
      throughout when the files hold no inverse.
    train: the paths to train on.
    valid: for choosing the best checkpoint; may be empty.
    test: may be empty.
    deduction: for `valid` and `test`, where the folder says so: whether each
      path's target can be reached in the graph of the training edges, bool [N].
  """

  name: str
  vocabulary: vocabulary_lib.Vocabulary
  inverse: np.ndarray
  train: PathSet
  valid: PathSet
  test: PathSet
  deduction: dict[str, np.ndarray]

  def split(self, name: str) -> PathSet:
    """The paths of `train`, `valid` or `test`."""
    if name not in graph.SPLITS:
      raise ValueError(f'split is {name!r}: expected one of {graph.SPLITS}')
    return getattr(self, name)

  def num_distinct(self, split: str) -> int:
    """How many different paths a split holds."""
    keys = np.sort(path_keys([self.split(split)])[0])
    return int(np.count_nonzero(np.diff(keys))) + min(len(keys), 1)

  def _seen(self) -> np.ndarray:
    """Whether an entity is source or target in train: bool [V]."""
    seen = np.zeros(self.vocabulary.num_entities, dtype=bool)
    seen[self.train.source] = seen[self.train.target] = True
    return seen

  def has_unseen_entity(self, paths: PathSet) -> np.ndarray:
    """Whether a path's source or target is in no training path: bool [N]."""
    seen = self._seen()
    return ~(seen[paths.source] & seen[paths.target])

  def summary(self) -> str:
    """A table of what was read: lines, distinct paths, lengths, entities."""
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
  """One integer a path, equal for equal paths of all the sets.

  Args:
    sets: with the same number of relation columns.

  Returns:
    int64 [N] for each set.
  """
  keys = np.zeros(sum(map(len, sets)), dtype=np.int64)
  span = 1  # keys are below it
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
  """Queries that ask for the source, the target or both of each path.

  Args:
    paths: N paths of at most `longest` relations.
    vocabulary: gives relations, MASK and PAD their token ids.
    side: which entity is masked: `head` (the source), `tail` (the target) or
      `both`: first the N tail queries, then the N head queries.

  Returns:
    N or 2 N queries of K = longest + 2 tokens with one answer each.
  """
  if side == 'both':
    tail = queries_from_paths(paths, vocabulary, side='tail')
    head = queries_from_paths(paths, vocabulary, side='head')
    return queries_lib.concatenate([tail, head])
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
