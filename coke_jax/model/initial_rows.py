"""Draws some rows of the initial entity embeddings.

`parameters.init_params` draws the whole table. JAX computes the random number
of each element from a key and the position of the element in the table. The
random number generator `_FROM_ROW` draws only some rows, but uses their
positions in the whole table. With JAX's default generator and settings, these
rows are equal to the rows of the whole table bit for bit. With another
generator or other settings, the rows have different numbers of the same
distribution.
"""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend import random as generators

from coke_jax.model import encoder, parameters, small_vocabulary

_MAX_WIDTH = 1 << 16


def init_shard(
  model: encoder.CoKE, key: jax.Array, start: jax.Array, count: int
) -> tuple[Any, jax.Array]:
  """Draws the initial parameters with the embeddings of some entities.

  Args:
    model: the encoder, with V entities.
    key: the result of `parameters.params_key`.
    start: int32 scalar, the first entity to draw.
    count: S, the number of entities to draw.

  Returns:
    The result of `parameters.init_params` without entities: `element_embedding`
    has the R + 2 rows of relations, MASK and PAD, and `entity_bias` is empty.
    The embeddings of the entities `start` to `start + S - 1`, float32 [S, D].
    A row is 0 if its entity id is V or more.
  """
  params = parameters.draw(small_vocabulary.small_model(model, 0), key)
  first_relation = jnp.int32(model.num_entities)
  params['element_embedding'] = _draw_elements(model, key, first_relation, 0)
  rows = _draw_elements(model, key, start, count)[:count]
  inside = start + jnp.arange(count) < model.num_entities
  return params, jnp.where(inside[:, None], rows, 0.0)


def _draw_elements(
  model: encoder.CoKE, key: jax.Array, start: jax.Array, num_entities: int
) -> jax.Array:
  """Draws num_entities + R + 2 rows of the whole table, from `start` on."""
  words = jnp.concatenate(
    [jax.random.key_data(key)[:2], start.astype(jnp.uint32)[None]]
  )
  small = small_vocabulary.small_model(model, num_entities)
  drawn = parameters.draw(
    small, jax.random.wrap_key_data(words, impl=_FROM_ROW)
  )
  elements: jax.Array = drawn['element_embedding']
  return elements


# The functions of the generator. A key has three words: the two words of a key
# of JAX's default generator (Threefry), and the number of the first row.


def _default_key(words: jax.Array) -> jax.Array:
  return jax.random.wrap_key_data(words[:2], impl='threefry2x32')


def _fold_in(words: jax.Array, number: Any) -> jax.Array:
  folded = jax.random.fold_in(_default_key(words), number)
  return jnp.concatenate([jax.random.key_data(folded), words[2:]])


def _split(words: jax.Array, shape: tuple[int, ...]) -> jax.Array:
  keys = jax.random.key_data(jax.random.split(_default_key(words), shape))
  row = jnp.broadcast_to(words[2:], (*keys.shape[:-1], 1))
  return jnp.concatenate([keys, row], axis=-1)


def _random_bits(
  words: jax.Array, bit_width: int, shape: tuple[int, ...]
) -> jax.Array:
  """Returns random bits. The key contains the number of the first row."""
  assert bit_width == 32
  if not math.prod(shape):
    return jnp.zeros(shape, jnp.uint32)
  width = shape[-1]
  assert width < _MAX_WIDTH
  rows = words[2] + jnp.arange(math.prod(shape[:-1]), dtype=jnp.uint32)
  # The position of a value is `row * width + column`, a number of 64 bits. Its
  # two halves are `high` and `low`.
  upper, lower = (
    half * np.uint32(width) for half in (rows >> 16, rows & 0xFFFF)
  )
  first = (upper << 16) + lower
  high = (upper >> 16) + (first < lower)
  column = jnp.arange(width, dtype=jnp.uint32)[None]
  low = first[:, None] + column
  high = high[:, None] + (low < column)
  one, other = generators.threefry2x32_p.bind(
    *(words[0], words[1]), high.reshape(-1), low.reshape(-1)
  )
  return (one ^ other).reshape(shape)


def _no_seed(_: Any) -> jax.Array:
  raise NotImplementedError('no seeds: expected a key of the default generator')


_FROM_ROW = generators.define_prng_impl(
  key_shape=(3,),
  seed=_no_seed,
  split=_split,
  random_bits=_random_bits,
  fold_in=_fold_in,
  name='from_row',
  tag='row',
)
