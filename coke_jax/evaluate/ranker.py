"""Ranks the gold answers of queries on all devices.

The modules `link_prediction` and `path_queries` choose the candidates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from coke_jax import parallel, progress_bar
from coke_jax.data import entity_sets
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import device_call, filters, rank_programs
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import ensemble
from coke_jax.shards import placement as placement_lib

# If `score_bytes` allows fewer than 64 rows of scores on a device,
# `rank_filtered` uses batches of 256 rows for each device and scores one chunk
# of the entities at a time. In smaller batches, reading all entity embeddings
# would take most of the time.
_MIN_ROWS = 64
_CHUNKED_ROWS = 256


class Ranker:
  """Ranks the gold answers of queries on all devices.

  The ranking functions are compiled at their first call. Rankers of equal
  models share the compiled functions.

  Attributes:
    batch_size: number of queries in a batch over all devices.
    chunk_size: number of entities that `rank_filtered` scores at a time. It is
      less than V only if `batch_size` is 0 and `score_bytes` allows fewer than
      64 rows of scores on a device. If the vocabulary is cut, the value is
      always V, although devices may score fewer entities at a time.
    placement: how the parameters are distributed over the devices.
  """

  def __init__(
    self,
    model: ensemble.Encoder,
    batch_size: int = 0,
    *,
    score_bytes: int = device_call.SCORE_BYTES,
    placement: placement_lib.Placement | None = None,
  ):
    """Prepares the ranking functions of a model.

    Args:
      model: the encoder.
      batch_size: number of queries in a batch over all devices. Default: 0,
        which means the maximum number that `score_bytes` allows, up to 1024 for
        each device.
      score_bytes: limit for the bytes of the scores on one device. If
        `batch_size` is not 0 and the vocabulary is not cut, the limit has no
        effect. Default: 64 MiB.
      placement: see the attribute `placement`. Default: every device has all
        parameters.

    Raises:
      parallel.DeviceError: the batch size is not a multiple of the number
        of devices.
    """
    self.batch_size = batch_size or device_call.batch_rows(
      model.num_entities, score_bytes
    )
    parallel.check_divides(self.batch_size, 'evaluate.batch_size: a batch')
    self.chunk_size = model.num_entities
    self._filtered_batch_size = self.batch_size
    devices = parallel.num_devices()
    if not batch_size and self.batch_size < _MIN_ROWS * devices:
      self.chunk_size = score_bytes // (4 * _CHUNKED_ROWS)
      self._filtered_batch_size = _CHUNKED_ROWS * devices
    self.placement = placement or placement_lib.make(model)
    if self.placement.is_cut:
      shard_bytes = 4 * self._filtered_batch_size * self.placement.shard_size
      chunks = -(-shard_bytes // score_bytes)
      self.chunk_size = model.num_entities  # The known answers are not divided.
      self._filtered = rank_programs.filtered(
        model, self.placement, -(-self.placement.shard_size // chunks)
      )
    else:
      self._filtered = rank_programs.filtered(
        model, self.placement, self.chunk_size
      )
    self._among = rank_programs.among(model, self.placement)

  def rank_filtered(
    self,
    params: Any,
    queries: queries_lib.Queries,
    known: entity_sets.EntitySets,
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """Ranks the answer of each query in the filtered setting.

    The candidates are all entities except the known answers of the query. The
    gold entity is always a candidate.

    Args:
      params: parameters on the devices, see `placement`.
      queries: N queries with exactly one answer each, the gold entity.
      known: the result of `Queries.known_answers`. The known answers may
        include the gold entity.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The ranks of the N gold entities.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
      ValueError: a query does not have exactly one answer.
    """
    size = self._filtered_batch_size
    filtered = filters.Filters(known, size, self.chunk_size)

    def start_batch(start: int) -> device_call.PendingResults:
      return self._filtered.start(
        params, _query_rows(queries, start, size), size, filtered.batch(start)
      )

    return _rank(start_batch, queries, size, progress)

  def rank_among(
    self,
    params: Any,
    queries: queries_lib.Queries,
    candidates_of: Callable[[np.ndarray], np.ndarray],
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """Ranks the answer of each query among the candidates of the query.

    Args:
      params: parameters on the devices, see `placement`.
      queries: N queries with exactly one answer each, the gold entity.
      candidates_of: a function of the indices int64 [B] of queries. It returns
        bool [B, V], the candidates of each query. The gold entity counts as a
        candidate even if its value is False.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The ranks of the N gold entities.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
      ValueError: a query does not have exactly one answer.
    """
    size = self.batch_size

    def start_batch(start: int) -> device_call.PendingResults:
      batch = _query_rows(queries, start, size)
      last = len(batch['gold']) - 1  # the row that padding repeats
      own = np.minimum(parallel.own_rows(size), last)
      distinct, place = np.unique(own, return_inverse=True)
      candidates = candidates_of(start + distinct)
      if len(distinct) < len(place):
        candidates = candidates[place]
      split = parallel.shard({'candidates': candidates})
      return self._among.start(params, batch, size, split)

    return _rank(start_batch, queries, size, progress)


def _rank(
  start_batch: Callable[[int], device_call.PendingResults],
  queries: queries_lib.Queries,
  size: int,
  progress: str,
) -> ranks_lib.Ranks:
  """Ranks the queries, batch by batch.

  `start_batch(start)` starts the computation of the batch whose first query has
  the index `start`.
  """
  if not (queries.num_answers == 1).all():
    raise ValueError('ranking: expected queries with one gold answer each')
  counts: list[device_call.Batch] = []
  pending = None
  bar = progress_bar.create(
    progress, total=len(queries), unit='query', leave=False
  )
  with bar:
    for start in range(0, len(queries), size):
      started = start_batch(start)
      if pending is not None:  # Fetch while the devices compute the next batch.
        counts.append(pending.fetch())
      pending = started
      bar.update(min(size, len(queries) - start))
    if pending is not None:
      counts.append(pending.fetch())
  better, equal, candidates = (
    np.concatenate([np.zeros(0, np.int64), *(count[name] for count in counts)])
    for name in ('better', 'equal', 'candidates')
  )
  return ranks_lib.Ranks(better, equal, candidates)


def _query_rows(
  queries: queries_lib.Queries, start: int, size: int
) -> device_call.Batch:
  """Returns `tokens`, `mask_position` and `gold` of at most `size` queries."""
  rows = slice(start, start + size)
  return {
    'tokens': queries.tokens[rows],
    'mask_position': queries.mask_position[rows],
    'gold': queries.indices[queries.indptr[:-1][rows]],
  }
