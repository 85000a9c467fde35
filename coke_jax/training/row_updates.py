"""Restricts a training step to the embeddings that a batch uses.

If the softmax of a step ranges over C candidates, the gradient is 0 for the
embeddings and biases of all other entities. Adagrad does not change parameters
whose gradient is 0. So a step can be computed with a small model, whose only
entities are the candidates. Its parameters and optimizer state are taken from
the full tables before the step, and put back after it. The result is the same,
and the time does not depend on the number of entities.

In the small model, the entity at position i of the candidates has the id i. The
ids of relations, MASK and PAD follow.
"""

from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.model import encoder


def small_model(model: encoder.CoKE, num_candidates: int) -> encoder.CoKE:
  """Returns the model with the candidates as its only entities."""
  removed = model.num_entities - num_candidates
  return model.clone(
    num_entities=num_candidates,
    num_tokens=model.num_tokens - removed,
    pad_id=model.pad_id - removed,
  )


def small_batch(
  batch: dict[str, jax.Array], num_entities: int
) -> dict[str, jax.Array]:
  """Replaces token ids by those of the small model.

  Args:
    batch: a batch of `data.batches.TrainingSet` with `candidates`, int32 [C],
      among which are all entities of `tokens`.
    num_entities: V of the full model.

  Returns:
    The batch without `candidates`. `answers` already contains positions.
  """
  candidates, tokens = batch['candidates'], batch['tokens']
  size = candidates.shape[0]
  position = jnp.zeros(num_entities, jnp.int32)
  position = position.at[candidates].set(
    jnp.arange(size, dtype=jnp.int32), unique_indices=True
  )
  is_entity = tokens < num_entities
  entity = jnp.take(position, jnp.minimum(tokens, num_entities - 1))
  small = {name: batch[name] for name in batch if name != 'candidates'}
  small['tokens'] = jnp.where(is_entity, entity, tokens - num_entities + size)
  return small


def take(tree: Any, candidates: jax.Array, num_entities: int) -> Any:
  """Takes the parameters, or the optimizer state, of the small model.

  Args:
    tree: parameters of `encoder.CoKE`, or an optimizer state with their names.
    candidates: int32 [C].
    num_entities: V of the full model.

  Returns:
    The tree with the rows of the small model. Leaves without a row for each
    entity are unchanged.
  """

  def select(path: Any, leaf: jax.Array) -> jax.Array:
    rows = _rows(path, leaf, candidates, num_entities)
    if rows is None:
      return leaf
    return leaf.at[rows].get(unique_indices=True, mode='promise_in_bounds')

  return jax.tree_util.tree_map_with_path(select, tree)


def put(tree: Any, small: Any, candidates: jax.Array, num_entities: int) -> Any:
  """Puts the result of a step back into the full tables.

  Args:
    tree: the argument of `take`.
    small: a tree like the result of `take`.
    candidates: int32 [C].
    num_entities: V of the full model.

  Returns:
    `tree` with the rows and leaves of `small`.
  """

  def merge(path: Any, leaf: jax.Array, own: jax.Array) -> jax.Array:
    rows = _rows(path, leaf, candidates, num_entities)
    if rows is None:
      return own
    return leaf.at[rows].set(own, unique_indices=True, mode='promise_in_bounds')

  return jax.tree_util.tree_map_with_path(merge, tree, small)


def _rows(
  path: Any, leaf: jax.Array, candidates: jax.Array, num_entities: int
) -> jax.Array | None:
  """Returns the rows of a leaf that the small model has. None: all."""
  name = getattr(path[-1], 'key', None) if path else None
  if name == 'entity_bias':
    return candidates
  if name == 'element_embedding':
    others = jnp.arange(num_entities, leaf.shape[0], dtype=candidates.dtype)
    return jnp.concatenate([candidates, others])
  return None
