"""Runs functions on the devices of all hosts.

`map_devices` compiles a function of a state and a batch. On every device, the
function receives the state and its own piece of the batch. The function can sum
results with `sum_over_devices`. Only this module uses pmap and meshes. If there
are several processes (see `hosts`), all of them must call the functions of this
module in the same order. Each process passes only its rows of a batch.
"""

import functools
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils

from coke_jax import errors, hosts

_AXIS = 'devices'
# `broadcast` sends this many bytes at a time, so that they fit on any device.
_MESSAGE_BYTES = 64 << 20


class DeviceError(errors.CokeError, ValueError):
  """A batch that the devices cannot share evenly."""


class ForkError(errors.CokeError, RuntimeError):
  """A process was forked from a process that uses the devices."""


class _Process:
  """Whether this process uses devices, and whether its parent process did."""

  uses_devices = False
  is_forked = False


def _after_fork() -> None:
  _Process.is_forked = _Process.uses_devices


os.register_at_fork(after_in_child=_after_fork)


def check_process() -> None:
  """Checks that this process can use the devices, and records the use.

  Raises:
    ForkError: the process was forked from a process that uses the devices. JAX
      would wait forever for threads that a fork does not copy.
  """
  if _Process.is_forked:
    raise ForkError(
      f'process {os.getpid()} was forked from a process that uses JAX: '
      'expected a new process, for example from '
      "multiprocessing.get_context('spawn')"
    )
  _Process.uses_devices = True


def num_devices() -> int:
  """Returns the number of devices of all processes together."""
  check_process()
  return jax.device_count()


def own_devices() -> np.ndarray:
  """Returns int64 [n], the indices of the n devices of this process."""
  check_process()
  return np.flatnonzero(
    [device.process_index == jax.process_index() for device in jax.devices()]
  )


def own_rows(rows: int) -> np.ndarray:
  """Returns the rows of a batch that the devices of this process receive.

  Takes the number of rows over all devices, a multiple of `num_devices`.
  Returns int64 [rows of this process], in the order of the devices.
  """
  piece = rows // num_devices()
  return (own_devices()[:, None] * piece + np.arange(piece)[None]).reshape(-1)


def describe_devices() -> str:
  """Describes the devices, such as `1 x cpu` or `4 x NVIDIA H100`."""
  kind = jax.local_devices()[0].device_kind
  processes = hosts.num_processes()
  several = f' in {processes} processes' if processes > 1 else ''
  return f'{num_devices()} x {kind}{several}'


def map_devices(
  function: Callable[..., Any],
  *,
  donate_state: bool = False,
  state_axes: Any = None,
  result_axes: Any = None,
) -> Callable[..., Any]:
  """Compiles function(state, batch, extra) to run on all devices.

  Args:
    function: takes `state`, the piece of the batch for this device, and
      `extra`. Returns a pair (replicated, per_device). A leaf of `replicated`
      must be equal on all devices, unless it has 0 in `result_axes`.
      `per_device` gets a leading axis of devices. Known issue (jax 0.10.2): if
      `state` is one array and `extra` is None, pmap misapplies `in_axes`.
    donate_state: whether to reuse the memory of `state` for the result.
    state_axes: a tree like `state`, with 0 for leaves from `place_rows` and
      None for all other leaves. Default: None for all leaves.
    result_axes: a tree like `replicated`, with 0 or None as in `state_axes`.

  Returns:
    A function of a state on the devices, a batch from `shard`, and `extra`.
  """
  compile_ = functools.partial(
    jax.pmap,
    axis_name=_AXIS,
    in_axes=(state_axes, 0, None),
    donate_argnums=(0,) if donate_state else (),
  )
  if result_axes is None:
    return compile_(function, out_axes=(None, 0))
  # If there are several processes, pmap needs axes that can be hashed.
  axes, structure = jax.tree.flatten(result_axes, is_leaf=lambda x: x is None)

  def flat(state: Any, batch: Any, extra: Any) -> Any:
    replicated, per_device = function(state, batch, extra)
    return tuple(jax.tree.leaves(replicated)), per_device

  mapped = compile_(flat, out_axes=(tuple(axes), 0))

  def call(state: Any, batch: Any, extra: Any) -> Any:
    leaves, per_device = mapped(state, batch, extra)
    return jax.tree.unflatten(structure, leaves), per_device

  return call


def sum_over_devices(tree: Any) -> Any:
  """Sums each leaf over all devices. Works only inside `map_devices`."""
  if jax.lax.axis_size(_AXIS) == 1:
    return tree  # On a CPU, XLA would copy each leaf for a sum.
  return jax.lax.psum(tree, _AXIS)


def gather_over_devices(tree: Any) -> Any:
  """Stacks each leaf over all devices. Works only inside `map_devices`."""
  return jax.lax.all_gather(tree, _AXIS)


