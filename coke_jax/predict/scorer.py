"""Batches of any number of queries on all devices, each shape compiled once.

Where `ranker.Ranker` ranks millions in batches of one shape, a person asks
one question or many; so there are a few batch sizes, and a batch is filled up
to the next one.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coke_jax import errors, parallel
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import counting, ranker
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import encoder

_FEWEST_ROWS = (8, 64)  # smaller batches than the full one, a device
_FEWEST_ANSWERS = 16  # of the best entities that are looked for

Batch = dict[str, jax.Array]


class Scorer:
  """A model's parameters on all devices, and what they are asked.

  Attributes:
    model: the encoder.
    params: its replicated parameters.
    batch_size: queries at a time, over all devices.
  """

  def __init__(self, model: encoder.CoKE, params: Any):
    self.model = model
    self.params = params
    self.batch_size = ranker.batch_rows(model.num_entities)
    self._compiled: dict[tuple[str, int], Callable[..., Any]] = {}

  def best(
    self,
    queries: queries_lib.Queries,
    top: int,
    competing: np.ndarray | None = None,
  ) -> tuple[np.ndarray, np.ndarray]:
    """The best entities of at most `batch_size` queries.

    Args:
      queries: B queries.
      top: how many entities, at most V.
      competing: bool [B, V], the entities that are let compete; None: all.

    Returns:
      entities int32 [B, top], best first, equal ones by id; and their
      log-probabilities among all entities float32 [B, top], minus infinity
      where fewer than `top` compete.

    Raises:
      errors.NonFiniteError: a score is not a finite number.
    """
    looked_for = min(_power_of_two(max(top, _FEWEST_ANSWERS)), self._num)
    batch = self._asked(queries)
    if competing is not None:
      batch['competing'] = competing
    found = self._run('best', looked_for, batch, self._best_of(looked_for))
    return found['entity'][:, :top], found['score'][:, :top]

  def place(
    self, queries: queries_lib.Queries, competing: np.ndarray
  ) -> tuple[ranks_lib.Ranks, np.ndarray]:
    """Where the answers of at most `batch_size` queries stand.

    Args:
      queries: B queries with one answer each.
      competing: bool [B, V], the entities they are ranked against.

    Returns:
      The ranks, and the answers' log-probabilities float32 [B].

    Raises:
      errors.NonFiniteError: a score is not a finite number.
    """
    batch = {
      **self._asked(queries),
      'gold': queries.indices,
      'competing': competing,
    }
    found = self._run('place', 0, batch, self._place)
    ranks = ranks_lib.Ranks(
      found['better'].astype(np.int64),
      found['equal'].astype(np.int64),
      found['competitors'].astype(np.int64) + 1,
    )
    return ranks, found['score']

  def encode(self, tokens: np.ndarray, layer: int) -> np.ndarray:
    """Hidden states of at most `batch_size` sequences after a layer.

    Args:
      tokens: int32 [B, K], PAD on the right.
      layer: 0 for the input, L for the last block.

    Returns:
      float32 [B, K, D].
    """

    def states(params: Any, batch: Batch, _: None) -> tuple[Any, Any]:
      hidden: Any = self.model.apply(
        {'params': params}, batch['tokens'], layer=layer, method='encode'
      )
      unusable = (~jnp.isfinite(hidden)).sum()
      return parallel.sum_over_devices(unusable), {'hidden': hidden}

    return self._run('encode', layer, {'tokens': tokens}, states)['hidden']

  @property
  def _num(self) -> int:
    return self.model.num_entities

  def _asked(self, queries: queries_lib.Queries) -> dict[str, np.ndarray]:
    return {'tokens': queries.tokens, 'mask_position': queries.mask_position}

  def _logits(self, params: Any, batch: Batch) -> tuple[jax.Array, jax.Array]:
    """Logits [B, V] and the logarithm of their normaliser [B, 1]."""
    logits: Any = self.model.apply(
      {'params': params}, batch['tokens'], batch['mask_position']
    )
    return logits, jax.nn.logsumexp(logits, axis=1, keepdims=True)

  def _best_of(self, count: int) -> Callable[..., Any]:
    def best(params: Any, batch: Batch, _: None) -> tuple[Any, Any]:
      logits, normaliser = self._logits(params, batch)
      unusable = parallel.sum_over_devices((~jnp.isfinite(logits)).sum())
      if 'competing' in batch:
        logits = jnp.where(batch['competing'], logits, -jnp.inf)
      score, entity = jax.lax.top_k(logits, count)  # equal ones by id
      return unusable, {'entity': entity, 'score': score - normaliser}

    return best

  def _place(self, params: Any, batch: Batch, _: None) -> tuple[Any, Any]:
    logits, normaliser = self._logits(params, batch)
    counts = counting.count_among(logits, batch['gold'], batch['competing'])
    unusable = parallel.sum_over_devices((~counts.pop('finite')).sum())
    gold = jnp.take_along_axis(logits, batch['gold'][:, None], axis=1)
    return unusable, {**counts, 'score': (gold - normaliser)[:, 0]}

  def _run(
    self,
    name: str,
    variant: int,
    batch: dict[str, np.ndarray],
    function: Callable[..., Any],
  ) -> dict[str, np.ndarray]:
    """Fills a batch up to the next size, runs it, and cuts the result back."""
    if (name, variant) not in self._compiled:
      self._compiled[name, variant] = parallel.map_devices(function)
    rows = len(batch['tokens'])
    size = self._size_for(rows)
    filled = {
      key: np.concatenate([array, np.repeat(array[:1], size - rows, axis=0)])
      for key, array in batch.items()
    }
    with jax.default_matmul_precision('highest'):
      unusable, found = jax.device_get(
        self._compiled[name, variant](self.params, parallel.shard(filled), None)
      )
    if unusable:
      raise errors.NonFiniteError(
        'scores that are not finite numbers: these parameters cannot be asked'
      )
    return {
      key: array.reshape(size, *array.shape[2:])[:rows]
      for key, array in found.items()
    }

  def _size_for(self, rows: int) -> int:
    devices = parallel.num_devices()
    sizes = [n * devices for n in _FEWEST_ROWS if n * devices < self.batch_size]
    return next(
      (size for size in sizes if size >= rows), max(self.batch_size, rows)
    )


def _power_of_two(number: int) -> int:
  """The smallest power of two that is not below `number`."""
  return 1 << (number - 1).bit_length()
