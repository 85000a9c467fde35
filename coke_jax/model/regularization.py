"""The N3 penalty on the vectors that a composition multiplies.

N3 is the sum of the cubed moduli of complex numbers (Lacroix, Usunier and
Obozinski 2018). The penalty of a training instance is the sum over the vectors
of its known entity, its relation factors and its answer. So a vector is
penalized once for each instance that uses it.

Factors are not penalized in two cases. With rotations, their moduli do not
change the score. In path queries, the factors of several relations are
multiplied, and the penalty would make this product too small to be learned.
"""

from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.model import composition, input_embedding

# Makes the gradient of a modulus finite at 0.
_MIN_SQUARED_MODULUS = 1e-12


def cubed_moduli(x: jax.Array) -> jax.Array:
  """Sums the cubed moduli of vectors of complex numbers.

  Args:
    x: float32 [..., D], D even.

  Returns:
    float32 [...].
  """
  real, imaginary = jnp.split(x, 2, axis=-1)
  squared = real**2 + imaginary**2 + _MIN_SQUARED_MODULUS
  return (squared * jnp.sqrt(squared)).sum(axis=-1)


def n3_penalty(
  params: Any,
  batch: dict[str, jax.Array],
  num_entities: int,
  pad_id: int,
  *,
  penalize_factors: bool = True,
) -> jax.Array:
  """Computes the N3 penalty of each row, summed over the answers of the row.

  Args:
    params: parameters of `encoder.CoKE` with a composition.
    batch: a batch of `data.batches.TrainingSet`. If it contains `candidates`,
      they are int32 [C], without the axis of devices.
    num_entities: V.
    pad_id: the token id of PAD.
    penalize_factors: whether the relation factors are penalized, too.

  Returns:
    float32 [B]. The penalty of a row without answers is 0.
  """
  elements, factors = (
    params['element_embedding'],
    params['composition_embedding'],
  )
  num_relations = factors.shape[0] // 2
  tokens, answers = batch['tokens'], batch['answers']
  head_query = tokens[:, 0] == num_entities + num_relations
  relations = input_embedding.relation_indices(
    tokens, num_entities, num_relations
  )
  rows = composition.factor_rows(relations, head_query, num_relations)
  penalized = (relations >= 0) & penalize_factors
  of_factors = jnp.where(
    penalized, jnp.take(cubed_moduli(factors), rows), 0.0
  ).sum(axis=1)
  known = input_embedding.known_entity(tokens, tokens != pad_id, head_query)
  # A padding row has no known entity. Any entity may be used instead, because
  # the row has no answers and thus the penalty 0.
  known = jnp.minimum(known, num_entities - 1)
  of_known = cubed_moduli(jnp.take(elements, known, axis=0))
  possible = (
    jnp.take(elements, batch['candidates'], axis=0)
    if 'candidates' in batch
    else elements[:num_entities]
  )
  of_answers = jnp.take(cubed_moduli(possible), jnp.maximum(answers, 0))
  valid = answers >= 0
  of_query = of_known + of_factors
  return jnp.where(valid, of_answers + of_query[:, None], 0.0).sum(axis=1)
