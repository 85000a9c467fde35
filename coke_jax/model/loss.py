"""Cross-entropy against the smoothed target (paper, section 3.3).

The target distribution of a masked sequence has the mass `target_mass` on the
answer and divides the rest equally among the V - 1 other entities. In the
paper, epsilon is the mass on the answer. In most other work on label smoothing,
epsilon is the mass on the rest.
"""

import jax
import jax.numpy as jnp


def smoothed_cross_entropy(
  logits: jax.Array, answers: jax.Array, target_mass: float
) -> jax.Array:
  """Computes the loss of each row, summed over its answers.

  With the mass r = (1 - target_mass) / (V - 1) on each other entity, the loss
  of an answer a is logsumexp(z) - (target_mass - r) z_a - r sum(z). The terms
  logsumexp(z) and sum(z) are computed once per row.

  Args:
    logits: float32 [B, V].
    answers: int32 [B, M] entity ids. Negative ids are padding.
    target_mass: the probability of the answer in the target distribution. If
      V = 1, the answer has all the mass.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  num_entities = logits.shape[-1]
  valid = answers >= 0
  count = valid.sum(axis=1).astype(logits.dtype)
  gold = jnp.take_along_axis(logits, jnp.maximum(answers, 0), axis=1)
  gold_sum = jnp.where(valid, gold, 0.0).sum(axis=1)
  rest = (1.0 - target_mass) / max(num_entities - 1, 1)
  normalizer = jax.nn.logsumexp(logits, axis=1)
  if num_entities == 1:
    return count * normalizer - gold_sum
  shared = normalizer - rest * logits.sum(axis=1)
  return count * shared - (target_mass - rest) * gold_sum
