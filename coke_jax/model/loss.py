"""Cross-entropy against the smoothed target (paper, section 3.3).

In the target distribution of a masked sequence, the answer has the probability
`target_mass`. The V - 1 other entities share the rest equally. The paper calls
the probability of the answer epsilon. In most other work on label smoothing,
epsilon is the probability of the rest.
"""

import jax
import jax.numpy as jnp


def smoothed_cross_entropy(
  logits: jax.Array,
  answers: jax.Array,
  target_mass: float,
  *,
  candidate_weight: jax.Array | None = None,
  num_entities: int | None = None,
) -> jax.Array:
  """Computes the loss of each row, summed over the answers of the row.

  Each other entity has the probability r = (1 - target_mass) / (V - 1). With
  logits z, the loss of an answer a is
  logsumexp(z) - (target_mass - r) z_a - r sum(z). The terms logsumexp(z) and
  sum(z) are computed once per row.

  With candidates, the sum inside logsumexp(z) and sum(z) run over the
  candidates. They are weighted with `candidate_weight`, so that they estimate
  the sums over all entities.

  Args:
    logits: float32 [B, V], or [B, C] with C candidates.
    answers: int32 [B, M] entity ids, or indices of candidates. Negative numbers
      are padding.
    target_mass: the probability of the answer in the target distribution. If
      V = 1, this probability is always 1.
    candidate_weight: float32 [C], see `data.candidates`. Default: there are no
      candidates.
    num_entities: V. It is only needed with candidates.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  if candidate_weight is None:
    num_entities = logits.shape[-1]
    normalizer = jax.nn.logsumexp(logits, axis=1)
    total = logits.sum(axis=1)
  else:
    assert num_entities is not None
    normalizer = jax.nn.logsumexp(
      logits + jnp.log(candidate_weight)[None], axis=1
    )
    total = jnp.dot(
      logits, candidate_weight, precision=jax.lax.Precision.HIGHEST
    )
  count = (answers >= 0).sum(axis=1).astype(logits.dtype)
  gold_sum = sum_of_answers(logits, answers)
  return from_sums(
    normalizer, total, gold_sum, count, target_mass, num_entities
  )


def sum_of_answers(logits: jax.Array, answers: jax.Array) -> jax.Array:
  """Sums the logits of the answers of each row.

  Args:
    logits: float32 [B, C].
    answers: int32 [B, M], columns of `logits`. Negative numbers are padding.

  Returns:
    float32 [B].
  """
  gold = jnp.take_along_axis(logits, jnp.maximum(answers, 0), axis=1)
  return jnp.where(answers >= 0, gold, 0.0).sum(axis=1)


def from_sums(
  normalizer: jax.Array,
  total: jax.Array,
  gold_sum: jax.Array,
  count: jax.Array,
  target_mass: float,
  num_entities: int,
) -> jax.Array:
  """Computes the loss of each row from sums over its logits.

  Args:
    normalizer: float32 [B], the logsumexp of the logits of all entities.
    total: float32 [B], the sum of these logits.
    gold_sum: float32 [B], the sum of the logits of the answers.
    count: float32 [B], the number of answers.
    target_mass: as in `smoothed_cross_entropy`.
    num_entities: V.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  rest = (1.0 - target_mass) / max(num_entities - 1, 1)
  if num_entities == 1:
    return count * normalizer - gold_sum
  shared = normalizer - rest * total
  return count * shared - (target_mass - rest) * gold_sum
