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
  answer_weight: jax.Array | None = None,
) -> jax.Array:
  """Computes the loss of each row, summed over the answers of the row.

  Every entity except the answer has the probability
  r = (1 - target_mass) / (V - 1). With logits z, the loss of an answer a is
  logsumexp(z) - (target_mass - r) z_a - r sum(z). The terms logsumexp(z) and
  sum(z) are computed once per row.

  With candidates, logsumexp(z) and sum(z) contain only the candidates. The
  weights `candidate_weight` turn these sums into estimates of the sums over all
  entities.

  Args:
    logits: float32 [B, V], or [B, C] with C candidates.
    answers: int32 [B, M] entity ids, or indices of candidates. Negative numbers
      are padding.
    target_mass: the probability of the answer in the target distribution. If
      V = 1, this probability is always 1.
    candidate_weight: float32 [C], see `data.candidates`. Default: there are no
      candidates.
    num_entities: V, only needed with candidates.
    answer_weight: float32 [B, M], the factor of the loss of each answer. The
      weights of padding are ignored. Default: 1.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  weight = weights_of_answers(answers, answer_weight)
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
  gold_sum = sum_of_answers(logits, answers, weight)
  return from_sums(
    normalizer, total, gold_sum, weight.sum(axis=1), target_mass, num_entities
  )


def weights_of_answers(
  answers: jax.Array, answer_weight: jax.Array | None
) -> jax.Array:
  """Returns the factor of the loss of each answer.

  Args:
    answers: int32 [B, M]. Negative numbers are padding.
    answer_weight: float32 [B, M]. None: every answer has the weight 1.

  Returns:
    float32 [B, M]. The weight of padding is 0.
  """
  weight = 1.0 if answer_weight is None else answer_weight
  return jnp.where(answers >= 0, weight, 0.0)


def sum_of_answers(
  logits: jax.Array, answers: jax.Array, weight: jax.Array
) -> jax.Array:
  """Computes the weighted sum of the logits of the answers of each row.

  Args:
    logits: float32 [B, C].
    answers: int32 [B, M], columns of `logits`. Negative numbers are left out.
    weight: float32 [B, M].

  Returns:
    float32 [B].
  """
  gold = jnp.take_along_axis(logits, jnp.maximum(answers, 0), axis=1)
  return jnp.where(answers >= 0, gold * weight, 0.0).sum(axis=1)


def from_sums(
  normalizer: jax.Array,
  total: jax.Array,
  gold_sum: jax.Array,
  weight: jax.Array,
  target_mass: float,
  num_entities: int,
) -> jax.Array:
  """Computes the loss of each row from sums over its logits.

  Args:
    normalizer: float32 [B], the logsumexp of the logits of all entities.
    total: float32 [B], the sum of these logits.
    gold_sum: float32 [B], the weighted sum of the logits of the answers.
    weight: float32 [B], the sum of the weights of the answers.
    target_mass: as in `smoothed_cross_entropy`.
    num_entities: V.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  rest = (1.0 - target_mass) / max(num_entities - 1, 1)
  if num_entities == 1:
    return weight * normalizer - gold_sum
  shared = normalizer - rest * total
  return weight * shared - (target_mass - rest) * gold_sum
