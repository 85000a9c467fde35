"""Several encoders whose scores are averaged.

The members have the same architecture and different parameters. Every leaf of
their parameters has a leading axis M, the number of members. The mean logits of
a query and the mean log-probabilities differ by the same number for all
entities. So both means rank the entities in the same order.

Other letters in shapes are those of `encoder`.
"""

from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from coke_jax.model import encoder


class Ensemble(nn.Module):
  """Scores entities with the mean of the logits of several encoders.

  It has the methods of `encoder.CoKE` that ranking and prediction use. Hidden
  states and embeddings of the members are concatenated, so their width is M D.

  Attributes:
    member: the architecture of every member.
    num_members: M.
  """

  member: encoder.CoKE
  num_members: int

  @property
  def num_entities(self) -> int:
    """Number of entities, V."""
    return self.member.num_entities

  @property
  def max_length(self) -> int:
    """Maximum number of tokens in a sequence."""
    return self.member.max_length

  @property
  def num_layers(self) -> int:
    """Number of blocks in each member, L."""
    return self.member.num_layers

  @property
  def hidden_size(self) -> int:
    """Size of concatenated hidden states, M D."""
    return self.num_members * self.member.hidden_size

  def __call__(self, tokens: jax.Array, mask_position: jax.Array) -> jax.Array:
    """Computes the mean logits of all entities, float32 [B, V].

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.
    """
    return self.entity_logits(self.query_embedding(tokens, mask_position))

  def entity_logits(
    self, transformed: jax.Array, start: Any = 0, count: int | None = None
  ) -> jax.Array:
    """Computes the mean logits of consecutive entities.

    Args:
      transformed: float32 [B, M D], see `query_embedding`.
      start: id of the first entity, an int or an int32 scalar. Default: 0.
      count: number of entities. Default: V.

    Returns:
      float32 [B, count].
    """
    count = self.num_entities if count is None else count
    pieces = jnp.split(transformed, self.num_members, axis=1)

    def add(
      member: encoder.CoKE, total: jax.Array, piece: jax.Array
    ) -> tuple[jax.Array, None]:
      return total + member.entity_logits(piece, start, count), None

    zeros = jnp.zeros((transformed.shape[0], count), transformed.dtype)
    total, _ = self._scan(add)(self.member, zeros, jnp.stack(pieces))
    return total / self.num_members

  def query_embedding(
    self, tokens: jax.Array, mask_position: jax.Array
  ) -> jax.Array:
    """Computes the vectors that are multiplied with entity embeddings.

    Args:
      tokens: int32 [B, K], PAD on the right.
      mask_position: int32 [B], the column of the MASK.

    Returns:
      float32 [B, M D].
    """
    return self._concatenate('query_embedding', tokens, mask_position)

  def encode(self, tokens: jax.Array, *, layer: int | None = None) -> jax.Array:
    """Computes contextual embeddings, the hidden states of all positions.

    Args:
      tokens: int32 [B, K], PAD on the right.
      layer: the number of blocks to apply. Default: all blocks.

    Returns:
      float32 [B, K, M D].
    """
    return self._concatenate('encode', tokens, layer=layer)

  def static_embeddings(self) -> jax.Array:
    """Returns the embeddings of all tokens, float32 [tokens, M D]."""
    return self._concatenate('static_embeddings')

  def _concatenate(self, method: str, *args: Any, **options: Any) -> jax.Array:
    """Concatenates the results of a method of every member on the last axis."""

    def call(member: encoder.CoKE, carry: None, _: None) -> tuple[None, Any]:
      return carry, getattr(member, method)(*args, **options)

    _, stacked = self._scan(call)(self.member, None, None)
    # [M, ..., D] -> [..., M D]
    return jnp.concatenate(list(stacked), axis=-1)

  def _scan(self, function: Any) -> Any:
    return nn.scan(
      function,
      variable_axes={'params': 0},
      split_rngs={'params': True},
      length=self.num_members,
    )


# The models that can be used for ranking and prediction.
Encoder = encoder.CoKE | Ensemble
