"""Ranks on all devices: batches of queries in, places of gold entities out.

What is ranked against what is up to the protocols: see `link_prediction` and
`path_queries`.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tqdm

from coke_jax import errors, parallel
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import counting
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import encoder

_SCORE_BYTES = 64 * 2**20  # of one device's [B, V] scores, see `batch_rows`
_MOST_ROWS = 1024
# With fewer rows at a time than this, each reading of the embeddings would do
# too little: then scores come in chunks of the vocabulary, for so many rows.
_FEWEST_ROWS = 64
_ROWS_OF_CHUNKS = 256

Batch = dict[str, np.ndarray]


class Ranker:
  """Ranks the gold answers of queries on all devices, compiled once.

  Attributes:
    batch_size: queries at a time over all devices.
  """

  def __init__(self, model: encoder.CoKE, batch_size: int = 0):
    """Prepares the ranking of a model's scores.

    Args:
      model: the encoder.
      batch_size: queries at a time over all devices; 0: see `batch_rows`.
    """
    self._model = model
    self.batch_size = batch_size or batch_rows(model.num_entities)
    parallel.check_divides(self.batch_size, 'evaluate.batch_size: a batch')
    # Entities at a time when ranks are filtered, and queries.
    self._chunk, self._filtered_size = model.num_entities, self.batch_size
    devices = parallel.num_devices()
    if not batch_size and self.batch_size < _FEWEST_ROWS * devices:
      self._chunk = _SCORE_BYTES // (4 * _ROWS_OF_CHUNKS)
      self._filtered_size = _ROWS_OF_CHUNKS * devices
    self._filtered = parallel.map_devices(
      self._on_device(counting.count_filtered, 'filter_row', 'filter_entity')
      if self._chunk >= model.num_entities
      else self._count_by_chunks
    )
    self._among = parallel.map_devices(
      self._on_device(counting.count_among, 'competing')
    )

  def filtered(
    self,
    params: Any,
    queries: queries_lib.Queries,
    known: tuple[np.ndarray, np.ndarray],
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """Ranks the answer of each query among the entities not known to fit.

    Args:
      params: replicated parameters, see `parallel.replicate`.
      queries: N queries with exactly one answer each: the gold entity.
      known: indptr [N + 1] and indices: the entities known to fit each query;
        the gold one may be among them and is ranked all the same.
      progress: what a progress bar says; empty: none.

    Returns:
      The ranks of N gold entities.

    Raises:
      errors.NonFiniteError: a score is not a finite number.
    """
    size = self._filtered_size
    capacity = _filter_capacity(known[0], size)
    devices = parallel.num_devices()
    piece = size // devices
    indptr, indices = known

    def pairs(start: int) -> Batch:  # two arrays [devices, capacity]
      filter_row = np.full((devices, capacity), piece, dtype=np.int32)
      filter_entity = np.zeros((devices, capacity), dtype=np.int32)
      for device in range(devices):
        first = min(start + device * piece, len(queries))
        last = min(first + piece, len(queries))
        counts = np.diff(indptr[first : last + 1])
        total = int(counts.sum())
        filter_row[device, :total] = np.repeat(np.arange(last - first), counts)
        filter_entity[device, :total] = indices[indptr[first] : indptr[last]]
      return {'filter_row': filter_row, 'filter_entity': filter_entity}

    return self._rank(self._filtered, pairs, params, queries, size, progress)

  def among(
    self,
    params: Any,
    queries: queries_lib.Queries,
    competing: Callable[[np.ndarray], np.ndarray],
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """Ranks the answer of each query among entities given query by query.

    Args:
      params: replicated parameters, see `parallel.replicate`.
      queries: N queries with exactly one answer each: the gold entity.
      competing: gives bool [B, V] for the queries at integers [B].
      progress: what a progress bar says; empty: none.

    Returns:
      The ranks of N gold entities.

    Raises:
      errors.NonFiniteError: a score is not a finite number.
    """

    def mask(start: int) -> Batch:
      rows = _rows(queries, start, self.batch_size)
      return parallel.shard({'competing': competing(rows)})

    return self._rank(
      self._among, mask, params, queries, self.batch_size, progress
    )

  def _rank(
    self,
    on_devices: Callable[..., Any],
    competitors: Callable[[int], Batch],
    params: Any,
    queries: queries_lib.Queries,
    size: int,
    progress: str,
  ) -> ranks_lib.Ranks:
    if not (queries.num_answers == 1).all():
      raise ValueError('ranking: expected queries with one gold answer each')
    total = len(queries)
    counts: list[dict[str, np.ndarray]] = []
    pending = None
    bar = tqdm.tqdm(
      total=total,
      desc=progress,
      unit='query',
      disable=not progress,
      leave=False,
    )
    with bar, jax.default_matmul_precision('highest'):
      for start in range(0, total, size):
        batch = {**_ask(queries, start, size), **competitors(start)}
        running = on_devices(params, batch, None)
        if pending is not None:  # fetched while the next batch is computed
          counts.append(_fetch(pending, size))
        pending = running
        bar.update(min(size, total - start))
      if pending is not None:
        counts.append(_fetch(pending, size))
    better, equal, competitors_of = (
      np.concatenate(
        [np.zeros(0, np.int64), *(count[name] for count in counts)]
      )
      for name in ('better', 'equal', 'competitors')
    )
    return ranks_lib.Ranks(
      better[:total], equal[:total], competitors_of[:total] + 1
    )

  def _on_device(
    self, count: Callable[..., counting.Counts], *competitors: str
  ) -> Callable[..., tuple[jax.Array, counting.Counts]]:
    """What each device does with its piece of a batch."""

    def rank_piece(
      params: Any, batch: dict[str, jax.Array], _: None
    ) -> tuple[jax.Array, counting.Counts]:
      scores: Any = self._model.apply(
        {'params': params}, batch['tokens'], batch['mask_position']
      )
      counts = count(
        scores, batch['gold'], *(batch[name] for name in competitors)
      )
      unusable = (~counts.pop('finite')).sum()
      return parallel.sum_over_devices(unusable), counts

    return rank_piece

  def _count_by_chunks(
    self, params: Any, batch: dict[str, jax.Array], _: None
  ) -> tuple[jax.Array, counting.Counts]:
    """What each device does when the vocabulary comes in chunks."""
    apply = functools.partial(self._model.apply, {'params': params})
    state: Any = apply(
      batch['tokens'], batch['mask_position'], method='question_state'
    )

    def scores_of(start: jax.Array) -> jax.Array:  # [B, C]
      scores: Any = apply(state, start, self._chunk, method='entity_logits')
      return scores

    counts = counting.count_filtered_by_chunks(
      scores_of,
      self._chunk,
      self._model.num_entities,
      batch['gold'],
      batch['filter_row'],
      batch['filter_entity'],
    )
    unusable = (~counts.pop('finite')).sum()
    return parallel.sum_over_devices(unusable), counts


def _rows(queries: queries_lib.Queries, start: int, size: int) -> np.ndarray:
  """The rows of a batch: the last query again and again if it is short."""
  return np.minimum(np.arange(start, start + size), len(queries) - 1)


def _ask(queries: queries_lib.Queries, start: int, size: int) -> Batch:
  """Tokens [n, B/n, K], mask_position and gold [n, B/n] for n devices."""
  rows = _rows(queries, start, size)
  return parallel.shard(
    {
      'tokens': queries.tokens[rows],
      'mask_position': queries.mask_position[rows],
      'gold': queries.indices[queries.indptr[rows]],
    }
  )


def _filter_capacity(indptr: np.ndarray, size: int) -> int:
  """The most filter pairs of any piece, rounded up to a power of two."""
  piece = size // parallel.num_devices()
  ends = np.append(np.arange(0, len(indptr) - 1, piece), len(indptr) - 1)
  most = int(np.diff(indptr[ends]).max(initial=1))
  return 1 << (most - 1).bit_length()


def _fetch(result: tuple[Any, Any], size: int) -> dict[str, np.ndarray]:
  unusable, counts = jax.device_get(result)
  if unusable:
    raise errors.NonFiniteError(
      f'{int(unusable)} of {size} queries have scores that are not finite '
      'numbers: these parameters cannot be ranked'
    )
  return {name: count.reshape(-1) for name, count in counts.items()}


def batch_rows(num_entities: int) -> int:
  """Rows to rank at a time so that a device's scores stay below 64 MiB."""
  rows = _SCORE_BYTES // (4 * num_entities)
  return max(1, min(rows, _MOST_ROWS)) * parallel.num_devices()
