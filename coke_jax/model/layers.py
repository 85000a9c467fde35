"""The layers that the encoder is made of, written for speed on any device.

Differences from Flax's defaults follow the authors' implementation: LayerNorm
epsilon 1e-12, truncated normal initialisation with deviation 0.02.
"""

import functools
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

_LAYER_NORM_EPSILON = 1e-12
INITIALIZER = nn.initializers.truncated_normal(stddev=0.02)


class Product(nn.Module):
  """An affine map whose operands are `dtype` and whose result is float32."""

  features: int
  dtype: Any

  @nn.compact
  def __call__(
    self, x: jax.Array, columns: tuple[int, int] | None = None
  ) -> jax.Array:
    """Maps x [..., D] to [..., features], or to some of these columns only."""
    shape = (x.shape[-1], self.features)
    kernel = self.param('kernel', INITIALIZER, shape)
    bias = self.param('bias', nn.initializers.zeros, shape[1:])
    if columns is not None:
      kernel = kernel[:, slice(*columns)]
      bias = bias[slice(*columns)]
    return matmul(x, kernel, self.dtype) + bias.reshape(
      (1,) * (x.ndim - 1) + (-1,)
    )


class Dropout(nn.Module):
  """Sets values to 0 at random, and scales the others up by what is lost.

  The rate is rounded to a multiple of 2**-32, and the scale belongs to the
  rounded rate.

  Attributes:
    rate: the probability of a 0, at least 0 and below 1.
  """

  rate: float

  @nn.compact
  def __call__(self, x: jax.Array, *, train: bool) -> jax.Array:
    """As x, of any shape; x itself unless `train`."""
    threshold = min(round(self.rate * 2**32), 2**32 - 1)
    if not (train and threshold):
      return x
    kept = hash_bits(self.make_rng('dropout'), x.shape) >= np.uint32(threshold)
    return jnp.where(kept, x * (2**32 / (2**32 - threshold)), 0.0)


def hash_bits(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  """Random bits, uint32 of any shape: a hash of a value's place and the key.

  Good enough for dropout and not meant for more. It is a few operations on
  each value by itself, so that compilers draw the bits where they are used:
  a sixth of the time of `jax.random.bits` on a CPU, and a quarter of the time
  to compile. The hash is two rounds of a mixing function of the kind that
  C. Wellons' search for low bias found ("hash-prospector").
  """
  words = jax.random.key_data(key)
  place = jax.lax.iota(jnp.uint32, math.prod(shape)).reshape(shape)
  return _mix(_mix(place + words[0]) ^ words[-1])


def _mix(x: jax.Array) -> jax.Array:
  """A bijection of the 32-bit words in which all bits depend on each other."""
  x = (x ^ (x >> 16)) * np.uint32(0x21F0AAAD)
  x = (x ^ (x >> 15)) * np.uint32(0xD35A2D97)
  return x ^ (x >> 15)


def layer_norm(name: str | None) -> nn.LayerNorm:
  """Layer norm with the exact variance.

  The fast one, E[x^2] - E[x]^2, loses its digits far from a mean of 0.
  """
  return nn.LayerNorm(
    epsilon=_LAYER_NORM_EPSILON, use_fast_variance=False, name=name
  )


def matmul(x: jax.Array, kernel: jax.Array, dtype: Any) -> jax.Array:
  """X [..., D] times kernel [D, E]: operands `dtype`, result float32.

  The products of the gradient have operands of `dtype`, too, and accumulate in
  float32. They are written out because the transposed form that automatic
  differentiation takes for the kernel's is a third slower on a CPU.
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
  return _contract(gradient, kernel, 1, 1), _contract(x, gradient, 0, 0)


_matmul.defvjp(_matmul_forward, _matmul_backward)


# The axes that are not multiplied over, of weights and of values.
_BATCH_AND_HEAD = ((0, 3), (0, 2))


@jax.custom_vjp
def mix(weights: jax.Array, value: jax.Array) -> jax.Array:
  """Sums of values [B, K, A, H] by attention weights [B, Q, K, A].

  The order of the operands is written out, also in the gradient, so that H is
  what runs fastest in the results that have it: with the 3 positions of a
  triple in its place, which automatic differentiation chooses, XLA on a CPU
  takes ten times as long.

  Returns:
    [B, Q, A, H].
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
  """X [B, V] plus bias [V], for a V of many thousands.

  The gradient of the bias, a sum over rows, is written out as a product with
  ones: XLA on a CPU sums wide columns about a hundred times slower than that.
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


def _contract(
  a: jax.Array, b: jax.Array, a_axis: int, b_axis: int
) -> jax.Array:
  """The product of two matrices over one axis of each, in float32."""
  return jax.lax.dot_general(
    a,
    b,
    (((a_axis,), (b_axis,)), ((), ())),
    preferred_element_type=jnp.float32,
  )
