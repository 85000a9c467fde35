"""Initial values, shapes and number of the parameters, and random keys."""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.model import encoder, ensemble


def count_parameters(params: Any) -> int:
  """Counts the numbers in a tree of parameters or of parameter shapes."""
  return sum(leaf.size for leaf in jax.tree.leaves(params))


def init_params(model: ensemble.Encoder, seed: int) -> Any:
  """Draws the initial parameters.

  Args:
    model: the encoder.
    seed: determines the parameters completely.

  Returns:
    The parameters, a nested dict of float32 arrays. The parameters of an
    ensemble are in the item `member` and have a leading axis M.
  """
  key = params_key(seed)
  if isinstance(model, encoder.CoKE):
    return _init(model, key)
  keys = jax.random.split(key, model.num_members)
  return {'member': _init_members(model.member, keys)}


def param_shapes(model: ensemble.Encoder) -> Any:
  """Returns the shapes and dtypes of the parameters, without computing them."""
  # Copy the dict, because it is cached and the caller may change the result.
  return jax.tree.map(lambda shape: shape, _param_shapes(model))


def params_key(seed: int) -> jax.Array:
  """Returns the key from which `init_params` draws the parameters."""
  return _named_key(seed, 'parameters')


def dropout_key(seed: int) -> jax.Array:
  """Returns the key from which the dropout keys of all steps are derived."""
  return _named_key(seed, 'dropout')


def _named_key(seed: int, name: str) -> jax.Array:
  number = ('parameters', 'dropout').index(name)
  return jax.random.fold_in(jax.random.key(seed), number)


@functools.lru_cache(maxsize=8)
def _param_shapes(model: ensemble.Encoder) -> Any:
  return jax.eval_shape(lambda: init_params(model, seed=0))


def draw(model: encoder.CoKE, key: jax.Array) -> Any:
  """Draws the initial parameters of an encoder from a key."""
  tokens = jnp.zeros((1, model.max_length), dtype=jnp.int32)
  return model.init(key, tokens, jnp.zeros(1, jnp.int32))['params']


_init = jax.jit(draw, static_argnums=0)


@functools.partial(jax.jit, static_argnums=0)
def _init_members(member: encoder.CoKE, keys: jax.Array) -> Any:
  return jax.vmap(functools.partial(draw, member))(keys)
