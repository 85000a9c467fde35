"""Several devices: the only place that says pmap or mesh.

The state keeps its natural shapes and is replicated; a batch is cut along its
first axis, one piece a device. Functions that run on the devices see one piece
and meet the others by `sum_over_devices`.
"""

import pathlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_collections
import numpy as np

from coke_jax import errors

_AXIS = 'devices'


class DeviceError(errors.CokeError, ValueError):
  """Something that the devices at hand cannot do."""


def num_devices() -> int:
  """Devices that a batch is spread over."""
  return jax.local_device_count()


def describe_devices() -> str:
  """The devices in words, such as `1 x cpu` or `4 x NVIDIA H100`."""
  return f'{num_devices()} x {jax.local_devices()[0].device_kind}'


def map_devices(
  function: Callable[..., Any], *, donate_state: bool = False
) -> Callable[..., Any]:
  """Compiles function(state, batch, extra) to run on every device at once.

  Args:
    function: `state` and `extra` are the same on all devices, `batch` is each
      device's piece. What it returns must be (replicated, per_device): the
      first the same on all devices, made so by `sum_over_devices`; the second
      gets a leading axis of devices. (If `state` is one array alone and `extra`
      is None, jax 0.10.2 cuts the wrong array; a model has many.)
    donate_state: reuse the memory of `state` for what comes back.

  Returns:
    A function of a replicated state, a batch from `shard`, and extra.
  """
  return jax.pmap(
    function,
    axis_name=_AXIS,
    in_axes=(None, 0, None),
    out_axes=(None, 0),
    donate_argnums=(0,) if donate_state else (),
  )


def sum_over_devices(tree: Any) -> Any:
  """The sum of each leaf over all devices; inside `map_devices` only."""
  return jax.lax.psum(tree, _AXIS)


def device_index() -> jax.Array:
  """The number of this device; inside `map_devices` only."""
  return jax.lax.axis_index(_AXIS)


def replicate(tree: Any) -> Any:
  """Places a tree on every device, whole, with its natural shapes."""
  mesh = jax.sharding.Mesh(np.array(jax.local_devices()), (_AXIS,))
  whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
  # A copy, because a buffer that is donated later must be nobody else's.
  return jax.device_put(jax.tree.map(jnp.array, tree), whole)


def shard(batch: dict[str, np.ndarray], axis: int = 0) -> dict[str, np.ndarray]:
  """Cuts arrays [..., B, ...] into [devices, ..., B / devices, ...].

  Args:
    batch: arrays with B rows each.
    axis: where their rows are.

  Raises:
    DeviceError: B does not divide by the number of devices.
  """
  check_divides(next(iter(batch.values())).shape[axis], 'a batch')
  return {
    name: np.stack(np.split(array, num_devices(), axis))
    if num_devices() > 1
    else array[None]
    for name, array in batch.items()
  }


def check_divides(batch_size: int, what: str) -> None:
  """Raises DeviceError unless the devices can share a batch evenly."""
  count = num_devices()
  if batch_size % count:
    smaller = batch_size - batch_size % count
    near = [n for n in (smaller, smaller + count) if n]
    raise DeviceError(
      f'{what} has {batch_size} rows, which {count} devices cannot share '
      f'evenly: expected a multiple of {count}, such as '
      f'{" or ".join(map(str, near))}'
    )


def prepare_jax(config: ml_collections.ConfigDict) -> None:
  """Turns on the persistent compilation cache that a config names."""
  if config.compilation_cache_dir:
    folder = pathlib.Path(config.compilation_cache_dir).expanduser()
    jax.config.update('jax_compilation_cache_dir', str(folder))
