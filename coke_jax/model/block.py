"""The post-norm Transformer block of the encoder.

Letters in shapes: B sequences, K tokens, Q query positions,
D hidden size, A attention heads, H = D / A, F feed-forward size.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from coke_jax.model import layers, products

_MASKED_SCORE = -1e9  # an attention score whose softmax is exactly 0


class Attention(nn.Module):
  """Multi-head self-attention with dropout on the attention weights."""

  num_heads: int
  dropout: float
  dtype: Any
  kernel_stddev: float = 0.02

  @nn.compact
  def __call__(
    self,
    x: jax.Array,
    query_states: jax.Array | None,
    visible: jax.Array,
    *,
    train: bool,
  ) -> jax.Array:
    """Computes the attention's output at the query positions.

    Args:
      x: float32 [B, K, D], the states of all positions, for keys and values.
      query_states: float32 [B, Q, D], the states of the query positions. If
        None, all positions are query positions, and Q = K.
      visible: bool [B, K], False at PAD.
      train: whether to apply dropout.

    Returns:
      float32 [B, Q, D].
    """
    width = x.shape[-1]
    product = functools.partial(
      layers.Product, dtype=self.dtype, stddev=self.kernel_stddev
    )
    project = product(3 * width, name='query_key_value')
    if query_states is None:
      query, key, value = jnp.split(project(x), 3, axis=-1)
    else:
      key, value = jnp.split(project(x, (width, 3 * width)), 2, axis=-1)
      query = project(query_states, (0, width))

    def heads(t: jax.Array) -> jax.Array:  # [B, K, D] -> [B, K, A, H]
      return t.reshape(*t.shape[:2], self.num_heads, -1)

    query, key, value = heads(query), heads(key), heads(value)
    scores = jnp.einsum('bqah,bkah->bqka', query, key)
    scores = scores * (query.shape[-1] ** -0.5)
    scores = jnp.where(visible[:, None, :, None], scores, _MASKED_SCORE)
    weights = nn.softmax(scores, axis=2)
    weights = layers.Dropout(self.dropout)(weights, train=train)
    mixed = products.mix(weights, value)
    mixed = mixed.reshape(*mixed.shape[:2], width)
    return product(width, name='output')(mixed)


class Block(nn.Module):
  """A post-norm Transformer block."""

  num_heads: int
  feed_forward_size: int
  dropout: float
  dtype: Any
  kernel_stddev: float = 0.02

  @nn.compact
  def __call__(
    self,
    x: jax.Array,
    visible: jax.Array,
    query_positions: jax.Array | None,
    train: bool,
  ) -> jax.Array:
    """Computes the next hidden states at the query positions.

    Args:
      x: float32 [B, K, D].
      visible: bool [B, K], False at PAD.
      query_positions: int32 [B], the only position to compute in each row. Then
        Q = 1. If None, all positions are computed, and Q = K.
      train: whether to apply dropout. The argument is positional, because
        `nn.remat` takes static arguments by position.

    Returns:
      float32 [B, Q, D].
    """
    dropout = functools.partial(layers.Dropout(self.dropout), train=train)
    query_states = None
    if query_positions is not None:
      query_states = take_position(x, query_positions)[:, None]
    residual = x if query_states is None else query_states
    attention = Attention(
      self.num_heads,
      self.dropout,
      self.dtype,
      self.kernel_stddev,
      name='attention',
    )
    mixed = attention(x, query_states, visible, train=train)
    x = layers.layer_norm('attention_norm')(residual + dropout(mixed))
    width = x.shape[-1]
    product = functools.partial(
      layers.Product, dtype=self.dtype, stddev=self.kernel_stddev
    )
    hidden = product(self.feed_forward_size, name='hidden')(x)
    hidden = nn.gelu(hidden, approximate=False)
    hidden = product(width, name='output')(hidden)
    return layers.layer_norm('feed_forward_norm')(x + dropout(hidden))


def take_position(x: jax.Array, position: jax.Array) -> jax.Array:
  """Selects one position [B] of each row of x [B, K, D]. Returns [B, D]."""
  return jnp.take_along_axis(x, position[:, None, None], axis=1)[:, 0]
