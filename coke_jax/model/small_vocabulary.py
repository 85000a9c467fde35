"""Replaces the entities of a model by the candidates of a batch.

The result is a small model. In this model, the entity at position i of
`candidates` has the id i. The ids of relations, MASK and PAD follow.
"""

import jax
import jax.numpy as jnp

from coke_jax.model import encoder


def small_model(model: encoder.CoKE, num_entities: int) -> encoder.CoKE:
  """Returns a model of the same kind with another number of entities."""
  removed = model.num_entities - num_entities
  return model.clone(
    num_entities=num_entities,
    num_tokens=model.num_tokens - removed,
    pad_id=model.pad_id - removed,
  )


def small_batch(
  batch: dict[str, jax.Array], num_entities: int
) -> dict[str, jax.Array]:
  """Converts token ids to token ids of the small model.

  Args:
    batch: a batch of `data.batches.TrainingSet`. Its `candidates`, int32 [C],
      include all entities of `tokens`.
    num_entities: V of the full model.

  Returns:
    The batch without `candidates`. Its `answers` are not changed, because they
    already are indices of `candidates`.
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
