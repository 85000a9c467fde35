"""Functions that count candidates for `ranker`, compiled for all devices.

Calls with equal arguments return the same function. So each function is
compiled only once for all rankers of a model.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax import parallel
from coke_jax.evaluate import counting, device_call
from coke_jax.model import ensemble
from coke_jax.shards import placement as placement_lib
from coke_jax.shards import sharded_encoder


@functools.lru_cache(maxsize=8)
def filtered(
  model: ensemble.Encoder, placement: placement_lib.Placement, chunk_size: int
) -> device_call.DeviceCall:
  """Returns the function that counts candidates for `Ranker.rank_filtered`.

  Args:
    model: the encoder.
    placement: how the parameters are distributed over the devices.
    chunk_size: the number of entities that are scored at a time. If the
      vocabulary is cut into shards, this is the number on each device.
  """

  def count(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[counting.Counts, jax.Array]:
    return counting.count_filtered(
      _scores(model, params, batch),
      batch['gold'],
      batch['filter_row'][0],
      batch['filter_entity'][0],
      batch['filter_of'],
    )

  def count_by_chunks(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[counting.Counts, jax.Array]:
    apply = functools.partial(model.apply, {'params': params})
    query: Any = apply(
      batch['tokens'], batch['mask_position'], method='query_embedding'
    )

    def scores_of(start: jax.Array) -> jax.Array:  # [B, C]
      scores: Any = apply(query, start, chunk_size, method='entity_logits')
      return scores

    return counting.count_filtered_by_chunks(
      scores_of,
      chunk_size,
      model.num_entities,
      batch['gold'],
      batch['filter_row'],
      batch['filter_entity'],
      batch['filter_of'],
    )

  if placement.is_cut:
    return _filtered_in_shards(model, placement, chunk_size)
  return device_call.DeviceCall(
    count if chunk_size >= model.num_entities else count_by_chunks
  )


@functools.lru_cache(maxsize=8)
def among(
  model: ensemble.Encoder, placement: placement_lib.Placement
) -> device_call.DeviceCall:
  """Returns the function that counts candidates for `Ranker.rank_among`.

  Args:
    model: the encoder.
    placement: how the parameters are distributed over the devices.
  """

  def count(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[counting.Counts, jax.Array]:
    return counting.count_among(
      _scores(model, params, batch), batch['gold'], batch['candidates']
    )

  def count_in_shards(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[counting.Counts, jax.Array]:
    sharded = sharded_encoder.ShardedEncoder(model, placement)
    return sharded.slice_rows(
      counting.count_among(
        sharded.logits(params, batch['tokens'], batch['mask_position']),
        sharded.own_columns(sharded.all_rows(batch['gold'])),
        sharded.own_entities(batch['candidates']),
        parallel.sum_over_devices,
      )
    )

  return device_call.DeviceCall(
    count_in_shards if placement.is_cut else count,
    placement.params_axes(model),
  )


def _filtered_in_shards(
  model: ensemble.Encoder, placement: placement_lib.Placement, chunk_size: int
) -> device_call.DeviceCall:
  """Returns the function of `filtered` for a vocabulary in shards."""
  sharded = sharded_encoder.ShardedEncoder(model, placement)

  def count(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[counting.Counts, jax.Array]:
    query = sharded.apply(
      params, batch['tokens'], batch['mask_position'], method='query_embedding'
    )
    queries = sharded.all_rows(query)
    # The filters of all devices: [devices, F].
    row, entity = (
      parallel.gather_over_devices(batch[name][0])
      for name in ('filter_row', 'filter_entity')
    )
    own = len(query)
    first = own * jnp.arange(len(row))[:, None]
    row = jnp.where(row < own, row + first, len(queries)).reshape(-1)
    column = sharded.own_columns(entity).reshape(-1)
    filter_of = parallel.gather_over_devices(batch['filter_of']) + first
    chunks = -(-sharded.size // chunk_size)
    counts, finite = counting.count_filtered_by_chunks(
      lambda start: sharded.shard_logits(params, queries, start, chunk_size),
      chunk_size,
      sharded.size,
      sharded.own_columns(sharded.all_rows(batch['gold'])),
      jnp.broadcast_to(row, (chunks, len(row))),
      jnp.broadcast_to(column, (chunks, len(row))),
      filter_of.reshape(-1),
      limit=sharded.num_valid(),
      sum_parts=parallel.sum_over_devices,
    )
    return sharded.slice_rows((counts, finite))

  return device_call.DeviceCall(count, placement.params_axes(model))


def _scores(
  model: ensemble.Encoder, params: Any, batch: device_call.DeviceBatch
) -> jax.Array:
  """Returns the scores of all entities, float32 [B, V]."""
  scores: Any = model.apply(
    {'params': params}, batch['tokens'], batch['mask_position']
  )
  return scores
