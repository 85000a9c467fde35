"""Ranks of gold entities and the metrics computed from them."""

import dataclasses

import numpy as np

HITS = (1, 3, 10)


@dataclasses.dataclass(frozen=True, eq=False)
class Ranks:
  """Ranks of N gold entities.

  Attributes:
    better: int64 [N], the number of candidates with a higher score than the
      gold entity.
    equal: int64 [N], the number of other candidates with the score of the gold
      entity.
    candidates: int64 [N], the number of candidates, including the gold entity.
  """

  better: np.ndarray
  equal: np.ndarray
  candidates: np.ndarray

  @property
  def optimistic(self) -> np.ndarray:
    """The rank if the gold entity is first among equal scores: int64 [N]."""
    return self.better + 1

  @property
  def pessimistic(self) -> np.ndarray:
    """The rank if the gold entity is last among equal scores: int64 [N]."""
    return self.better + self.equal + 1

  @property
  def realistic(self) -> np.ndarray:
    """The mean of the optimistic and the pessimistic rank: float64 [N]."""
    return (self.optimistic + self.pessimistic) / 2

  def take(self, rows: np.ndarray) -> 'Ranks':
    """Returns the ranks at `rows`, integers [M] or booleans [N]."""
    return Ranks(self.better[rows], self.equal[rows], self.candidates[rows])


def rank_metrics(ranks: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
  """Computes the usual metrics of ranks.

  Args:
    ranks: float64 or int64 [N], counted from 1.
    candidates: int64 [N], the number of candidates of each ranking.

  Returns:
    A dictionary of `mrr`, `hits@1`, `hits@3`, `hits@10`, `mean_rank` and
    `adjusted_mean_rank_index` (Berrendorf et al. 2020). This index is 1 if all
    ranks are 1, and 0 on average for random ranks. The dictionary is empty if
    N = 0.
  """
  if not len(ranks):
    return {}
  metrics = {'mrr': float(np.mean(1.0 / ranks))}
  for k in HITS:
    metrics[f'hits@{k}'] = float(np.mean(ranks <= k))
  metrics['mean_rank'] = float(np.mean(ranks))
  chance = float(np.mean((candidates + 1) / 2)) - 1
  excess = metrics['mean_rank'] - 1
  metrics['adjusted_mean_rank_index'] = 1 - excess / chance if chance else 1.0
  return metrics
