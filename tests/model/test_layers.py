"""Tests the statistics of dropout and of its hash function."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from coke_jax.model import layers


def dropped(rate, shape, seed=0, *, train=True):
  """Applies dropout to an array of ones."""
  return np.asarray(
    layers.Dropout(rate).apply(
      {}, jnp.ones(shape), train=train, rngs={'dropout': jax.random.key(seed)}
    )
  )


@pytest.mark.parametrize('rate', [0.1, 0.5, 0.9])
def test_dropout_rate_and_scale(rate):
  values = dropped(rate, (200, 5, 100))
  zeros = (values == 0).mean()
  assert abs(zeros - rate) < 5 * (rate * (1 - rate) / values.size) ** 0.5
  np.testing.assert_allclose(values[values != 0], 1 / (1 - rate), rtol=2e-4)
  # Values that are 50 columns or one row apart are independent.
  kept = values != 0
  for other in (np.roll(kept, 50, axis=-1), np.roll(kept, 1, axis=0)):
    both = (kept & other).mean()
    assert abs(both - (1 - rate) ** 2) < 0.01


@pytest.mark.parametrize('rate', [0.1, 0.5])
def test_dropout_is_independent_over_places_and_keys(rate):
  """Means differ from their expectation by less than five standard errors."""
  steps, rows, width = 40, 64, 256
  keys = jax.random.split(jax.random.key(3), steps)
  threshold = np.uint32(round(rate * 2**32))
  dropped = np.stack(
    [layers.hash_bits(key, (rows, width)) < threshold for key in keys]
  )
  # The axes are keys, rows and columns.
  for axis, size in enumerate(dropped.shape):
    others = tuple(other for other in range(3) if other != axis)
    draws = dropped.size // size
    share = dropped.mean(axis=others)
    deviations = (share - rate) / (rate * (1 - rate) / draws) ** 0.5
    assert np.abs(deviations).max() < 5
    assert 0.5 < (deviations**2).mean() < 1.6
  deviation = rate * (1 - rate)
  centred = dropped - rate
  for axis in range(3):
    for distance in (1, 2, 3, 8, 32):
      product = centred * np.roll(centred, distance, axis=axis)
      assert abs(product.mean()) < 5 * deviation / dropped.size**0.5


def test_every_bit_of_the_key_flips_half_of_the_hashed_bits():
  size = 2**16
  bits = np.asarray(layers.hash_bits(jax.random.key(7), (size,)))
  chance = 5 * (0.25 / size) ** 0.5
  for place in range(32):
    assert abs(((bits >> place) & 1).mean() - 0.5) < chance
  words = np.asarray(jax.random.key_data(jax.random.key(7)))
  for word in range(2):
    for place in (0, 1, 15, 31):
      changed = words.copy()
      changed[word] ^= np.uint32(1 << place)
      other = layers.hash_bits(jax.random.wrap_key_data(changed), (size,))
      flipped = bits ^ np.asarray(other)
      for each in range(32):
        assert abs(((flipped >> each) & 1).mean() - 0.5) < 2 * chance


@pytest.mark.parametrize('shape', [(7,), (3, 1), (4, 3, 3, 5)])
def test_dropout_of_odd_widths(shape):
  values = np.stack([dropped(0.5, shape, seed) for seed in range(60)])
  assert values.shape[1:] == shape
  assert set(np.unique(values)) == {0, 2}
  assert (values == 0).any(axis=0).all()
  assert (values != 0).any(axis=0).all()


def test_dropout_depends_on_the_key_alone():
  assert (dropped(0.5, (4, 64)) == dropped(0.5, (4, 64))).all()
  assert (dropped(0.5, (4, 64)) != dropped(0.5, (4, 64), seed=1)).any()


def test_no_dropout_without_training_or_rate():
  assert (dropped(0.5, (4, 64), train=False) == 1).all()
  assert (dropped(0.0, (4, 64)) == 1).all()
