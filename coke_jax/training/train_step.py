"""The train step: loss, gradients and update, on all local devices."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from coke_jax import parallel
from coke_jax.data import batches
from coke_jax.model import (
  chunked_loss,
  ensemble,
  loss,
  regularization,
  small_vocabulary,
)
from coke_jax.shards import placement as placement_lib
from coke_jax.shards import sharded_encoder
from coke_jax.training import row_updates, train_state


def count_instances(batch: batches.Batch) -> int:
  """Returns the number of answers that a batch trains on."""
  return int((batch['answers'] != batches.PAD_ANSWER).sum())


@functools.lru_cache(maxsize=8, typed=True)
def make_train_step(
  model: ensemble.Encoder,
  transformation: optax.GradientTransformation,
  *,
  target_mass: float,
  penalties: regularization.Penalties = regularization.NO_PENALTIES,
  answers_per_row: float = 1.0,
  steps_per_call: int = 1,
  chunk_size: int = 0,
  update_rows: bool = False,
  placement: placement_lib.Placement | None = None,
) -> Callable[
  [train_state.TrainState, list[batches.Batch], jax.Array],
  tuple[train_state.TrainState, dict[str, jax.Array]],
]:
  """Returns a function that runs several train steps on all local devices.

  For equal arguments, the result is the same function. So the step is not
  compiled again for another seed, or for other data of the same shapes.

  One program runs any number of steps up to `steps_per_call`, so results do not
  depend on how steps are grouped into calls.

  The minimised loss is the sum of the losses of all answers in a batch, divided
  by (number of rows with answers * `answers_per_row`). So the weight of an
  answer does not depend on other answers in the batch. Answers may have
  different weights, see `batches.TrainingSet`.

  Args:
    model: the encoder. The members of an ensemble train on the same batches,
      each with its own dropout and optimizer state.
    transformation: the optimizer.
    target_mass: probability mass on the answer, see
      `loss.smoothed_cross_entropy`.
    penalties: the penalties that are added to the loss. The metric `loss` does
      not include them. Default: none.
    answers_per_row: the mean number of answers of a row of the training set.
    steps_per_call: the largest number of steps in a call.
    chunk_size: the number of entities whose logits are computed at a time, see
      `chunked_loss`. It must be 0 if the batches have candidates. Default: 0,
      which means all entities.
    update_rows: whether a step only updates the embeddings that its batch uses,
      see `row_updates`. The batches must have candidates, and the optimizer
      must be Adagrad without weight decay. Default: False.
    placement: how the state is distributed over the devices. If it cuts the
      vocabulary, `update_rows` has no effect. Default: every device has a copy
      of the state.

  Returns:
    A function step(state, steps, key) -> (state, metrics). `state` comes from
    `placement` and is donated. `steps` is a list of 1 to `steps_per_call`
    batches of one shape, from `batches.TrainingSet.epoch`. `metrics` contains
    `loss`, the mean loss of the answers of each batch, and `gradient_norm`, the
    norm of the gradient of the minimised loss. Each metric is float32
    [steps_per_call], and only the first len(steps) values are valid.
  """
  member = model.member if isinstance(model, ensemble.Ensemble) else model
  place = placement or placement_lib.make(model)
  sharded = sharded_encoder.ShardedEncoder(member, place)
  update_rows = update_rows and not place.is_cut
  norm = placement_lib.norm_of_cut if place.is_cut else optax.tree.norm

  def loss_of_logits(
    batch: dict[str, jax.Array], apply: Callable[..., Any]
  ) -> jax.Array:
    return loss.smoothed_cross_entropy(
      apply(candidates=batch.get('candidates')),
      batch['answers'],
      target_mass,
      candidate_weight=batch.get('candidate_weight'),
      num_entities=model.num_entities,
      answer_weight=batch.get('answer_weight'),
    )

  def loss_by_chunks(
    params: Any, batch: dict[str, jax.Array], apply: Callable[..., Any]
  ) -> jax.Array:
    return chunked_loss.smoothed_cross_entropy(
      apply(method='query_embedding'),
      params['element_embedding'],
      params['entity_bias'],
      batch['answers'],
      target_mass,
      chunk_size,
      member.dtype,
      batch.get('answer_weight'),
    )

  def loss_by_shards(
    params: Any, batch: dict[str, jax.Array], key: jax.Array
  ) -> jax.Array:
    query = sharded.apply(
      params,
      batch['tokens'],
      batch['mask_position'],
      method='query_embedding',
      train=True,
      rngs={'dropout': key},
    )
    return sharded.loss(
      params,
      query,
      batch['answers'],
      target_mass,
      chunk_size,
      batch.get('answer_weight'),
    )

  def step(
    state: train_state.TrainState, batch: dict[str, jax.Array], key: jax.Array
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    key = jax.random.fold_in(key, state.step)
    key = jax.random.fold_in(key, parallel.device_index())

    valid = batch['answers'] != batches.PAD_ANSWER
    # The first axis of these arrays has the size 1, so each device has received
    # the whole array.
    shared = ('candidates', 'candidate_weight')
    batch |= {name: batch[name][0] for name in shared if name in batch}
    encoder, before = member, (state.params, state.optimizer_state)
    chosen = batch.get('candidates', jnp.zeros(0, jnp.int32))
    if len(chosen) and (update_rows or place.is_cut):
      encoder = small_vocabulary.small_model(member, len(chosen))
      batch = small_vocabulary.small_batch(batch, member.num_entities)
    if update_rows:
      before = row_updates.take(before, chosen, member.num_entities)
    params, optimizer_state = before

    def loss_sum(params: Any) -> tuple[jax.Array, jax.Array]:
      if place.is_cut and len(chosen):
        params = sharded.candidate_params(params, chosen)
      elif place.is_cut:
        total = loss_by_shards(params, batch, key).sum()
        return total, total
      apply = functools.partial(
        encoder.apply,
        {'params': params},
        batch['tokens'],
        batch['mask_position'],
        train=True,
        rngs={'dropout': key},
      )
      losses = (
        loss_by_chunks(params, batch, apply)
        if chunk_size
        else loss_of_logits(batch, apply)
      )
      total = losses.sum()
      if not penalties:
        return total, total
      return total + penalties(params, batch, encoder).sum(), total

    (_, total), gradients = jax.value_and_grad(loss_sum, has_aux=True)(params)
    total, rows, num_answers = parallel.sum_over_devices(
      (total, valid.any(axis=1).sum(), valid.sum())
    )
    gradients = place.sum_gradients(gradients)
    scale = 1.0 / (rows * answers_per_row)
    gradients = jax.tree.map(lambda gradient: gradient * scale, gradients)
    updates, optimizer_state = transformation.update(
      gradients, optimizer_state, params
    )
    after = (optax.apply_updates(params, updates), optimizer_state)
    if update_rows:
      full = (state.params, state.optimizer_state)
      after = row_updates.put(full, after, chosen, member.num_entities)
    new = train_state.TrainState(state.step + 1, *after)
    metrics = {
      'loss': total / num_answers,
      'gradient_norm': norm(gradients),
    }
    return new, metrics

  def run_steps(
    state: train_state.TrainState,
    stacked: dict[str, jax.Array],
    key: jax.Array,
    count: jax.Array,
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    def body(index: jax.Array, carry: Any) -> Any:
      state, collected = carry
      batch = {name: array[index] for name, array in stacked.items()}
      state, metrics = step(state, batch, key)
      return state, {
        name: collected[name].at[index].set(metrics[name]) for name in metrics
      }

    zeros = jnp.zeros(steps_per_call, jnp.float32)
    collected = {'loss': zeros, 'gradient_norm': zeros}
    return jax.lax.fori_loop(0, count, body, (state, collected))

  def run_members(
    state: train_state.TrainState,
    stacked: dict[str, jax.Array],
    key: jax.Array,
    count: jax.Array,
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    def run_member(one: Any) -> Any:
      index, params, optimizer_state = one
      own_state = train_state.TrainState(state.step, params, optimizer_state)
      own_key = jax.random.fold_in(key, index)
      own_state, metrics = run_steps(own_state, stacked, own_key, count)
      return own_state.params, own_state.optimizer_state, metrics

    assert isinstance(model, ensemble.Ensemble)
    indices = jnp.arange(model.num_members)
    params, optimizer_state, metrics = jax.lax.map(
      run_member, (indices, state.params['member'], state.optimizer_state)
    )
    new = train_state.TrainState(
      state.step + count, {'member': params}, optimizer_state
    )
    return new, {name: array.mean(axis=0) for name, array in metrics.items()}

  def run(
    state: train_state.TrainState, stacked: dict[str, jax.Array], extra: Any
  ) -> tuple[tuple[train_state.TrainState, dict[str, jax.Array]], tuple[()]]:
    run_all = run_steps if member is model else run_members
    return run_all(state, stacked, *extra), ()

  axes = place.axes(
    jax.eval_shape(lambda: train_state.init_state(model, transformation, 0))
  )
  compiled = parallel.map_devices(
    run,
    donate_state=True,
    state_axes=axes,
    result_axes=(axes, {'loss': None, 'gradient_norm': None})
    if place.is_cut
    else None,
  )

  def call(
    state: train_state.TrainState, steps: list[batches.Batch], key: jax.Array
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    stacked = parallel.shard(batches.stack(steps, steps_per_call), axis=1)
    result, _ = compiled(state, stacked, (key, np.int32(len(steps))))
    return result

  return call
