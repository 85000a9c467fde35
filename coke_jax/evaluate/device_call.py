"""Runs a function of a batch of queries on the devices of all hosts.

`DeviceCall` pads a batch to a fixed size, shards it and runs a compiled
function on every device. `PendingResults` fetches the results, removes the
padding and checks that all scores are finite. Ranking (`ranker`) uses many
batches of one size. Prediction (`predict.scorer`) uses batches of a few sizes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from coke_jax import errors, hosts, parallel

# Limit for the size of the float32 scores of one device, 64 MiB.
SCORE_BYTES = 64 * 2**20
_MAX_ROWS = 1024
_NOT_FINITE = 'not_finite'

Batch = dict[str, np.ndarray]
DeviceBatch = dict[str, jax.Array]
Function = Callable[[Any, DeviceBatch], tuple[DeviceBatch, jax.Array]]


@dataclasses.dataclass(frozen=True, eq=False)
class PendingResults:
  """Results of one batch that the devices may still be computing.

  Attributes:
    on_devices: arrays [devices, padded rows / devices, ...] by name. All
      processes have the results of all devices.
    rows: B, the number of rows without padding.
  """

  on_devices: DeviceBatch
  rows: int

  def fetch(self) -> Batch:
    """Waits for the results and copies them to the host.

    Returns:
      The result arrays [B, ...] by name.

    Raises:
      errors.NonFiniteError: a score or hidden state is NaN or infinite.
    """
    fetched = {
      name: array.reshape(-1, *array.shape[2:])[: self.rows]
      for name, array in jax.device_get(self.on_devices).items()
    }
    not_finite = int(fetched.pop(_NOT_FINITE).sum())
    if not_finite:
      raise errors.NonFiniteError(
        f'{not_finite} of {self.rows} queries have scores or hidden states '
        'that are not finite: expected parameters without NaN or infinity'
      )
    return fetched


class DeviceCall:
  """A function of parameters and queries, compiled for all devices.

  The function is compiled at the first call with each padded size. Products are
  computed with the highest precision of the device.
  """

  def __init__(self, function: Function, params_axes: Any = None):
    """Prepares the function without compiling it.

    Args:
      function: a function of the parameters and of one device's part of a
        batch, arrays [b, ...] by name. It returns the result arrays [b, ...] by
        name, and bool [b], whether all scores of a row are finite.
      params_axes: the axes of the parameters, see `placement.Placement.axes`.
        Default: every device has a copy of the parameters.
    """

    def on_device(
      params: Any, batch: DeviceBatch, _: None
    ) -> tuple[tuple[()], DeviceBatch]:
      results, finite = function(params, batch)
      return (), {**results, _NOT_FINITE: ~finite}

    def on_hosts(
      params: Any, batch: DeviceBatch, _: None
    ) -> tuple[DeviceBatch, tuple[()]]:
      nothing, results = on_device(params, batch, None)
      return parallel.gather_over_devices(results), nothing

    self._several = hosts.num_processes() > 1
    chosen: Any = on_hosts if self._several else on_device
    self._mapped = parallel.map_devices(chosen, state_axes=params_axes)

  def start(
    self,
    params: Any,
    batch: Batch,
    size: int,
    per_device: Batch | None = None,
  ) -> PendingResults:
    """Starts the computation of one batch and returns without waiting for it.

    Args:
      params: parameters on the devices, see `placement.Placement.place`.
      batch: arrays [B, ...] by name, B >= 1. The padding rows are copies of the
        last row.
      size: number of rows of the padded batch over all devices, at least B.
      per_device: additional arrays [devices of this process, ...] by name,
        which need not have one row for each query. Default: none.

    Returns:
      The results. Call `fetch` to wait for them.

    Raises:
      parallel.DeviceError: the size is not a multiple of the number of
        devices.
    """
    rows = len(next(iter(batch.values())))
    padded = {name: _pad(array, size) for name, array in batch.items()}
    if self._several:
      parallel.check_divides(size, 'a batch')
      own = parallel.own_rows(size)
      padded = {name: array[own] for name, array in padded.items()}
    arrays = {**parallel.shard(padded), **(per_device or {})}
    with jax.default_matmul_precision('highest'):
      replicated, split = self._mapped(params, arrays, None)
    return PendingResults(replicated if self._several else split, rows)


def batch_rows(num_entities: int, score_bytes: int = SCORE_BYTES) -> int:
  """Returns the number of queries in a batch over all devices.

  Args:
    num_entities: V, the number of entities.
    score_bytes: limit for the bytes of the float32 scores of one device.

  Returns:
    The number of devices times the number of queries on one device. One device
    gets as many queries as fit in `score_bytes`, but at least 1 and at most
    1024.
  """
  rows = score_bytes // (4 * num_entities)
  return max(1, min(rows, _MAX_ROWS)) * parallel.num_devices()


def _pad(array: np.ndarray, size: int) -> np.ndarray:
  """Repeats the last row of an array [B, ...] up to the shape [size, ...]."""
  missing = size - len(array)
  if not missing:
    return array
  return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)])
