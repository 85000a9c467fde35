"""A knowledge graph: the triples of three splits as integer arrays."""

import dataclasses

import numpy as np

from coke_jax.data import grouping
from coke_jax.data import vocabulary as vocabulary_lib

SPLITS = ('train', 'valid', 'test')


@dataclasses.dataclass(frozen=True, eq=False)
class KnowledgeGraph:
  """The triples of three splits, in the order of the lines of the files.

  Attributes:
    name: the name of the graph in results.
    vocabulary: the labels of all splits, including entities unseen in train.
    train: int32 [lines, 3]: head entity id, relation index, tail entity id.
    valid: int32 [lines, 3], for choosing the best checkpoint. It may be empty.
    test: int32 [lines, 3], for the final evaluation. It may be empty.
  """

  name: str
  vocabulary: vocabulary_lib.Vocabulary
  train: np.ndarray
  valid: np.ndarray
  test: np.ndarray

  def split(self, name: str) -> np.ndarray:
    """Returns the triples of a split: int32 [lines, 3].

    Raises:
      ValueError: `name` is not `train`, `valid` or `test`.
    """
    if name not in SPLITS:
      raise ValueError(f'split is {name!r}: expected one of {SPLITS}')
    return getattr(self, name)

  def triples(self, *names: str) -> np.ndarray:
    """Returns the concatenated triples of several splits: int32 [lines, 3].

    Raises:
      ValueError: a name is not `train`, `valid` or `test`.
    """
    return np.concatenate([self.split(name) for name in names])

  def num_distinct(self, split: str) -> int:
    """Returns the number of distinct triples of a split."""
    return len(grouping.distinct_rows(self.split(split)))

  def has_unseen_entity(self, triples: np.ndarray) -> np.ndarray:
    """Returns which triples have an entity that is in no training triple.

    Args:
      triples: int32 [N, 3].

    Returns:
      bool [N].
    """
    seen = np.zeros(self.vocabulary.num_entities, dtype=bool)
    seen[self.train[:, [0, 2]]] = True
    return ~seen[triples[:, [0, 2]]].all(axis=1)

  def summary(self) -> str:
    """Returns a table of the counts of each split."""
    head = ('split', 'lines', 'distinct', 'duplicates', 'also in train')
    rows: list[tuple[str, ...]] = [(*head, 'unseen entity', 'unseen relation')]
    for split in SPLITS:
      lines = len(self.split(split))
      distinct = self.num_distinct(split)
      triples = self.split(split)
      unseen = int(self.has_unseen_entity(triples).sum())
      new = int((~np.isin(triples[:, 1], self.train[:, 1])).sum())
      repeated = 0 if split == 'train' else self.num_in_train(triples)
      numbers = (lines, distinct, lines - distinct, repeated, unseen, new)
      rows.append((split, *(f'{number:,}' for number in numbers)))
    table = '\n'.join(
      f'  {row[0]:<6}' + ''.join(f'{cell:>16}' for cell in row[1:])
      for row in rows
    )
    return (
      f'{self.name}: {self.vocabulary.num_entities:,} entities, '
      f'{self.vocabulary.num_relations:,} relations\n{table}\n'
      '  (unseen: triples with an entity or relation that is not in train)'
    )

  def num_in_train(self, triples: np.ndarray) -> int:
    """Returns how many of the triples [N, 3] are also training triples."""
    if not len(triples):
      return 0
    finder = grouping.RowFinder(triples)
    in_train = np.zeros(finder.num_groups, dtype=bool)
    in_train[finder.find(self.train)[0]] = True
    return int(in_train[finder.group].sum())
