"""Composes the known entity of a query with the relations of the query.

A vector of D numbers represents D / 2 complex numbers. Its first half contains
the real parts, and its second half contains the imaginary parts. The
composition of a query (s, r1, .., rk, ?) is the elementwise complex product
s r1 .. rk. For a triple, this is the product in ComplEx (Trouillon et al.
2016). For a path, products are chained as in the compositional training of Guu,
Miller and Liang (2015).

With rotations, the factors of the relations are first divided by their moduli,
as in RotatE (Sun et al. 2019).

Every relation has two factors. The forward factor is used in queries for the
tail. The backward factor is used in queries for the head: the composition of
such a query is the product of the tail and the backward factors.
"""

import jax
import jax.numpy as jnp

# Makes the gradient of a modulus finite at 0.
_MIN_SQUARED_MODULUS = 1e-6


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


def squared_moduli(x: jax.Array) -> jax.Array:
  """Computes the squared moduli of complex numbers.

  Args:
    x: float32 [..., D], D even.

  Returns:
    float32 [..., D / 2].
  """
  real, imaginary = jnp.split(x, 2, axis=-1)
  return real**2 + imaginary**2


def unit_modulus(x: jax.Array) -> jax.Array:
  """Divides complex numbers by their moduli.

  Args:
    x: float32 [..., D], D even.

  Returns:
    float32 [..., D]. The modulus of every complex number is 1, unless the
    number is close to 0.
  """
  scale = jax.lax.rsqrt(squared_moduli(x) + _MIN_SQUARED_MODULUS)
  return x * jnp.concatenate([scale, scale], axis=-1)


def factor_rows(
  relations: jax.Array, head_query: jax.Array, num_relations: int
) -> jax.Array:
  """Returns the row of each relation in the factor table.

  Args:
    relations: int32 [B, k], relation indices. For a negative index, the row is
      valid but has no meaning.
    head_query: bool [B], whether the query is for the head.
    num_relations: R.

  Returns:
    int32 [B, k].
  """
  backward = num_relations * head_query.astype(relations.dtype)
  return jnp.maximum(relations, 0) + backward[:, None]


def compose(
  entity: jax.Array,
  factors: jax.Array,
  relations: jax.Array,
  head_query: jax.Array,
  *,
  rotation: bool = False,
) -> jax.Array:
  """Multiplies each known entity with the relations of its query.

  Args:
    entity: float32 [B, D], the embedding of the known entity.
    factors: float32 [2 R, D], the forward factors of all relations, then their
      backward factors.
    relations: int32 [B, k], relation indices. Negative numbers are padding.
    head_query: bool [B], whether the query is for the head.
    rotation: whether the factors are divided by their moduli.

  Returns:
    float32 [B, D].
  """
  num_relations = factors.shape[0] // 2
  width = entity.shape[-1]
  one = (jnp.arange(width) < width // 2).astype(entity.dtype)  # 1 + 0i
  rows = factor_rows(relations, head_query, num_relations)
  for relation, row in zip(relations.T, rows.T, strict=True):
    factor = jnp.take(factors, row, axis=0)
    if rotation:
      factor = unit_modulus(factor)
    factor = jnp.where((relation >= 0)[:, None], factor, one[None])
    entity = complex_product(entity, factor)
  return entity
