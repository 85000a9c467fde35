"""Composes the known entity of a query with the relations of the query.

A vector of D numbers stands for D / 2 complex numbers: the first half holds the
real parts, the second half the imaginary parts. The composition of a query
(s, r1, .., rk, ?) is the elementwise complex product s r1 .. rk. For a triple,
this is the product in ComplEx (Trouillon et al. 2016). For a path, products are
chained as in the compositional training of Guu, Miller and Liang (2015).

Every relation has two factors. The forward factor is used in queries for the
tail. The backward factor is used in queries for the head, which start at the
tail and follow the relations backwards.
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
    factors: float32 [2 R, D], the forward factors of all relations, then their
      backward factors.
    relations: int32 [B, k], relation indices. A negative index means that there
      is no relation.
    head_query: bool [B], whether the query is for the head.

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
