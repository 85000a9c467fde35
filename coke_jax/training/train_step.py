"""From a config to the training state and the step that runs on all devices."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np
import optax

from coke_jax import parallel
from coke_jax.data import batches
from coke_jax.data import queries as queries_lib
from coke_jax.model import encoder, loss
from coke_jax.training import train_state


def build_training_set(
  config: ml_collections.ConfigDict, queries: queries_lib.Queries, pad_id: int
) -> batches.TrainingSet:
  """Queries of one answer each, as rows of the kind `config.train.rows`."""
  settings = config.train
  parallel.check_divides(
    settings.batch_size, 'config.train.batch_size: a batch'
  )
  weight = None
  if settings.rows == 'query':
    queries = queries.grouped().split_answers(settings.max_answers_per_row)
    if settings.query_weight_power != 1:
      totals = queries.total_answers().astype(np.float64)
      weight = totals ** (settings.query_weight_power - 1)
      weight = weight.astype(np.float32)
  return batches.TrainingSet(
    queries,
    settings.batch_size,
    pad_id,
    settings.seed,
    settings.steps_per_call,
    weight,
  )


def count_instances(batch: batches.Batch) -> int:
  """How many answers a batch trains on."""
  return int((batch['answers'] != batches.PAD_ANSWER).sum())


def make_train_step(
  model: encoder.CoKE,
  transformation: optax.GradientTransformation,
  *,
  target_mass: float,
  weight_per_row: float = 1.0,
  steps_per_call: int = 1,
) -> Callable[
  [train_state.TrainState, list[batches.Batch], jax.Array],
  tuple[train_state.TrainState, dict[str, jax.Array]],
]:
  """The step, compiled for all local devices, several at a call.

  A call is made of one program however many steps it does, so the numbers that
  come out do not depend on how the steps are spread over calls.

  Args:
    model: the encoder.
    transformation: the optimizer.
    target_mass: see `loss.smoothed_cross_entropy`.
    weight_per_row: the mean weight of a row's answers together; where all
      answers weigh 1, their mean number. What is minimised is the weighted sum
      over a batch's answers, divided by its rows times this constant, so that
      over an epoch every answer has its weight.
    steps_per_call: the most batches that a call takes.

  Returns:
    step(state, run, key) -> (state, metrics): `run` is a list of 1 to
    `steps_per_call` batches of one shape, as `batches.TrainingSet.epoch` yields
    them. The given state, replicated, is donated. The metrics are the weighted
    mean `loss` of each batch's answers and the `gradient_norm`, float32
    [steps_per_call], of which the first len(run) count.
  """

  def step(
    state: train_state.TrainState, batch: dict[str, jax.Array], key: jax.Array
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    key = jax.random.fold_in(key, state.step)
    key = jax.random.fold_in(key, parallel.device_index())

    valid = batch['answers'] != batches.PAD_ANSWER
    answer_weight = batch.get('answer_weight', 1.0)

    def loss_sum(params: Any) -> jax.Array:
      logits: Any = model.apply(
        {'params': params},
        batch['tokens'],
        batch['mask_position'],
        train=True,
        rngs={'dropout': key},
      )
      losses = loss.smoothed_cross_entropy(
        logits, batch['answers'], target_mass
      )
      return (losses * answer_weight).sum()

    total, gradients = jax.value_and_grad(loss_sum)(state.params)
    weights = (valid.sum(axis=1) * answer_weight).sum()
    total, rows, weights, gradients = parallel.sum_over_devices(
      (total, valid.any(axis=1).sum(), weights, gradients)
    )
    scale = 1.0 / (rows * weight_per_row)
    gradients = jax.tree.map(lambda gradient: gradient * scale, gradients)
    updates, optimizer_state = transformation.update(
      gradients, state.optimizer_state, state.params
    )
    new = train_state.TrainState(
      step=state.step + 1,
      params=optax.apply_updates(state.params, updates),
      optimizer_state=optimizer_state,
    )
    metrics = {
      'loss': total / weights,
      'gradient_norm': optax.tree.norm(gradients),
    }
    return new, metrics

  def steps(
    state: train_state.TrainState, run: dict[str, jax.Array], extra: Any
  ) -> tuple[tuple[train_state.TrainState, dict[str, jax.Array]], tuple[()]]:
    key, count = extra

    def body(index: jax.Array, carry: Any) -> Any:
      state, collected = carry
      batch = {name: array[index] for name, array in run.items()}
      state, metrics = step(state, batch, key)
      return state, {
        name: collected[name].at[index].set(metrics[name]) for name in metrics
      }

    nothing = jnp.zeros(steps_per_call, jnp.float32)
    empty = {'loss': nothing, 'gradient_norm': nothing}
    return jax.lax.fori_loop(0, count, body, (state, empty)), ()

  compiled = parallel.map_devices(steps, donate_state=True)

  def call(
    state: train_state.TrainState, run: list[batches.Batch], key: jax.Array
  ) -> tuple[train_state.TrainState, dict[str, jax.Array]]:
    stacked = parallel.shard(batches.stack(run, steps_per_call), axis=1)
    result, _ = compiled(state, stacked, (key, np.int32(len(run))))
    return result

  return call
