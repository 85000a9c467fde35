"""Ranks of gold entities, and the metrics made from them."""

import dataclasses

import numpy as np

HITS = (1, 3, 10)


@dataclasses.dataclass(frozen=True, eq=False)
class Ranks:
  """Where the gold entities stand; all arrays are int64 [N].

  Attributes:
    better: entities that score higher than the gold one.
    equal: other entities with exactly its score.
    candidates: entities in the ranking, the gold one among them.
  """

  better: np.ndarray
  equal: np.ndarray
  candidates: np.ndarray

  @property
  def optimistic(self) -> np.ndarray:
    """The gold entity first among its equals: int64 [N]."""
    return self.better + 1

  @property
  def pessimistic(self) -> np.ndarray:
    """The gold entity last among its equals: int64 [N]."""
    return self.better + self.equal + 1

  @property
  def realistic(self) -> np.ndarray:
    """The mean of the optimistic and the pessimistic rank: float64 [N]."""
    return (self.optimistic + self.pessimistic) / 2

  def take(self, rows: np.ndarray) -> 'Ranks':
    """The ranks at `rows`, integers [M] or booleans [N]."""
    return Ranks(self.better[rows], self.equal[rows], self.candidates[rows])


def rank_metrics(ranks: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
  """Mean reciprocal rank, hits, mean rank and adjusted mean rank index.

  Args:
    ranks: [N], from 1.
    candidates: [N], how many entities each rank is among.

  Returns:
    By name. The adjusted mean rank index (Berrendorf et al. 2020) is 1 for
    perfect ranks, 0 in expectation for random ones. Empty for N = 0.
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
