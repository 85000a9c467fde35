"""The CoKE encoder and its entity prediction head (paper, section 3.2-3.3).

Dimensions, one letter each:
  B  sequences in the batch        D  hidden size
  K  tokens in a sequence          A  attention heads, H = D / A
  Q  positions a block computes    F  feed-forward size
  L  blocks                        V  entities

As in the authors' implementation, GELU is the exact one and attention dropout
is drawn for every weight; `layers.py` has the rest.

Parameters, attention scores, layer norms and softmaxes are float32. `dtype` is
the type of the operands of products with weights and embeddings; they
accumulate in float32.
"""

import functools
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from coke_jax.model import layers

_MASKED_SCORE = -1e9  # an attention score that softmax turns into exactly 0


class Attention(nn.Module):
  """Multi-head self-attention with dropout on the attention weights."""

  num_heads: int
  dropout: float
  dtype: Any

  @nn.compact
  def __call__(
    self,
    x: jax.Array,  # [B, K, D] all positions: keys and values
    asking: jax.Array | None,  # [B, 1, D] the positions to compute, None: all
    visible: jax.Array,  # bool [B, K], False at PAD
    *,
    train: bool,
  ) -> jax.Array:
    """The attention's output at the positions asked for, [B, Q, D]."""
    width = x.shape[-1]
    project = layers.Product(3 * width, self.dtype, name='query_key_value')
    if asking is None:
      query, key, value = jnp.split(project(x), 3, axis=-1)
    else:
      key, value = jnp.split(project(x, (width, 3 * width)), 2, axis=-1)
      query = project(asking, (0, width))

    def heads(t: jax.Array) -> jax.Array:  # [B, K, D] -> [B, K, A, H]
      return t.reshape(*t.shape[:2], self.num_heads, -1)

    query, key, value = heads(query), heads(key), heads(value)
    scores = jnp.einsum('bqah,bkah->bqka', query, key)
    scores = scores * (query.shape[-1] ** -0.5)
    scores = jnp.where(visible[:, None, :, None], scores, _MASKED_SCORE)
    weights = nn.softmax(scores, axis=2)
    weights = layers.Dropout(self.dropout)(weights, train=train)
    mixed = layers.mix(weights, value)
    mixed = mixed.reshape(*mixed.shape[:2], width)
    return layers.Product(width, self.dtype, name='output')(mixed)


class Block(nn.Module):
  """A post-norm Transformer block."""

  num_heads: int
  feed_forward_size: int
  dropout: float
  dtype: Any

  @nn.compact
  def __call__(
    self,
    x: jax.Array,  # [B, K, D]
    visible: jax.Array,  # bool [B, K]
    position: jax.Array | None,  # int32 [B]: compute it alone; None: all
    train: bool,  # positional, so that remat can hold it static
  ) -> jax.Array:
    """The next hidden states [B, Q, D], Q = K or 1."""
    dropout = functools.partial(layers.Dropout(self.dropout), train=train)
    asking = None if position is None else take_position(x, position)[:, None]
    residual = x if asking is None else asking
    attention = Attention(
      self.num_heads, self.dropout, self.dtype, name='attention'
    )
    mixed = attention(x, asking, visible, train=train)
    x = layers.layer_norm('attention_norm')(residual + dropout(mixed))
    width = x.shape[-1]
    hidden = layers.Product(self.feed_forward_size, self.dtype, name='hidden')(
      x
    )
    hidden = nn.gelu(hidden, approximate=False)
    hidden = layers.Product(width, self.dtype, name='output')(hidden)
    return layers.layer_norm('feed_forward_norm')(x + dropout(hidden))


