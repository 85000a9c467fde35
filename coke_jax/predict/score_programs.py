"""Makes the functions that `scorer` runs, compiled for all devices.

Calls with equal arguments return the same function. So all scorers of a model
share the compiled functions.

Args of all functions in this module:
  model: the encoder.
  placement: how the parameters are distributed over the devices.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.evaluate import counting, device_call
from coke_jax.model import ensemble
from coke_jax.shards import placement as placement_lib
from coke_jax.shards import sharded_encoder


@functools.lru_cache(maxsize=32)
def top_k(
  model: ensemble.Encoder, placement: placement_lib.Placement, k: int
) -> device_call.DeviceCall:
  """Returns the function that finds the k best entities.

  Its results are `entity` and `score`.
  """
  sharded = _sharded(model, placement)

  def find(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[device_call.DeviceBatch, jax.Array]:
    if sharded is not None:
      return sharded.find_best(params, batch, k)
    logits, normalizer, finite = _logits(model, sharded, params, batch)
    if 'candidates' in batch:
      logits = jnp.where(batch['candidates'], logits, -jnp.inf)
    # `top_k` orders equal scores by id.
    score, entity = jax.lax.top_k(logits, k)
    return {'entity': entity, 'score': score - normalizer}, finite

  return device_call.DeviceCall(find, placement.params_axes(model))


@functools.lru_cache(maxsize=8)
def rank(
  model: ensemble.Encoder, placement: placement_lib.Placement
) -> device_call.DeviceCall:
  """Returns the function that ranks the gold answers.

  Its results are the counts of `counting.count_among` and the `score` of the
  gold answer.
  """
  sharded = _sharded(model, placement)

  def count(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[device_call.DeviceBatch, jax.Array]:
    logits, normalizer, _ = _logits(model, sharded, params, batch)
    counts, finite = counting.count_among(
      logits, batch['gold'], batch['candidates']
    )
    gold = jnp.take_along_axis(logits, batch['gold'][:, None], axis=1)
    return {**counts, 'score': (gold - normalizer)[:, 0]}, finite

  return device_call.DeviceCall(count, placement.params_axes(model))


@functools.lru_cache(maxsize=8)
def all_entities(
  model: ensemble.Encoder, placement: placement_lib.Placement
) -> device_call.DeviceCall:
  """Returns the function that computes the `score` of every entity."""
  sharded = _sharded(model, placement)

  def normalize(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[device_call.DeviceBatch, jax.Array]:
    logits, normalizer, finite = _logits(model, sharded, params, batch)
    return {'score': logits - normalizer}, finite

  return device_call.DeviceCall(normalize, placement.params_axes(model))


@functools.lru_cache(maxsize=8)
def answers(
  model: ensemble.Encoder, placement: placement_lib.Placement
) -> device_call.DeviceCall:
  """Returns the function that computes the scores of `batch['answers']`."""
  sharded = _sharded(model, placement)

  def gather(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[device_call.DeviceBatch, jax.Array]:
    logits, normalizer, finite = _logits(model, sharded, params, batch)
    own = jnp.take_along_axis(logits, batch['answers'], axis=1)
    return {'score': own - normalizer}, finite

  return device_call.DeviceCall(gather, placement.params_axes(model))


@functools.lru_cache(maxsize=32)
def encode(
  model: ensemble.Encoder, placement: placement_lib.Placement, layer: int
) -> device_call.DeviceCall:
  """Returns the function that computes `hidden` states after `layer` blocks."""
  sharded = _sharded(model, placement)

  def states(
    params: Any, batch: device_call.DeviceBatch
  ) -> tuple[device_call.DeviceBatch, jax.Array]:
    apply: Any = functools.partial(model.apply, {'params': params})
    if sharded is not None:
      apply = functools.partial(sharded.apply, params)
    hidden = apply(batch['tokens'], layer=layer, method='encode')
    return {'hidden': hidden}, jnp.isfinite(hidden).all(axis=(1, 2))

  return device_call.DeviceCall(states, placement.params_axes(model))


def _sharded(
  model: ensemble.Encoder, placement: placement_lib.Placement
) -> sharded_encoder.ShardedEncoder | None:
  if not placement.is_cut:
    return None
  return sharded_encoder.ShardedEncoder(model, placement)


def _logits(
  model: ensemble.Encoder,
  sharded: sharded_encoder.ShardedEncoder | None,
  params: Any,
  batch: device_call.DeviceBatch,
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Computes the logits of all entities.

  Returns:
    The logits [B, V].
    The logsumexp of each row [B, 1].
    Whether all logits of a row are finite: bool [B].
  """
  tokens, mask_position = batch['tokens'], batch['mask_position']
  logits: Any
  if sharded is None:
    logits = model.apply({'params': params}, tokens, mask_position)
  else:
    logits = sharded.all_entities(sharded.logits(params, tokens, mask_position))
  normalizer = jax.nn.logsumexp(logits, axis=1, keepdims=True)
  return logits, normalizer, jnp.isfinite(logits).all(axis=1)
