"""Cross-entropy against the smoothed target (paper, section 3.3).

For a masked sequence with the answer a, the target distribution has the mass
`target_mass` on a, and the rest in equal parts on the V - 1 other entities.
The paper writes epsilon for the mass on the answer; label smoothing elsewhere
writes epsilon for what is taken away from it.
"""

import jax
import jax.numpy as jnp


def smoothed_cross_entropy(
  logits: jax.Array, answers: jax.Array, target_mass: float
) -> jax.Array:
  """The loss of each row, summed over its answers.

  With r = (1 - target_mass) / (V - 1) on each wrong entity, an answer a costs
  logsumexp(z) - (target_mass - r) z_a - r sum(z), so all the answers of a row
  share the two sums over the vocabulary.

  Args:
    logits: float32 [B, V].
    answers: int32 [B, M] entity ids; negative ones are padding.
    target_mass: the probability that the target puts on the answer.

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
  if num_entities == 1:  # nothing to tell apart: the answer has all the mass
    return count * normalizer - gold_sum
  shared = normalizer - rest * logits.sum(axis=1)
  return count * shared - (target_mass - rest) * gold_sum