class CoKE(nn.Module):
  """Scores every entity for the masked place of a sequence.

  Attributes:
    num_entities: V, the first rows of the element embedding.
    num_tokens: rows of the element embedding, entities first.
    pad_id: the token id that attention does not see.
    max_length: K at most, the number of position embeddings.
    num_layers: L.
    hidden_size: D.
    num_heads: A, divides D.
    feed_forward_size: F.
    dropout: the rate, the same in all places.
    dtype: operands of products with weights, float32 or bfloat16.
    remat: recompute each block in the backward pass instead of storing it.
  """

  num_entities: int
  num_tokens: int
  pad_id: int
  max_length: int
  num_layers: int
  hidden_size: int
  num_heads: int
  feed_forward_size: int
  dropout: float
  dtype: Any = jnp.float32
  remat: bool = False

  def setup(self) -> None:  # noqa: D102
    width = self.hidden_size
    if width % self.num_heads:
      raise ValueError(
        f'hidden size {width} does not divide by {self.num_heads} heads'
      )
    self.element_embedding = self.param(
      'element_embedding', layers.INITIALIZER, (self.num_tokens, width)
    )
    self.position_embedding = self.param(
      'position_embedding', layers.INITIALIZER, (self.max_length, width)
    )
    self.embedding_norm = layers.layer_norm(None)
    self.embedding_dropout = layers.Dropout(self.dropout)
    block = nn.remat(Block, static_argnums=(4,)) if self.remat else Block
    self.blocks = [
      block(self.num_heads, self.feed_forward_size, self.dropout, self.dtype)
      for _ in range(self.num_layers)
    ]
    self.prediction_dense = layers.Product(width, self.dtype)
    self.prediction_norm = layers.layer_norm(None)
    self.entity_bias = self.param(
      'entity_bias', nn.initializers.zeros, (self.num_entities,)
    )

  def __call__(
    self,
    tokens: jax.Array,
    mask_position: jax.Array,
    *,
    train: bool = False,
  ) -> jax.Array:
    """Logits of all entities for the masked position.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      train: whether dropout is on; it then needs the `dropout` random key.

    Returns:
      float32 [B, V].
    """
    hidden = self.masked_state(tokens, mask_position, train=train)
    return self.entity_logits(self.transform(hidden))

  def entity_logits(
    self, transformed: jax.Array, start: Any = 0, count: int | None = None
  ) -> jax.Array:
    """Logits of some entities in a row, all by default.

    Args:
      transformed: float32 [B, D], see `transform`.
      start: the first of them; may be computed on the device.
      count: how many.

    Returns:
      float32 [B, count].
    """
    count = self.num_entities if count is None else count
    entities = jax.lax.dynamic_slice_in_dim(
      self.element_embedding, start, count
    )
    bias = jax.lax.dynamic_slice_in_dim(self.entity_bias, start, count)
    logits = layers.matmul(transformed, entities.T, self.dtype)
    return layers.add_bias(logits, bias)

  def question_state(
    self, tokens: jax.Array, mask_position: jax.Array
  ) -> jax.Array:
    """What all entities are compared with, for `entity_logits`: [B, D]."""
    return self.transform(self.masked_state(tokens, mask_position))

  def encode(
    self,
    tokens: jax.Array,
    *,
    layer: int | None = None,
    train: bool = False,
  ) -> jax.Array:
    """Contextual embeddings: hidden states of all positions.

    Args:
      tokens: int32 [B, K], PAD on the right.
      layer: after how many blocks; 0 is the input, None the end.
      train: whether dropout is on.

    Returns:
      float32 [B, K, D].
    """
    x, visible = self._embed(tokens, train)
    for block in self.blocks[:layer]:
      x = block(x, visible, None, train)
    return x

  def masked_state(
    self,
    tokens: jax.Array,
    mask_position: jax.Array,
    *,
    train: bool = False,
  ) -> jax.Array:
    """The final hidden state at the MASK, float32 [B, D].

    The last block computes this position alone.
    """
    x, visible = self._embed(tokens, train)
    for block in self.blocks[:-1]:
      x = block(x, visible, None, train)
    return self.blocks[-1](x, visible, mask_position, train)[:, 0]

  def transform(self, hidden: jax.Array) -> jax.Array:
    """What is multiplied with the entity embeddings: [B, D] -> [B, D]."""
    hidden = nn.gelu(self.prediction_dense(hidden), approximate=False)
    return self.prediction_norm(hidden)

  def _embed(
    self, tokens: jax.Array, train: bool
  ) -> tuple[jax.Array, jax.Array]:  # [B, K, D], bool [B, K]
    length = tokens.shape[1]
    if length > self.max_length:
      raise ValueError(
        f'sequences of {length} tokens: the model was built for at most '
        f'{self.max_length}'
      )
    x = jnp.take(self.element_embedding, tokens, axis=0)
    x = self.embedding_norm(x + self.position_embedding[None, :length])
    x = self.embedding_dropout(x, train=train)
    return x, tokens != self.pad_id


def take_position(x: jax.Array, position: jax.Array) -> jax.Array:
  """The states x [B, K, D] at position [B]: [B, D]."""
  return jnp.take_along_axis(x, position[:, None, None], axis=1)[:, 0]


def count_parameters(params: Any) -> int:
  """How many numbers a tree of parameters (or of their shapes) holds."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))


def init_params(model: CoKE, seed: int) -> Any:
  """Initial parameters, from the seed alone."""
  tokens = jnp.zeros((1, model.max_length), dtype=jnp.int32)
  key = _named_key(seed, 'parameters')
  return jax.jit(model.init)(key, tokens, jnp.zeros(1, jnp.int32))['params']


def dropout_key(seed: int) -> jax.Array:
  """The key that, with the step and the device, decides all dropout."""
  return _named_key(seed, 'dropout')


def _named_key(seed: int, name: str) -> jax.Array:
  number = ('parameters', 'dropout').index(name)
  return jax.random.fold_in(jax.random.key(seed), number)
