"""Computes the input of the first block from tokens.

Token ids are in the order entities, relations, MASK, PAD, see
`data.vocabulary`.
"""

import jax
import jax.numpy as jnp

from coke_jax.model import composition


def embed_tokens(
  tokens: jax.Array,
  visible: jax.Array,
  num_entities: int,
  elements: jax.Array,
  positions: jax.Array,
  backward_relations: jax.Array | None = None,
  factors: jax.Array | None = None,
  *,
  rotation: bool = False,
) -> jax.Array:
  """Computes the input of the first block, before its layer norm.

  Args:
    tokens: int32 [B, K], PAD on the right.
    visible: bool [B, K], False at PAD.
    num_entities: V.
    elements: float32 [V + R + 2, D], token embeddings.
    positions: float32 [at least K, D], position embeddings.
    backward_relations: float32 [R, D]. In queries for the head, they replace
      the embeddings of the relations, and positions are counted from the tail.
      Default: every relation has one embedding, and positions are counted from
      the head (paper).
    factors: float32 [2 R, D], the relation factors of `composition.compose`.
      The composition of the query is added to the input at the MASK. Default:
      no composition (paper).
    rotation: whether the factors are divided by their moduli.

  Returns:
    float32 [B, K, D].
  """
  num_relations = elements.shape[0] - num_entities - 2
  x = jnp.take(elements, tokens, axis=0)
  masked = tokens == num_entities + num_relations  # bool [B, K]
  head_query = masked[:, 0]
  relations = tokens - num_entities
  relations = jnp.where(relations < num_relations, relations, -1)
  position = jnp.arange(tokens.shape[1])[None]
  if backward_relations is None:
    x = x + positions[None, : tokens.shape[1]]
  else:
    backward = jnp.take(backward_relations, jnp.maximum(relations, 0), axis=0)
    replaced = head_query[:, None] & (relations >= 0)
    x = jnp.where(replaced[..., None], backward, x)
    last = visible.sum(axis=1, dtype=jnp.int32)[:, None] - 1
    from_tail = jnp.maximum(last - position, 0)
    position = jnp.where(head_query[:, None], from_tail, position)
    x = x + jnp.take(positions, position, axis=0)
  if factors is not None:
    known = known_position(visible, head_query)
    entity = jnp.take_along_axis(tokens, known[:, None], axis=1)[:, 0]
    product = composition.compose(
      jnp.take(elements, entity, axis=0),
      factors,
      relations[:, 1:-1],
      head_query,
      rotation=rotation,
    )
    x = x + jnp.where(masked[..., None], product[:, None], 0.0)
  return x


def known_position(visible: jax.Array, head_query: jax.Array) -> jax.Array:
  """Returns the column of each query's known entity.

  Args:
    visible: bool [B, K], False at PAD.
    head_query: bool [B], whether the head is masked.

  Returns:
    int32 [B], the last visible column if the head is masked, else 0.
  """
  last = visible.sum(axis=1, dtype=jnp.int32) - 1
  return jnp.where(head_query, last, 0)
