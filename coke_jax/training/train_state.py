"""The training state: parameters, optimizer state and step."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax

from coke_jax import parallel
from coke_jax.model import encoder, ensemble, initial_rows, parameters
from coke_jax.shards import placement as placement_lib


@flax.struct.dataclass
class TrainState:
  """Everything that a training step changes.

  Attributes:
    step: int32 scalar, the number of steps done.
    params: the model's parameters.
    optimizer_state: the state of the optax transformation.
  """

  step: jax.Array
  params: Any
  optimizer_state: Any


def init_state(
  model: ensemble.Encoder,
  transformation: optax.GradientTransformation,
  seed: int,
) -> TrainState:
  """Creates the state before the first step.

  Args:
    model: the encoder.
    transformation: the optimizer.
    seed: the seed of the initial parameters.

  Returns:
    The state with step 0.
  """
  params = parameters.init_params(model, seed)
  if isinstance(model, ensemble.Ensemble):
    # Each member has its own optimizer state, so each leaf gets an axis of
    # members.
    optimizer_state = jax.vmap(transformation.init)(params['member'])
  else:
    optimizer_state = transformation.init(params)
  return TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer_state=optimizer_state,
  )


def init_placed(
  model: ensemble.Encoder,
  transformation: optax.GradientTransformation,
  seed: int,
  placement: placement_lib.Placement,
) -> TrainState:
  """Creates the state of `init_state` on the devices.

  If the vocabulary is cut, each device only draws the embeddings of its own
  entities.

  Args:
    model: the encoder.
    transformation: the optimizer.
    seed: the seed of the initial parameters.
    placement: how the state is distributed over the devices.
  """
  if not placement.is_cut:
    placed: TrainState = placement.place(
      init_state(model, transformation, seed)
    )
    return placed
  assert isinstance(model, encoder.CoKE)
  size = placement.shard_size

  def create(_: Any, __: Any, key: jax.Array) -> tuple[TrainState, tuple[()]]:
    params, entities = initial_rows.init_shard(
      model, key, parallel.device_index() * size, size
    )
    params[placement_lib.ENTITIES] = entities
    params[placement_lib.BIAS] = jnp.zeros(size, jnp.float32)
    zero = jnp.zeros((), jnp.int32)
    return TrainState(zero, params, transformation.init(params)), ()

  shapes = jax.eval_shape(lambda: init_state(model, transformation, seed))
  run = parallel.map_devices(create, result_axes=placement.axes(shapes))
  # The batch has a row for each device. The content of the rows is not used.
  batch = parallel.own_devices().astype(np.int32)
  created: TrainState = run((), batch, parameters.params_key(seed))[0]
  return created


def to_items(state: TrainState) -> dict[str, Any]:
  """Splits a state into the items of a checkpoint, `params` and `training`."""
  return {
    'params': state.params,
    'training': {'step': state.step, 'optimizer_state': state.optimizer_state},
  }


def from_items(items: dict[str, Any]) -> TrainState:
  """Joins the items of a checkpoint into a state."""
  return TrainState(params=items['params'], **items['training'])
