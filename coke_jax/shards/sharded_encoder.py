"""The encoder with a vocabulary in shards, see `placement`.

The methods of `ShardedEncoder` work only inside `parallel.map_devices`. Every
device encodes its own b rows of a batch. Then the devices exchange the results,
and each device computes the logits of its own entities for all B rows.

Dimensions in shapes are those of `encoder` and `exchange`.
"""

from typing import Any

import jax
import jax.numpy as jnp

from coke_jax import parallel
from coke_jax.model import (
  chunked_loss,
  encoder,
  ensemble,
  loss,
  products,
  small_vocabulary,
)
from coke_jax.shards import exchange, placement


class ShardedEncoder(exchange.Exchange):
  """Computes the loss and logits of an encoder whose vocabulary is cut.

  Attributes:
    model: the encoder.
  """

  def __init__(self, model: ensemble.Encoder, place: placement.Placement):
    """Stores an encoder and its placement. Ensembles are not supported."""
    assert isinstance(model, encoder.CoKE)
    super().__init__(place)
    self.model = model

  def apply(
    self, params: Any, tokens: jax.Array, *arguments: Any, **options: Any
  ) -> Any:
    """Calls an encoder method that needs no entities except those in `tokens`.

    Args:
      params: the parameters on this device.
      tokens: int32 [b, K].
      *arguments: arguments of the method after `tokens`.
      **options: options of `flax.linen.Module.apply`, such as `method`.
    """
    is_entity = tokens < self.model.num_entities
    entities = jnp.where(is_entity, tokens, -1).reshape(-1)
    small = small_vocabulary.small_model(self.model, entities.size)
    position = jnp.arange(entities.size).reshape(tokens.shape)
    others = tokens - self.model.num_entities + entities.size
    own = self._with_entities(
      params, self.take(params[placement.ENTITIES], entities)
    )
    return small.apply(
      {'params': own}, jnp.where(is_entity, position, others), *arguments,
      **options,
    )  # fmt: skip

  def candidate_params(self, params: Any, candidates: jax.Array) -> Any:
    """Returns the parameters of a small model, see `small_vocabulary`.

    Args:
      params: the parameters on this device.
      candidates: int32 [C], equal on all devices.
    """
    column = self.own_columns(candidates)
    tables = {
      name: jnp.take(params[name], jnp.maximum(column, 0), axis=0)
      for name in (placement.ENTITIES, placement.BIAS)
    }
    rows, bias = (
      parallel.sum_over_devices(
        jnp.where(
          (column >= 0).reshape(-1, *[1] * (table.ndim - 1)), table, 0.0
        )
      )
      for table in tables.values()
    )
    return {**self._with_entities(params, rows), placement.BIAS: bias}

  def loss(
    self,
    params: Any,
    query: jax.Array,
    answers: jax.Array,
    target_mass: float,
    chunk_size: int,
    answer_weight: jax.Array | None = None,
  ) -> jax.Array:
    """Computes `loss.smoothed_cross_entropy` over the entities of all devices.

    Args:
      params: the parameters on this device.
      query: float32 [b, D], see `encoder.CoKE.query_embedding`.
      answers: int32 [b, M] entity ids. Negative numbers are padding.
      target_mass: the probability of the answer in the target distribution.
      chunk_size: the number of entities whose logits are computed at a time. 0
        means all entities of the device.
      answer_weight: float32 [b, M], as in `loss.smoothed_cross_entropy`.

    Returns:
      float32 [b]; 0 for a row without answers.
    """
    queries = self.all_rows(query)
    column = self.own_columns(self.all_rows(answers))
    own_weight = loss.weights_of_answers(answers, answer_weight)
    weight = self.all_rows(own_weight)
    entities, bias = params[placement.ENTITIES], params[placement.BIAS]
    if chunk_size:
      sums = chunked_loss.sums_by_chunks(
        queries, entities, bias, column, weight, self.num_valid(),
        min(chunk_size, self.size), self.model.dtype,
      )  # fmt: skip
    else:
      logits = products.logits(queries, entities, bias, self.model.dtype)
      valid = (jnp.arange(self.size) < self.num_valid())[None]
      masked = jnp.where(valid, logits, chunked_loss.LOWEST)
      sums = (
        jax.nn.logsumexp(masked, axis=1),
        jnp.where(valid, logits, 0.0).sum(axis=1),
        loss.sum_of_answers(logits, column, weight),
      )
    normalizer, total, gold_sum = (self.own_rows(array) for array in sums)
    return loss.from_sums(
      jax.nn.logsumexp(normalizer, axis=0),
      total.sum(axis=0),
      gold_sum.sum(axis=0),
      own_weight.sum(axis=1),
      target_mass,
      self.model.num_entities,
    )

  def logits(
    self, params: Any, tokens: jax.Array, mask_position: jax.Array
  ) -> jax.Array:
    """Computes the logits of this device's entities for all rows.

    Args:
      params: the parameters on this device.
      tokens: int32 [b, K].
      mask_position: int32 [b].

    Returns:
      float32 [B, S]. The last columns may belong to no entity, see `num_valid`.
    """
    query = self.apply(params, tokens, mask_position, method='query_embedding')
    return self.shard_logits(params, self.all_rows(query), 0, self.size)

  def shard_logits(
    self, params: Any, queries: jax.Array, start: Any, count: int
  ) -> jax.Array:
    """Computes the logits of consecutive entities of this device.

    Args:
      params: the parameters on this device.
      queries: float32 [B, D], from all devices.
      start: position of the first entity among those of this device.
      count: number of entities.

    Returns:
      float32 [B, count].
    """
    entities, bias = (
      jax.lax.dynamic_slice_in_dim(params[name], start, count)
      for name in (placement.ENTITIES, placement.BIAS)
    )
    return products.logits(queries, entities, bias, self.model.dtype)

  def find_best(
    self, params: Any, batch: dict[str, jax.Array], k: int
  ) -> tuple[dict[str, jax.Array], jax.Array]:
    """Finds the entities with the highest scores.

    Args:
      params: the parameters on this device.
      batch: `tokens` [b, K], `mask_position` [b] and optionally `candidates`,
        bool [b, V].
      k: number of entities for each row, at most V.

    Returns:
      A dict with `entity`, int32 [b, k], and the log-probabilities `score`,
      float32 [b, k]. Then bool [b], whether all logits of a row are finite.
    """
    logits = self.logits(params, batch['tokens'], batch['mask_position'])
    finite = self.own_rows(jnp.isfinite(logits).all(axis=1)).all(axis=0)
    chosen = (jnp.arange(self.size) < self.num_valid())[None]
    if 'candidates' in batch:
      chosen = chosen & self.own_entities(batch['candidates'])
    score, entity = self.top_k(jnp.where(chosen, logits, -jnp.inf), k)
    return {'entity': entity, 'score': score - self.normalizer(logits)}, finite

  def top_k(self, logits: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """Finds the entities with the highest logits over all devices.

    Args:
      logits: float32 [B, S]. The logits of entities to leave out are minus
        infinity.
      k: number of entities for each row, at most V.

    Returns:
      float32 [b, k], the logits, highest first.
      int32 [b, k], the entities. Equal logits are ordered by entity.
    """
    score, column = jax.lax.top_k(logits, min(k, self.size))
    entity = column + parallel.device_index() * self.size
    # [n, b, min(k, S)] becomes [b, width]. Equal logits stay ordered by entity.
    width = parallel.num_devices() * score.shape[1]
    scores, entities = (
      self.own_rows(x).swapaxes(0, 1).reshape(-1, width)
      for x in (score, entity)
    )
    best, place = jax.lax.top_k(scores, k)
    return best, jnp.take_along_axis(entities, place, axis=1)

  def normalizer(self, logits: jax.Array) -> jax.Array:
    """Computes the logsumexp over all entities: [B, S] becomes [b, 1]."""
    valid = (jnp.arange(self.size) < self.num_valid())[None]
    masked = jnp.where(valid, logits, chunked_loss.LOWEST)
    parts = self.own_rows(jax.nn.logsumexp(masked, axis=1))
    return jax.nn.logsumexp(parts, axis=0)[:, None]

  def _with_entities(self, params: Any, rows: jax.Array) -> Any:
    """Returns the parameters of a small model with these entity embeddings."""
    small = {
      name: leaf for name, leaf in params.items() if name != placement.ENTITIES
    }
    small['element_embedding'] = jnp.concatenate(
      [rows, params['element_embedding']]
    )
    small[placement.BIAS] = jnp.zeros(len(rows), jnp.float32)
    return small
