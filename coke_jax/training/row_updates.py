"""Restricts a training step to the embeddings that a batch uses.

If the softmax of a step ranges over C candidates, the gradient is 0 for the
embeddings and biases of all other entities. Adagrad does not change parameters
whose gradient is 0. So a step can be computed with a small model, whose only
entities are the candidates. Its parameters and optimizer state are taken from
the full tables before the step, and put back after it. The result is the same,
and the time does not depend on the number of entities.

`model.small_vocabulary` builds the small model.
"""

from typing import Any

import jax
import jax.numpy as jnp


def take(tree: Any, candidates: jax.Array, num_entities: int) -> Any:
  """Takes the rows of the small model from parameters or an optimizer state.

  Args:
    tree: parameters of `encoder.CoKE`, or an optimizer state with the same
      names of leaves.
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
  """Returns which rows of a leaf the small model has. None means all rows."""
  name = getattr(path[-1], 'key', None) if path else None
  if name == 'entity_bias':
    return candidates
  if name == 'element_embedding':
    others = jnp.arange(num_entities, leaf.shape[0], dtype=candidates.dtype)
    return jnp.concatenate([candidates, others])
  return None
