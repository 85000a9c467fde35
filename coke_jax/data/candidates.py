"""Samples the entities that the softmax of a training step ranges over.

With very many entities, most of the time of a step is spent on logits of
entities that are no answer. A step then scores all answers of its batch and a
uniform sample of the other entities. Each sampled entity counts as often as is
needed to represent all entities that are no answer in the batch. The estimate
of a sum over all entities is unbiased.
"""

import numpy as np

# At least this share of the candidates are sampled entities.
_MIN_SAMPLED = 0.25


def sample_candidates(
  answers: np.ndarray,
  num_entities: int,
  size: int,
  generator: np.random.Generator,
) -> dict[str, np.ndarray]:
  """Samples candidates for a batch.

  Args:
    answers: int32 [B, M], the answers in the batch. Negative ids are padding.
    num_entities: V.
    size: the number of candidates. If less than a quarter of them could be
      sampled, because the batch has many answers, the number is doubled. It is
      at most V.
    generator: draws the sample.

  Returns:
    A dictionary of:
      `candidates`: int32 [1, C], distinct entities. The first ones are all
        answers of the batch.
      `candidate_weight`: float32 [1, C], 1 for answers. For sampled entities,
        the number of entities that are no answer, divided by the number of
        sampled ones. The sum is V.
      `answers`: int32 [B, M], the answers as indices of `candidates`.
  """
  distinct = np.unique(answers[answers >= 0])
  while size < num_entities and len(distinct) > (1 - _MIN_SAMPLED) * size:
    size *= 2
  size = min(size, num_entities)
  sampled = _sample_others(distinct, num_entities, size, generator)
  weight = np.ones(size, np.float32)
  if len(sampled):
    weight[len(distinct) :] = (num_entities - len(distinct)) / len(sampled)
  index = np.full(num_entities, -1, np.int32)
  index[distinct] = np.arange(len(distinct))
  return {
    'candidates': np.concatenate([distinct, sampled]).astype(np.int32)[None],
    'candidate_weight': weight[None],
    'answers': np.where(answers >= 0, index[answers], answers),
  }


def _sample_others(
  excluded: np.ndarray,
  num_entities: int,
  size: int,
  generator: np.random.Generator,
) -> np.ndarray:
  """Samples distinct entities until there are `size` with the excluded ones."""
  others = np.ones(num_entities, dtype=bool)
  others[excluded] = False
  count = size - len(excluded)
  if 2 * size > num_entities:
    return generator.permutation(np.flatnonzero(others))[:count]
  # For a small share of many entities, a permutation would take longer.
  found = np.zeros(0, np.int64)
  while len(found) < count:
    drawn = generator.integers(0, num_entities, 2 * count)
    found = np.unique(np.concatenate([found, drawn[others[drawn]]]))
  return generator.permutation(found)[:count]