def exchange_over_devices(x: jax.Array) -> jax.Array:
  """Sends row i of an array to device i. Works only inside `map_devices`.

  Args:
    x: [devices, ...], of the same shape on all devices.

  Returns:
    [devices, ...]. Row i is the row that device i sent to this device.
  """
  return jax.lax.all_to_all(x, _AXIS, 0, 0)


def device_index() -> jax.Array:
  """Returns the index of this device. Works only inside `map_devices`."""
  return jax.lax.axis_index(_AXIS)


def replicate(tree: Any) -> Any:
  """Copies a tree to every device, with unchanged shapes.

  If there are several processes, the tree must be equal in all of them.
  """
  whole = _sharding()
  if hosts.num_processes() > 1:
    return jax.tree.map(
      lambda leaf: jax.make_array_from_process_local_data(
        whole, np.asarray(leaf), leaf.shape
      ),
      tree,
    )
  # Copy first, because the buffers may be donated later.
  return jax.device_put(jax.tree.map(jnp.array, tree), whole)


def place_rows(
  shape: tuple[int, ...], row: Callable[[int], np.ndarray]
) -> jax.Array:
  """Places row i of an array on device i.

  Args:
    shape: [devices, ...], the shape of the array.
    row: returns row i, [...]. It is called for the devices of this process.
  """

  def piece(index: Any) -> np.ndarray:
    return row(index[0].start or 0)[None]

  return jax.make_array_from_callback(shape, _sharding(_AXIS), piece)


def _sharding(*axes: str) -> jax.sharding.NamedSharding:
  check_process()
  mesh = jax.sharding.Mesh(np.array(jax.devices()), (_AXIS,))
  return jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))


def fetch_rows(array: jax.Array) -> np.ndarray:
  """Copies an array [devices, ...] from the devices to each host."""
  if hosts.num_processes() > 1:
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))
  return np.asarray(array)


def broadcast(tree: Any) -> Any:
  """Copies the arrays of process 0 to all processes, as NumPy arrays.

  Args:
    tree: a tree of arrays, with the same shapes and dtypes in all processes.
  """
  if hosts.num_processes() == 1:
    return tree

  def copy(leaf: Any) -> np.ndarray:
    # JAX sums the arrays, with zeros in all processes except process 0. A sum
    # of floats would change -0.0 to 0.0. Bytes do not change.
    sent = np.ascontiguousarray(leaf).reshape(-1).view(np.uint8)
    received = np.empty_like(sent)
    for start in range(0, sent.size, _MESSAGE_BYTES):
      part = slice(start, start + _MESSAGE_BYTES)
      received[part] = multihost_utils.broadcast_one_to_all(sent[part])
    return received.view(leaf.dtype).reshape(leaf.shape)

  return jax.tree.map(copy, tree)


@functools.cache
def _maximum() -> Any:
  return jax.pmap(lambda values: jax.lax.pmax(values, _AXIS), axis_name=_AXIS)


def start_maximum(values: np.ndarray) -> jax.Array:
  """Starts to compute the maximum of each value over all processes.

  Takes int32 [n]. Returns int32 [devices of this process, n], with equal rows.
  """
  copies = np.repeat(values[None], jax.local_device_count(), axis=0)
  result: jax.Array = _maximum()(copies)
  return result


def shard(batch: dict[str, np.ndarray], axis: int = 0) -> dict[str, np.ndarray]:
  """Splits arrays [..., B, ...] into [devices, ..., B / devices, ...].

  `devices` is the number of devices of this process.

  Args:
    batch: arrays with B rows each, the rows of this process, see `own_rows`. An
      array with a single row is copied to every device, unless all arrays have
      a single row.
    axis: the axis of the rows.

  Raises:
    DeviceError: B is not a multiple of the number of devices.
  """
  rows = max(array.shape[axis] for array in batch.values())
  count = len(own_devices())
  check_divides(rows * (num_devices() // count), 'a batch')
  return {
    name: np.stack(np.split(array, count, axis))
    if array.shape[axis] == rows
    else np.stack([array] * count)
    for name, array in batch.items()
  }


def check_divides(batch_size: int, what: str) -> None:
  """Checks that the devices can share a batch evenly.

  Args:
    batch_size: number of rows over all devices.
    what: name of the batch in the error message.

  Raises:
    DeviceError: `batch_size` is not a multiple of the number of devices.
  """
  count = num_devices()
  if batch_size % count:
    smaller = batch_size - batch_size % count
    near = [n for n in (smaller, smaller + count) if n]
    raise DeviceError(
      f'{what} has {batch_size} rows, which {count} devices cannot share '
      f'evenly: expected a multiple of {count}, such as '
      f'{" or ".join(map(str, near))}'
    )
