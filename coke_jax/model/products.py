"""Products of the encoder that are fast on every device.

Operands are float32 or bfloat16. Products of bfloat16 accumulate in float32.
The gradients are written by hand, because XLA runs them faster than the
gradients of automatic differentiation.

Shapes use the letters of `block`.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import layout


def matmul(x: jax.Array, kernel: jax.Array, dtype: Any) -> jax.Array:
  """Multiplies x with a kernel after converting both to `dtype`.

  The products in the gradient also have operands of type `dtype` and accumulate
  in float32. Automatic differentiation would compute the kernel's gradient with
  a transposed product, which is a third slower on a CPU.

  Args:
    x: float32 [..., D].
    kernel: float32 [D, E].
    dtype: float32 or bfloat16.

  Returns:
    float32 [..., E].
  """
  rows = x.reshape(-1, x.shape[-1])
  return _matmul(rows, kernel, dtype).reshape(*x.shape[:-1], kernel.shape[-1])


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def _matmul(x: jax.Array, kernel: jax.Array, dtype: Any) -> jax.Array:
  return _contract(x.astype(dtype), kernel.astype(dtype), 1, 0)


def _matmul_forward(
  x: jax.Array, kernel: jax.Array, dtype: Any
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  x, kernel = x.astype(dtype), kernel.astype(dtype)
  return _contract(x, kernel, 1, 0), (x, kernel)


def _matmul_backward(
  dtype: Any, saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  x, kernel = saved  # [N, D] and [D, E]; gradient [N, E]
  gradient = gradient.astype(dtype)
  return _contract(gradient, kernel, 1, 1), _contract_rows(x, gradient)


_matmul.defvjp(_matmul_forward, _matmul_backward)


@functools.partial(jax.custom_vjp, nondiff_argnums=(2,))
def inner_products(x: jax.Array, rows: jax.Array, dtype: Any) -> jax.Array:
  """Computes the inner product of each x with each row of a table.

  Operands have the type `dtype`, as in `matmul`.

  Args:
    x: float32 [N, D].
    rows: float32 [V, D].
    dtype: float32 or bfloat16.

  Returns:
    float32 [N, V].
  """
  return _contract(x.astype(dtype), rows.astype(dtype), 1, 1)


def _inner_products_forward(
  x: jax.Array, rows: jax.Array, dtype: Any
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  x, rows = x.astype(dtype), rows.astype(dtype)
  return _contract(x, rows, 1, 1), (x, rows)


def _inner_products_backward(
  dtype: Any, saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  x, rows = saved  # [N, D] and [V, D]; gradient [N, V]
  gradient = gradient.astype(dtype)
  return _contract(gradient, rows, 1, 0), _contract_rows(x, gradient).T


inner_products.defvjp(_inner_products_forward, _inner_products_backward)


# The batch and head axes of attention weights and of values.
_BATCH_AND_HEAD = ((0, 3), (0, 2))


@jax.custom_vjp
def mix(weights: jax.Array, value: jax.Array) -> jax.Array:
  """Computes the attention-weighted sums of values.

  The gradient with respect to `value` is computed as a product whose last axis
  is H. In the product that automatic differentiation uses, the last axis is K,
  which is only 3 for triples. That product takes XLA on a CPU ten times as
  long.

  Args:
    weights: float32 [B, Q, K, A].
    value: float32 [B, K, A, H].

  Returns:
    float32 [B, Q, A, H].
  """
  mixed = jax.lax.dot_general(weights, value, (((2,), (1,)), _BATCH_AND_HEAD))
  return mixed.transpose(0, 2, 1, 3)


def _mix_forward(
  weights: jax.Array, value: jax.Array
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
  return mix(weights, value), (weights, value)


def _mix_backward(
  saved: tuple[jax.Array, jax.Array], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  weights, value = saved  # gradient [B, Q, A, H]
  of_value = jax.lax.dot_general(
    weights, gradient, (((1,), (1,)), _BATCH_AND_HEAD)
  )  # [B, A, K, H]
  of_weights = jnp.einsum('bqah,bkah->bqka', gradient, value)
  return of_weights, of_value.transpose(0, 2, 1, 3)


mix.defvjp(_mix_forward, _mix_backward)


@jax.custom_vjp
def add_bias(x: jax.Array, bias: jax.Array) -> jax.Array:
  """Adds a bias to every row, with a gradient that is fast for large V.

  The gradient of the bias is a sum over rows. It is computed as a product with
  ones, because the sum takes XLA on a CPU about a hundred times as long.

  Args:
    x: float32 [B, V].
    bias: float32 [V].

  Returns:
    float32 [B, V].
  """
  return x + bias[None]


def _add_bias_forward(
  x: jax.Array, bias: jax.Array
) -> tuple[jax.Array, tuple[()]]:
  return add_bias(x, bias), ()


def _add_bias_backward(
  _: tuple[()], gradient: jax.Array
) -> tuple[jax.Array, jax.Array]:
  ones = jnp.ones(gradient.shape[0], gradient.dtype)
  precise = jax.lax.Precision.HIGHEST
  return gradient, jnp.dot(ones, gradient, precision=precise)


add_bias.defvjp(_add_bias_forward, _add_bias_backward)


def logits(
  query: jax.Array, entities: jax.Array, bias: jax.Array, dtype: Any
) -> jax.Array:
  """Computes the logits of entities.

  Args:
    query: float32 [B, D], see `encoder.CoKE.query_embedding`.
    entities: float32 [C, D], embeddings.
    bias: float32 [C].
    dtype: type of the operands of the product, float32 or bfloat16.

  Returns:
    float32 [B, C].
  """
  return add_bias(inner_products(query, entities, dtype), bias)


@functools.partial(jax.jit, inline=True)
def _contract_rows(x: jax.Array, y: jax.Array) -> jax.Array:
  """Multiplies the transpose of x [N, D] with y [N, E]. Returns [D, E]."""
  if x.dtype != jnp.bfloat16:
    return _contract(x, y, 0, 0)
  return jax.lax.platform_dependent(
    x,
    y,
    cpu=lambda x, y: _row_major(_dot(_row_major(x.T), _row_major(y), 1, 0)),
    default=lambda x, y: _dot(x, y, 0, 0),
  )


@functools.partial(jax.jit, static_argnums=(2, 3), inline=True)
def _contract(
  a: jax.Array, b: jax.Array, a_axis: int, b_axis: int
) -> jax.Array:
  """Multiplies two matrices, summing over one axis of each. Returns float32."""
  if a.dtype != jnp.bfloat16:
    return _dot(a, b, a_axis, b_axis)

  def by_rows(a: jax.Array, b: jax.Array) -> jax.Array:
    return _row_major(_dot(_row_major(a), _row_major(b), a_axis, b_axis))

  def by_default(a: jax.Array, b: jax.Array) -> jax.Array:
    return _dot(a, b, a_axis, b_axis)

  return jax.lax.platform_dependent(a, b, cpu=by_rows, default=by_default)


def _row_major(x: jax.Array) -> jax.Array:
  """Makes XLA store a matrix row by row.

  XLA on a CPU folds transposes of bfloat16 operands into a product, and then
  computes the product in float32, which takes up to three times as long. The
  constraint works only inside `jax.jit`.
  """
  return layout.with_layout_constraint(x, layout.Layout((0, 1)))


def _dot(a: jax.Array, b: jax.Array, a_axis: int, b_axis: int) -> jax.Array:
  return jax.lax.dot_general(
    a,
    b,
    (((a_axis,), (b_axis,)), ((), ())),
    preferred_element_type=jnp.float32,
  )


def take_distinct(table: jax.Array, rows: jax.Array) -> jax.Array:
  """Selects distinct rows. The gradient is faster than for repeated rows."""
  at_rows = jnp.asarray(table).at[rows]
  return at_rows.get(unique_indices=True, mode='promise_in_bounds')
