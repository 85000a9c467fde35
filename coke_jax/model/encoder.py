"""The CoKE encoder and its entity prediction head (paper, section 3.2-3.3).

Dimensions in shapes:
  B  sequences in the batch        D  hidden size
  K  tokens in a sequence          L  blocks
  V  entities

As in the authors' implementation, GELU is exact and attention dropout is drawn
for every weight. `layers` lists further differences from Flax's defaults.

Parameters, attention scores, layer norms and softmaxes are float32. `dtype` is
the type of the operands of products with weights and embeddings; these products
accumulate in float32.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from coke_jax.model import block as block_lib
from coke_jax.model import layers


class CoKE(nn.Module):
  """Scores every entity for the masked position of a sequence.

  Attributes:
    num_entities: V, the first rows of the element embedding.
    num_tokens: rows of the element embedding: entities, relations, MASK, PAD.
    pad_id: the token id that attention ignores.
    max_length: the largest K, which is the number of position embeddings.
    num_layers: L.
    hidden_size: D.
    num_heads: A, a divisor of D.
    feed_forward_size: F.
    dropout: the rate, the same in all layers.
    dtype: operands of products with weights, float32 or bfloat16.
    remat: whether the backward pass recomputes each block instead of storing
      its activations.
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
        f'hidden size {width}: expected a multiple of the {self.num_heads} '
        'heads'
      )
    self.element_embedding = self.param(
      'element_embedding', layers.INITIALIZER, (self.num_tokens, width)
    )
    self.position_embedding = self.param(
      'position_embedding', layers.INITIALIZER, (self.max_length, width)
    )
    self.embedding_norm = layers.layer_norm(None)
    self.embedding_dropout = layers.Dropout(self.dropout)
    block: Any = block_lib.Block
    if self.remat:
      block = nn.remat(block, static_argnums=(4,))
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
    """Computes the logits of all entities for the masked position.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      train: whether dropout is on. It needs the random key `dropout`.

    Returns:
      float32 [B, V].

    Raises:
      ValueError: K exceeds `max_length`.
    """
    hidden = self.masked_state(tokens, mask_position, train=train)
    return self.entity_logits(self.transform(hidden))

  def entity_logits(
    self, transformed: jax.Array, start: Any = 0, count: int | None = None
  ) -> jax.Array:
    """Computes the logits of consecutive entities.

    Args:
      transformed: float32 [B, D], see `transform`.
      start: the first entity, an int or an int32 scalar. Default: 0.
      count: the number of entities. Default: all, V.

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

  def query_embedding(
    self, tokens: jax.Array, mask_position: jax.Array
  ) -> jax.Array:
    """Computes what `entity_logits` multiplies with the entity embeddings.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.

    Returns:
      float32 [B, D].
    """
    return self.transform(self.masked_state(tokens, mask_position))

  def encode(
    self,
    tokens: jax.Array,
    *,
    layer: int | None = None,
    train: bool = False,
  ) -> jax.Array:
    """Computes contextual embeddings, the hidden states of all positions.

    Args:
      tokens: int32 [B, K], PAD on the right.
      layer: the number of blocks to apply; 0 gives the input of the first
        block. Default: all.
      train: whether dropout is on. It needs the random key `dropout`.

    Returns:
      float32 [B, K, D].

    Raises:
      ValueError: K exceeds `max_length`.
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
    """Computes the final hidden state at the masked position.

    The last block computes no other position.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      train: whether dropout is on. It needs the random key `dropout`.

    Returns:
      float32 [B, D].
    """
    x, visible = self._embed(tokens, train)
    for block in self.blocks[:-1]:
      x = block(x, visible, None, train)
    return self.blocks[-1](x, visible, mask_position, train)[:, 0]

  def transform(self, hidden: jax.Array) -> jax.Array:
    """Applies the prediction head's dense layer, GELU and layer norm.

    Args:
      hidden: float32 [B, D], final hidden states of masked positions.

    Returns:
      float32 [B, D].
    """
    hidden = nn.gelu(self.prediction_dense(hidden), approximate=False)
    return self.prediction_norm(hidden)

  def _embed(
    self, tokens: jax.Array, train: bool
  ) -> tuple[jax.Array, jax.Array]:  # [B, K, D], bool [B, K]
    length = tokens.shape[1]
    if length > self.max_length:
      raise ValueError(
        f'sequences of {length} tokens: expected at most {self.max_length}, '
        'the max_length of the model'
      )
    x = jnp.take(self.element_embedding, tokens, axis=0)
    x = self.embedding_norm(x + self.position_embedding[None, :length])
    x = self.embedding_dropout(x, train=train)
    return x, tokens != self.pad_id


def count_parameters(params: Any) -> int:
  """Counts the numbers in a tree of parameters, or of their shapes."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))


def init_params(model: CoKE, seed: int) -> Any:
  """Draws the initial parameters.

  Args:
    model: the encoder.
    seed: determines the parameters completely.

  Returns:
    The parameters, a nested dict of float32 arrays.
  """
  tokens = jnp.zeros((1, model.max_length), dtype=jnp.int32)
  key = _named_key(seed, 'parameters')
  return jax.jit(model.init)(key, tokens, jnp.zeros(1, jnp.int32))['params']


def param_shapes(model: CoKE) -> Any:
  """Returns the shapes and dtypes of the parameters, without computing them."""
  return jax.eval_shape(lambda: init_params(model, seed=0))


def dropout_key(seed: int) -> jax.Array:
  """Returns the key from which the dropout keys of all steps are derived."""
  return _named_key(seed, 'dropout')


def _named_key(seed: int, name: str) -> jax.Array:
  number = ('parameters', 'dropout').index(name)
  return jax.random.fold_in(jax.random.key(seed), number)
