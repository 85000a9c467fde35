"""Divides the triples of a graph into train, valid and test."""

import dataclasses

import numpy as np

from coke_jax.data import grouping, text_files

TOGETHER = ('symmetric', 'pairs')


@dataclasses.dataclass(frozen=True)
class Shares:
  """Shares of the splits, and which triples stay together.

  Attributes:
    valid: share of the triples for valid, from 0 to less than 1.
    test: share of the triples for test, from 0 to less than 1.
    seed: seed of the random choice, at least 0.
    keep_together: which triples are in the same split. 'symmetric' keeps
      (h, r, t) and (t, r, h) together. 'pairs' keeps all triples between two
      entities together, so that no inverse or duplicate relation can give a
      test triple away. Equal triples always stay together.

  Raises:
    text_files.DataError: a value is not valid.
  """

  valid: float = 0.05
  test: float = 0.05
  seed: int = 0
  keep_together: str = 'symmetric'

  def __post_init__(self) -> None:
    for name in ('valid', 'test'):
      share = getattr(self, name)
      if not isinstance(share, int | float) or not 0 <= share < 1:
        raise text_files.DataError(
          f'{name}_share is {share!r}: expected a number of at least 0 and '
          'less than 1'
        )
    if self.valid + self.test >= 1:
      raise text_files.DataError(
        f'valid_share is {self.valid} and test_share is {self.test}: expected '
        'a sum of less than 1, so that triples are left for train'
      )
    if not isinstance(self.seed, int | np.integer) or self.seed < 0:
      raise text_files.DataError(
        f'seed is {self.seed!r}: expected a whole number of at least 0'
      )
    if self.keep_together not in TOGETHER:
      raise text_files.DataError(
        f'keep_together is {self.keep_together!r}: expected one of '
        f'{", ".join(TOGETHER)}'
      )


def split(triples: np.ndarray, shares: Shares) -> dict[str, np.ndarray]:
  """Chooses the triples of each split at random.

  Triples that must stay together form a group. At least one group of each
  entity and of each relation is put into train. So every entity and every
  relation of valid and test also occurs in train. Valid and test may have fewer
  triples than their shares, but never more. The order of the triples does not
  affect their splits.

  Args:
    triples: int32 [N, 3], with ids of sorted labels.
    shares: the shares, the seed, and which triples stay together.

  Returns:
    A dict from split name to int64, the row numbers in `triples`, ascending.
  """
  group, num_groups = groups(triples, shares.keep_together)
  order = np.random.default_rng([shares.seed]).permutation(num_groups)
  # The position of each group in `order`.
  place = np.empty(num_groups, dtype=np.int64)
  place[order] = np.arange(num_groups)

  in_train = np.zeros(num_groups, dtype=bool)
  head, relation, tail = triples.T
  for ids, places in (
    (np.concatenate([head, tail]), np.tile(place[group], 2)),
    (relation, place[group]),
  ):
    first = np.full(ids.max(initial=-1) + 1, num_groups, dtype=np.int64)
    np.minimum.at(first, ids, places)
    in_train[order[first[first < num_groups]]] = True

  free = order[~in_train[order]]
  sizes = np.bincount(group, minlength=num_groups)
  split_of_group = np.zeros(num_groups, dtype=np.int64)
  # Test is chosen before valid, so that the test split of a seed does not
  # depend on the share of valid.
  for number, share in ((2, shares.test), (1, shares.valid)):
    taken = np.cumsum(sizes[free]) <= round(share * len(triples))
    split_of_group[free[taken]] = number
    free = free[~taken]
  splits = split_of_group[group]
  return {
    name: np.flatnonzero(splits == number)
    for number, name in enumerate(('train', 'valid', 'test'))
  }


def groups(triples: np.ndarray, keep_together: str) -> tuple[np.ndarray, int]:
  """Groups the triples that must be in the same split.

  Args:
    triples: int32 [N, 3].
    keep_together: as in `Shares`.

  Returns:
    int64 [N], the group of each triple, numbered from 0.
    The number of groups.
  """
  head, relation, tail = triples.T
  pair = [np.minimum(head, tail), np.maximum(head, tail)]
  if keep_together == 'symmetric':
    pair.append(relation)
  return grouping.group_rows(np.stack(pair, axis=1))
