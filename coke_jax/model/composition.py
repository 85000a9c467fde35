"""The composition of a query: known entity times relations, as complex numbers.

A vector of D numbers stands for D / 2 complex numbers: the first half holds the
real parts, the second half the imaginary parts. The composition of a query
(s, r1, .., rk, ?) is the elementwise product s r1 .. rk, as in ComplEx
(Trouillon et al. 2016), chained for paths as in the compositional training of
Guu, Miller and Liang (2015). Relations have separate factors for each
direction: a query for the head starts at the tail and walks backwards.
"""

import jax
import jax.numpy as jnp


def complex_product(x: jax.Array, y: jax.Array) -> jax.Array:
  """Multiplies vectors of complex numbers elementwise.

  Args:
    x: float32 [..., D], D even.
    y: float32 [..., D].

  Returns:
    float32 [..., D].
  """
  x_real, x_imaginary = jnp.split(x, 2, axis=-1)
  y_real, y_imaginary = jnp.split(y, 2, axis=-1)
  return jnp.concatenate(
    [
      x_real * y_real - x_imaginary * y_imaginary,
      x_real * y_imaginary + x_imaginary * y_real,
    ],
    axis=-1,
  )


def compose(
  entity: jax.Array,
  factors: jax.Array,
  relations: jax.Array,
  head_query: jax.Array,
) -> jax.Array:
  """Multiplies each known entity with the relations of its query.

  Args:
    entity: float32 [B, D], the embedding of the known entity.
    factors: float32 [2 R, D], the relations' factors in forward direction, then
      in backward direction.
    relations: int32 [B, k] relation indices; negative: no relation.
    head_query: bool [B], whether the relations are walked backwards.

  Returns:
    float32 [B, D].
  """
  num_relations = factors.shape[0] // 2
  width = entity.shape[-1]
  one = (jnp.arange(width) < width // 2).astype(entity.dtype)  # 1 + 0i
  for relation in relations.T:
    row = jnp.maximum(relation, 0) + num_relations * head_query
    factor = jnp.take(factors, row, axis=0)
    factor = jnp.where((relation >= 0)[:, None], factor, one[None])
    entity = complex_product(entity, factor)
  return entity
