"""Compares padded and sharded calls with plain NumPy."""

import jax.numpy as jnp
import numpy as np
import pytest

from coke_jax import errors, parallel
from coke_jax.evaluate import device_call

DEVICES = parallel.num_devices()


def double(params, batch):
  """Returns each row times 2, and the row sums plus a parameter."""
  total = batch['x'].sum(axis=1) + params[0][0]
  return {'double': 2 * batch['x'], 'total': total}, jnp.isfinite(total)


def params():
  """Returns three arrays, because of the known issue of `map_devices`."""
  return parallel.replicate([np.ones(size, np.float32) for size in (1, 2, 3)])


@pytest.mark.parametrize('rows', [1, 3, 4 * DEVICES])
def test_padding_is_removed(rows):
  call = device_call.DeviceCall(double)
  x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
  results = call.start(params(), {'x': x}, 4 * DEVICES).fetch()
  assert set(results) == {'double', 'total'}
  np.testing.assert_array_equal(results['double'], 2 * x)
  np.testing.assert_array_equal(results['total'], x.sum(axis=1) + 1)


def test_several_calls_may_be_pending():
  call = device_call.DeviceCall(double)
  inputs = [np.full((2, 2), n, np.float32) for n in range(5)]
  started = [call.start(params(), {'x': x}, 2 * DEVICES) for x in inputs]
  for x, pending in zip(inputs, started, strict=True):
    np.testing.assert_array_equal(pending.fetch()['double'], 2 * x)


def test_arrays_for_each_device_are_not_sharded():
  def add(params, batch):
    total = batch['x'] + batch['offset'].sum() + params[0][0]
    return {'total': total}, jnp.isfinite(total)

  offset = np.ones((DEVICES, 3), np.float32)
  results = (
    device_call.DeviceCall(add)
    .start(
      params(), {'x': np.zeros(2, np.float32)}, 2 * DEVICES, {'offset': offset}
    )
    .fetch()
  )
  assert results['total'].tolist() == [4, 4]


@pytest.mark.parametrize('value', [np.nan, np.inf, -np.inf])
def test_rows_that_are_not_finite_are_counted_without_padding(value):
  x = np.zeros((3, 2), np.float32)
  x[2, 1] = value  # The last row is repeated as padding.
  pending = device_call.DeviceCall(double).start(
    params(), {'x': x}, 8 * DEVICES
  )
  with pytest.raises(
    errors.NonFiniteError, match=r'1 of 3 queries .*not finite'
  ):
    pending.fetch()


def test_a_size_that_the_devices_cannot_share():
  if DEVICES == 1:
    pytest.skip('one device takes every size')
  x = np.zeros((1, 2), np.float32)
  with pytest.raises(parallel.DeviceError, match='multiple of'):
    device_call.DeviceCall(double).start(params(), {'x': x}, DEVICES + 1)
