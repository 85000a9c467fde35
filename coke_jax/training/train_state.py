"""The training state, and the optimizer that a config describes."""

from typing import Any

import flax.struct
import jax
import jax.numpy as jnp
import ml_collections
import optax

from coke_jax.model import encoder
from coke_jax.training import optimizer


@flax.struct.dataclass
class TrainState:
  """All that training changes; with the config, all that resuming needs.

  Attributes:
    step: int32, steps done.
    params: the model's parameters.
    optimizer_state: what optax keeps.
  """

  step: jax.Array
  params: Any
  optimizer_state: Any


def build_optimizer(
  config: ml_collections.ConfigDict, num_steps: int
) -> tuple[optax.GradientTransformation, optax.Schedule]:
  """The optimizer that a config describes, and its learning rate by step."""
  settings = config.train
  schedule = optimizer.learning_rate_schedule(
    settings.learning_rate, num_steps, settings.warmup_fraction
  )
  transformation = optimizer.make_optimizer(
    schedule,
    weight_decay=settings.weight_decay,
    clip_norm=settings.clip_norm,
  )
  return transformation, schedule


def init_state(
  model: encoder.CoKE, transformation: optax.GradientTransformation, seed: int
) -> TrainState:
  """The state before the first step."""
  params = encoder.init_params(model, seed)
  return TrainState(
    step=jnp.zeros((), jnp.int32),
    params=params,
    optimizer_state=transformation.init(params),
  )
