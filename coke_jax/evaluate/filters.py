"""Known answers of batches of queries, as arrays for the devices.

Many queries can have the same known answers, for example all queries for the
heads of (?, type, city). A set of known answers is called a filter. Each filter
is sent to a device only once per batch, and each query refers to its filter by
number. If the entities are scored in chunks, the known answers are divided into
the same chunks.
"""

import numpy as np

from coke_jax import parallel
from coke_jax.data import entity_sets, grouping
from coke_jax.evaluate import device_call


class Filters:
  """The known answers of N queries, batch by batch.

  All batches have arrays of the same shape.
  """

  def __init__(
    self, known: entity_sets.EntitySets, batch_size: int, chunk_size: int
  ):
    """Finds the size of the arrays.

    Args:
      known: the known answers of each query.
      batch_size: number of queries in a batch, over all devices.
      chunk_size: number of entities that are scored at a time.
    """
    self._known = known
    self._batch_size = batch_size
    self._piece = batch_size // parallel.num_devices()
    self._chunk_size = chunk_size
    self._num_chunks = -(-known.num_entities // chunk_size)
    self._sizes = np.diff(known.indptr)
    most = 1
    for start in range(0, len(known), self._piece):
      if self._num_chunks == 1:
        sets = np.unique(known.set_of[start : start + self._piece])
        most = max(most, int(self._sizes[sets].sum()))
      else:
        chunks = self._pairs(start)[2] // chunk_size
        most = max(most, int(np.bincount(chunks).max(initial=1)))
    # A power of two, so that programs are compiled for only a few sizes.
    self._capacity = 1 << (most - 1).bit_length()

  def batch(self, start: int) -> device_call.Batch:
    """Returns the arrays of one batch.

    Args:
      start: the index of the first query.

    Returns:
      A dictionary of arrays for the devices of this process. b is the number of
      queries on a device. F is large enough for the known answers in each chunk
      on each device.
        `filter_of`: int32 [devices, b], the filter of each query.
        `filter_row`: int32 [devices, chunks, F], the filter that each known
          answer belongs to. The value b is padding.
        `filter_entity`: int32 [devices, chunks, F], the known answers in each
          chunk of entities.
    """
    devices = parallel.own_devices()
    shape = (len(devices), self._num_chunks, self._capacity)
    filter_of = np.zeros((len(devices), self._piece), dtype=np.int32)
    filter_row = np.full(shape, self._piece, dtype=np.int32)
    filter_entity = np.zeros(shape, dtype=np.int32)
    for device, position in enumerate(devices):
      place, row, entity = self._pairs(start + int(position) * self._piece)
      filter_of[device, : len(place)] = place
      chunk = entity // self._chunk_size
      counts = np.bincount(chunk, minlength=self._num_chunks)
      if self._num_chunks > 1:
        order = np.argsort(chunk, kind='stable')
        row, entity, chunk = row[order], entity[order], chunk[order]
      column = grouping.ranges(np.zeros_like(counts), counts)
      filter_row[device, chunk, column] = row
      filter_entity[device, chunk, column] = entity
    return {
      'filter_of': filter_of,
      'filter_row': filter_row,
      'filter_entity': filter_entity,
    }

  def _pairs(self, start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the filters of one device's queries.

    Args:
      start: the index of the first query. It can be N or more.

    Returns:
      int64 [queries], the number of the filter of each query.
      int64 [F] and int32 [F], the filter and entity of each known answer.
    """
    known = self._known
    sets, place = np.unique(
      known.set_of[start : start + self._piece], return_inverse=True
    )
    counts = self._sizes[sets]
    row = np.repeat(np.arange(len(sets)), counts)
    places = grouping.ranges(known.indptr[sets], counts)
    return place, row, known.indices[places]
