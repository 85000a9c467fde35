"""The training state: parameters, optimizer state and step."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import optax

from coke_jax.model import ensemble, parameters


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
    # Every member has its own optimizer state, so every leaf gets the axis M.
    optimizer_state = jax.vmap(transformation.init)(params['member'])
  else:
    optimizer_state = transformation.init(params)
  return TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer_state=optimizer_state,
  )


def to_items(state: TrainState) -> dict[str, Any]:
  """Splits a state into the items of a checkpoint, `params` and `training`."""
  return {
    'params': state.params,
    'training': {'step': state.step, 'optimizer_state': state.optimizer_state},
  }


def from_items(items: dict[str, Any]) -> TrainState:
  """Joins the items of a checkpoint into a state."""
  return TrainState(params=items['params'], **items['training'])
