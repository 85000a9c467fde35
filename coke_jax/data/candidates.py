"""Samples the entities that the softmax of a training step ranges over.

In a graph with very many entities, a training step spends most of its time on
the logits of entities that are not answers. If candidates are sampled, a step
scores all entities of its batch and a uniform sample of the other entities. The
weights of the candidates make a weighted sum over the candidates an unbiased
estimate of the sum over all entities.
"""

import numpy as np

from coke_jax.data import grouping

# Minimum share of the sampled entities among the candidates.
_MIN_SAMPLED = 0.25


def sample_candidates(
  answers: np.ndarray,
  num_entities: int,
  size: int,
  generator: np.random.Generator,
  known: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
  """Samples candidates for a batch.

  Args:
    answers: int32 [B, M], the answers in the batch. Negative ids are padding.
    num_entities: V.
    size: the number of candidates. It is doubled until at least a quarter of
      the candidates are sampled entities, but it never exceeds V.
    generator: draws the sample.
    known: int32 [..], ids of other entities that become candidates. Default:
      none.

  Returns:
    A dictionary of:
      `candidates`: int32 [1, C], distinct entities: first all answers of the
        batch and all entities of `known`, then the sampled entities.
      `candidate_weight`: float32 [1, C]. The weight of the answers and of the
        entities of `known` is 1. The weight of a sampled entity is the number
        of remaining entities, divided by the number of sampled entities. The
        sum of all weights is V.
      `answers`: int32 [B, M], the answers as indices of `candidates`.
  """
  distinct = answers[answers >= 0]
  if known is not None:
    distinct = np.concatenate([distinct, known.ravel()])
  distinct = grouping.distinct_values(distinct)
  while size < num_entities and len(distinct) > (1 - _MIN_SAMPLED) * size:
    size *= 2
  size = min(size, num_entities)
  sampled = _sample_others(distinct, num_entities, size, generator)
  weight = np.ones(size, np.float32)
  if len(sampled):
    weight[len(distinct) :] = (num_entities - len(distinct)) / len(sampled)
  # With millions of entities, a search is faster than a table of all entities.
  index = np.searchsorted(distinct, answers).astype(np.int32)
  return {
    'candidates': np.concatenate([distinct, sampled]).astype(np.int32)[None],
    'candidate_weight': weight[None],
    'answers': np.where(answers >= 0, index, answers),
  }


def _sample_others(
  excluded: np.ndarray,
  num_entities: int,
  size: int,
  generator: np.random.Generator,
) -> np.ndarray:
  """Samples `size - len(excluded)` distinct entities that are not excluded."""
  others = np.ones(num_entities, dtype=bool)
  others[excluded] = False
  count = size - len(excluded)
  if 2 * size > num_entities:
    return generator.permutation(np.flatnonzero(others))[:count]
  # For a small sample, repeated draws are faster than a permutation.
  found = np.zeros(0, np.int64)
  while len(found) < count:
    drawn = generator.integers(0, num_entities, 2 * count)
    found = np.concatenate([found, drawn[others[drawn]]])
    found = grouping.distinct_values(found)
  return generator.permutation(found)[:count]
