"""Runs a function of a batch of queries on all devices.

`DeviceCall` pads a batch to a fixed size, shards it, runs a compiled function
on every device, fetches the results, removes the padding and checks that all
scores are finite. Ranking (`ranker`) runs many batches of one size through it,
prediction (`predict.scorer`) batches of a few sizes.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from coke_jax import errors, parallel

# Limits the [B, V] float32 scores of one device to 64 MiB, see `batch_rows`.
SCORE_BYTES = 64 * 2**20
_MAX_ROWS = 1024
_NOT_FINITE = 'not_finite'

Batch = dict[str, np.ndarray]
DeviceBatch = dict[str, jax.Array]
Function = Callable[[Any, DeviceBatch], tuple[DeviceBatch, jax.Array]]


@dataclasses.dataclass(frozen=True, eq=False)
class PendingResults:
  """Results of one batch that may still be computing.

  Attributes:
    on_devices: arrays [devices, padded rows / devices, ...].
    rows: B, the number of rows without padding.
  """

  on_devices: DeviceBatch
  rows: int

  def fetch(self) -> Batch:
    """Waits for the results and copies them to the host.

    Returns:
      The arrays of the function, each [B, ...].

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

  Compilation takes place at the first call for each padded size. Products are
  computed with the highest precision of the device.
  """

  def __init__(self, function: Function):
    """Prepares the function; nothing is compiled yet.

    Args:
      function: takes the parameters and one device's share of a batch, arrays
        [b, ...] by name. Returns result arrays [b, ...] by name, and bool [b]:
        whether all scores of a row are finite.
    """

    def on_device(
      params: Any, batch: DeviceBatch, _: None
    ) -> tuple[tuple[()], DeviceBatch]:
      results, finite = function(params, batch)
      return (), {**results, _NOT_FINITE: ~finite}

    self._mapped = parallel.map_devices(on_device)

  def start(
    self,
    params: Any,
    batch: Batch,
    size: int,
    per_device: Batch | None = None,
  ) -> PendingResults:
    """Starts the computation of one batch and returns without waiting for it.

    Args:
      params: replicated parameters, see `parallel.replicate`.
      batch: arrays [B, ...] by name, B >= 1. The last row is repeated as
        padding.
      size: rows of the padded batch over all devices, at least B.
      per_device: further arrays [devices, ...], whose rows are not queries.

    Returns:
      The results, to be fetched later.

    Raises:
      parallel.DeviceError: the size is not a multiple of the number of
        devices.
    """
    rows = len(next(iter(batch.values())))
    padded = {name: _pad(array, size) for name, array in batch.items()}
    arrays = {**parallel.shard(padded), **(per_device or {})}
    with jax.default_matmul_precision('highest'):
      _, results = self._mapped(params, arrays, None)
    return PendingResults(results, rows)


def batch_rows(num_entities: int, score_bytes: int = SCORE_BYTES) -> int:
  """Returns how many queries to score at a time over all devices.

  Args:
    num_entities: V.
    score_bytes: limit for the float32 scores [B, V] of one device.

  Returns:
    The number of devices times 1 to 1024 rows, as many as fit in the limit.
  """
  rows = score_bytes // (4 * num_entities)
  return max(1, min(rows, _MAX_ROWS)) * parallel.num_devices()


def _pad(array: np.ndarray, size: int) -> np.ndarray:
  """Repeats the last row of [B, ...] so that the result is [size, ...]."""
  missing = size - len(array)
  if not missing:
    return array
  return np.concatenate([array, np.repeat(array[-1:], missing, axis=0)])
