"""The CoKE encoder and its entity prediction head (paper, sections 3.2-3.3).

Dimensions in shapes:
  B  sequences in the batch        D  hidden size
  K  tokens in a sequence          L  blocks
  V  entities

As in the authors' implementation, GELU is exact, and each attention weight is
dropped separately. `layers` lists more differences from Flax's defaults.

Only matrix products with kernels and with entity embeddings have operands of
type `dtype`. All other computations and the parameters are float32.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from coke_jax.model import block as block_lib
from coke_jax.model import input_embedding, layers, products


class CoKE(nn.Module):
  """Scores every entity for the masked position of a sequence.

  Attributes:
    num_entities: V. The first V rows of the element embedding are entities.
    num_tokens: number of all tokens: entities, relations, MASK and PAD.
    pad_id: id of the token PAD, which attention ignores.
    max_length: maximum K, which is the number of position embeddings.
    num_layers: L. If L = 0, the final state at the MASK is the input at the
      MASK. With a composition, this input is the composition alone (ComplEx).
    hidden_size: D.
    num_heads: number of attention heads, a divisor of D.
    feed_forward_size: size of the hidden feed-forward layer.
    dropout: dropout rate in all blocks.
    dtype: type of the operands of products, float32 or bfloat16.
    remat: whether to recompute each block in the backward pass.
    composition: how the entity and the relations of a query are multiplied,
      `complex` or `rotation`, see the module `composition`. The product is
      added to the input at the MASK. If empty, nothing is added (paper).
    relation_directions: whether relations have a second embedding, used in
      queries for the head.
    inverse: the index of each relation's inverse. If not empty, queries for
      the head are inverted, see `input_embedding.invert_head_queries`.
    prediction_head: whether a dense layer, GELU and layer norm precede the
      product with the entity embeddings.
    input_norm: whether there is a layer norm before the first block.
    input_dropout: dropout rate on the first block's input. Default: `dropout`.
    output_dropout: dropout rate on the result of `query_embedding`.
    embedding_stddev: initial standard deviation of embeddings.
    composition_stddev: initial standard deviation of relation factors.
    kernel_stddev: initial standard deviation of kernels, see `layers.Product`.
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
  composition: str = ''
  relation_directions: bool = False
  inverse: tuple[int, ...] = ()
  prediction_head: bool = True
  input_norm: bool = True
  input_dropout: float | None = None
  output_dropout: float = 0.0
  embedding_stddev: float = 0.02
  composition_stddev: float = 1.0
  kernel_stddev: float = 0.02

  def setup(self) -> None:  # noqa: D102
    width = self.hidden_size
    if width % self.num_heads:
      raise ValueError(
        f'hidden_size is {width}: expected a multiple of num_heads '
        f'({self.num_heads})'
      )
    initial = layers.initializer(self.embedding_stddev)
    num_relations = self.num_tokens - self.num_entities - 2
    self.element_embedding = self.param(
      'element_embedding', initial, (self.num_tokens, width)
    )
    self.position_embedding = self.param(
      'position_embedding', initial, (self.max_length, width)
    )
    if self.composition:
      self.composition_embedding = self.param(
        'composition_embedding',
        layers.initializer(self.composition_stddev),
        (2 * num_relations, width),
      )
    if self.relation_directions:
      self.backward_relation_embedding = self.param(
        'backward_relation_embedding', initial, (num_relations, width)
      )
    if self.input_norm:
      self.embedding_norm = layers.layer_norm(None)
    self.embedding_dropout = layers.Dropout(
      self.dropout if self.input_dropout is None else self.input_dropout
    )
    self.query_dropout = layers.Dropout(self.output_dropout)
    block: Any = block_lib.Block
    if self.remat:
      block = nn.remat(block, static_argnums=(4,))
    self.blocks = [
      block(
        self.num_heads,
        self.feed_forward_size,
        self.dropout,
        self.dtype,
        self.kernel_stddev,
      )
      for _ in range(self.num_layers)
    ]
    if self.prediction_head:
      self.prediction_dense = layers.Product(
        width, self.dtype, self.kernel_stddev
      )
      self.prediction_norm = layers.layer_norm(None)
    self.entity_bias = self.param(
      'entity_bias', nn.initializers.zeros, (self.num_entities,)
    )

  def __call__(
    self,
    tokens: jax.Array,
    mask_position: jax.Array,
    *,
    candidates: jax.Array | None = None,
    train: bool = False,
  ) -> jax.Array:
    """Computes the logits of entities for the masked position.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      candidates: int32 [C], distinct ids of the entities to score. Default: all
        entities.
      train: whether to apply dropout, which needs the random key `dropout`.

    Returns:
      float32 [B, C], or [B, V] without `candidates`.

    Raises:
      ValueError: K exceeds `max_length`.
    """
    transformed = self.query_embedding(tokens, mask_position, train=train)
    if candidates is None:
      return self.entity_logits(transformed)
    return products.logits(
      transformed,
      products.take_distinct(self.element_embedding, candidates),
      products.take_distinct(self.entity_bias, candidates),
      self.dtype,
    )

  def entity_logits(
    self, transformed: jax.Array, start: Any = 0, count: int | None = None
  ) -> jax.Array:
    """Computes the logits of consecutive entities.

    Args:
      transformed: float32 [B, D], see `query_embedding`.
      start: id of the first entity, an int or an int32 scalar. Default: 0.
      count: number of entities. Default: V.

    Returns:
      float32 [B, count].
    """
    count = self.num_entities if count is None else count
    entities = jax.lax.dynamic_slice_in_dim(
      self.element_embedding, start, count
    )
    bias = jax.lax.dynamic_slice_in_dim(self.entity_bias, start, count)
    return products.logits(transformed, entities, bias, self.dtype)

  def static_embeddings(self) -> jax.Array:
    """Returns the embeddings of all tokens, float32 [tokens, D]."""
    return self.element_embedding

  def query_embedding(
    self, tokens: jax.Array, mask_position: jax.Array, *, train: bool = False
  ) -> jax.Array:
    """Computes the vector that is multiplied with every entity embedding.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      train: whether to apply dropout, which needs the random key `dropout`.

    Returns:
      float32 [B, D].
    """
    hidden = self.masked_state(tokens, mask_position, train=train)
    return self.query_dropout(self.transform(hidden), train=train)

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
      layer: the number of blocks to apply. 0 returns the input of the first
        block. Default: all blocks.
      train: whether to apply dropout, which needs the random key `dropout`.

    Returns:
      float32 [B, K, D].

    Raises:
      ValueError: K exceeds `max_length`.
    """
    x, visible, position = self._embed(tokens, train)
    for block in self.blocks[:layer]:
      x = block(x, visible, None, train)
    if position is not None:
      x = jnp.take_along_axis(x, position[..., None], axis=1)
    return x

  def masked_state(
    self,
    tokens: jax.Array,
    mask_position: jax.Array,
    *,
    train: bool = False,
  ) -> jax.Array:
    """Computes the final hidden state at the masked position.

    The last block computes only this position.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
      train: whether to apply dropout, which needs the random key `dropout`.

    Returns:
      float32 [B, D].
    """
    x, visible, position = self._embed(tokens, train)
    if position is not None:
      mask_position = position[jnp.arange(len(position)), mask_position]
    if not self.blocks:
      return block_lib.take_position(x, mask_position)
    for block in self.blocks[:-1]:
      x = block(x, visible, None, train)
    return self.blocks[-1](x, visible, mask_position, train)[:, 0]

  def transform(self, hidden: jax.Array) -> jax.Array:
    """Applies the prediction head (dense, GELU, layer norm), if there is one.

    Args:
      hidden: float32 [B, D], final hidden states of masked positions.

    Returns:
      float32 [B, D].
    """
    if not self.prediction_head:
      return hidden
    hidden = nn.gelu(self.prediction_dense(hidden), approximate=False)
    return self.prediction_norm(hidden)

  def _embed(
    self, tokens: jax.Array, train: bool
  ) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    # The last result is the new position of each token, or None if the tokens
    # keep their positions.
    visible, position = tokens != self.pad_id, None
    if self.inverse:
      tokens, position = input_embedding.invert_head_queries(
        tokens, visible, self.inverse, self.num_entities
      )
    x = input_embedding.embed_tokens(
      tokens,
      visible,
      self.num_entities,
      self.element_embedding,
      self.position_embedding,
      self.backward_relation_embedding if self.relation_directions else None,
      self.composition_embedding if self.composition else None,
      rotation=self.composition == 'rotation',
      only_composition=self.num_layers == 0,
    )
    if self.input_norm:
      x = self.embedding_norm(x)
    x = self.embedding_dropout(x, train=train)
    return x, visible, position
