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
  only_composition: bool = False,
) -> jax.Array:
  """Computes the input of the first block, before its layer norm.

  Args:
    tokens: int32 [B, K], PAD on the right.
    visible: bool [B, K], False at PAD.
    num_entities: V.
    elements: float32 [V + R + 2, D], token embeddings.
    positions: float32 [at least K, D], position embeddings.
    backward_relations: float32 [R, D], the embeddings of relations in queries
      for the head. In these queries, positions are counted from the tail.
      Default: every relation has one embedding, and positions are counted from
      the head (paper).
    factors: float32 [2 R, D], the relation factors of `composition.compose`.
      The composition of the query is added to the input at the MASK. Default:
      no composition (paper).
    rotation: whether the factors are divided by their moduli.
    only_composition: whether the input at the MASK is the composition alone,
      without the embeddings of the MASK and its position.

  Returns:
    float32 [B, K, D].

  Raises:
    ValueError: K exceeds the number of position embeddings.
  """
  length, longest = tokens.shape[1], positions.shape[0]
  if length > longest:
    raise ValueError(
      f'sequences of {length} tokens: expected at most {longest}, the '
      'max_length of the model'
    )
  num_relations = elements.shape[0] - num_entities - 2
  x = jnp.take(elements, tokens, axis=0)
  masked = tokens == num_entities + num_relations  # bool [B, K]
  relations = relation_indices(tokens, num_entities, num_relations)
  head_query = masked[:, 0]
  position = jnp.arange(length)[None]
  if backward_relations is None:
    x = x + positions[None, :length]
  else:
    backward = jnp.take(backward_relations, jnp.maximum(relations, 0), axis=0)
    replaced = head_query[:, None] & (relations >= 0)
    x = jnp.where(replaced[..., None], backward, x)
    last = visible.sum(axis=1, dtype=jnp.int32)[:, None] - 1
    from_tail = jnp.maximum(last - position, 0)
    position = jnp.where(head_query[:, None], from_tail, position)
    x = x + jnp.take(positions, position, axis=0)
  if factors is not None:
    entity = known_entity(tokens, visible, head_query)
    product = composition.compose(
      jnp.take(elements, entity, axis=0),
      factors,
      relations[:, 1:-1],
      head_query,
      rotation=rotation,
    )
    if only_composition:
      x = jnp.where(masked[..., None], 0.0, x)
    x = x + jnp.where(masked[..., None], product[:, None], 0.0)
  return x


def invert_head_queries(
  tokens: jax.Array,
  visible: jax.Array,
  inverse: tuple[int, ...],
  num_entities: int,
) -> tuple[jax.Array, jax.Array]:
  """Replaces each query for the head by the query of the inverse path.

  The query (?, r1, .., rk, o) becomes (o, inverse of rk, .., inverse of r1, ?).

  Args:
    tokens: int32 [B, K], PAD on the right.
    visible: bool [B, K], False at PAD.
    inverse: the index of the inverse of each of the R relations.
    num_entities: V.

  Returns:
    int32 [B, K], the new tokens.
    int32 [B, K], the old position of each new token. It is also the new
    position of each old token, because a reversal is its own inverse.
  """
  num_relations = len(inverse)
  position = jnp.arange(tokens.shape[1])[None]
  last = visible.sum(axis=1, dtype=jnp.int32)[:, None] - 1
  head_query = (tokens[:, 0] == num_entities + num_relations)[:, None]
  order = jnp.where(head_query & visible, last - position, position)
  reordered = jnp.take_along_axis(tokens, order, axis=1)
  relations = relation_indices(reordered, num_entities, num_relations)
  inverted = (
    num_entities + jnp.asarray(inverse, tokens.dtype)[jnp.maximum(relations, 0)]
  )
  replaced = head_query & (relations >= 0)
  return jnp.where(replaced, inverted, reordered), order


def relation_indices(
  tokens: jax.Array, num_entities: int, num_relations: int
) -> jax.Array:
  """Converts tokens to relation indices. All other tokens become negative.

  Args:
    tokens: int32 [B, K].
    num_entities: V.
    num_relations: R.

  Returns:
    int32 [B, K].
  """
  relations = tokens - num_entities
  return jnp.where(relations < num_relations, relations, -1)


def known_entity(
  tokens: jax.Array, visible: jax.Array, head_query: jax.Array
) -> jax.Array:
  """Returns the known entity of each query.

  Args:
    tokens: int32 [B, K], PAD on the right.
    visible: bool [B, K], False at PAD.
    head_query: bool [B], whether the head is masked.

  Returns:
    int32 [B], the last visible token if the head is masked, else the first.
  """
  last = visible.sum(axis=1, dtype=jnp.int32) - 1
  position = jnp.where(head_query, last, 0)
  return jnp.take_along_axis(tokens, position[:, None], axis=1)[:, 0]
