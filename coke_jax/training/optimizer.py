"""Adam or Adagrad with a schedule, clipping and weight decay.

For equal arguments, the functions return the same object, so that the train
step is not compiled again.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

# This number is smaller than the square of any useful gradient.
_ADAGRAD_EPSILON = 1e-20


@functools.lru_cache(maxsize=32, typed=True)
def learning_rate_schedule(
  peak: float, num_steps: int, warmup_fraction: float, decay: str = 'linear'
) -> optax.Schedule:
  """Builds a schedule that rises linearly to a peak, then falls or stays there.

  Args:
    peak: the highest learning rate.
    num_steps: steps of the whole training.
    warmup_fraction: fraction of the steps in which the learning rate rises
      (paper: 0.1).
    decay: `linear` or `none`. With `linear`, as in the paper, the learning rate
      falls to 0 until the end of the training. With `none`, it stays at the
      peak.

  Returns:
    A function from the step, counted from 0, to the learning rate.
  """
  warmup = round(num_steps * warmup_fraction)
  end = 0.0 if decay == 'linear' else peak
  # A step with a learning rate of 0 would be wasted. So the learning rate of
  # step 0 is positive, and it falls to 0 only at `num_steps`, after the last
  # step.
  return optax.join_schedules(
    [
      optax.linear_schedule(peak / max(warmup, 1), peak, max(warmup - 1, 1)),
      optax.linear_schedule(peak, end, max(num_steps - warmup, 1)),
    ],
    [warmup],
  )


@functools.lru_cache(maxsize=32, typed=True)
def make_optimizer(
  schedule: optax.Schedule,
  *,
  name: str = 'adam',
  weight_decay: float,
  clip_norm: float,
  embedding_factor: float = 1.0,
  beta1: float = 0.9,
  beta2: float = 0.999,
  epsilon: float = 1e-6,
  norm: Callable[[Any], jax.Array] | None = None,
) -> optax.GradientTransformation:
  """Builds the optimizer. The defaults are those of the authors' Adam.

  Args:
    schedule: the learning rate as a function of the step.
    name: `adam` or `adagrad`. Adagrad divides a gradient by the square root of
      the sum of all squared gradients so far (Duchi et al. 2011).
    weight_decay: decoupled decay of all parameters, multiplied by the
      learning rate; 0 turns it off.
    clip_norm: a gradient with a larger global norm is scaled down to this norm;
      0 turns clipping off.
    embedding_factor: factor on the updates of embeddings and entity biases,
      which has the effect of a separate learning rate.
    beta1: decay rate of the mean of gradients (`adam` only).
    beta2: decay rate of the mean of squared gradients (`adam` only).
    epsilon: added to the square root of the mean of squared gradients (`adam`
      only).
    norm: computes the global norm of a gradient. Default: optax's function,
      which needs the whole gradient on every device.
  """
  if name == 'adagrad':
    main = optax.chain(
      optax.scale_by_rss(initial_accumulator_value=0.0, eps=_ADAGRAD_EPSILON),
      optax.add_decayed_weights(weight_decay)
      if weight_decay
      else optax.identity(),
      optax.scale_by_learning_rate(schedule),
    )
  else:
    main = optax.adamw(
      schedule, b1=beta1, b2=beta2, eps=epsilon, weight_decay=weight_decay
    )
  chain = [main]
  if clip_norm:
    chain.insert(
      0,
      _clip(clip_norm, norm) if norm else optax.clip_by_global_norm(clip_norm),
    )
  if embedding_factor != 1:
    chain.append(_scale_embeddings(embedding_factor))
  return optax.chain(*chain) if len(chain) > 1 else main


def _clip(
  most: float, norm: Callable[[Any], jax.Array]
) -> optax.GradientTransformation:
  """Clips like `optax.clip_by_global_norm`, with the norm from `norm`."""

  def clip(updates: Any, _: Any) -> Any:
    factor = jnp.minimum(1.0, most / norm(updates))
    return jax.tree.map(lambda update: update * factor, updates)

  return optax.stateless(clip)


def _scale_embeddings(factor: float) -> optax.GradientTransformation:
  """Multiplies the updates of embedding tables and of the entity bias."""

  def scale(path: Any, update: jax.Array) -> jax.Array:
    name = path[-1].key
    is_embedding = name.endswith('_embedding') or name == 'entity_bias'
    return update * factor if is_embedding else update

  return optax.stateless(
    lambda updates, _: jax.tree_util.tree_map_with_path(scale, updates)
  )
