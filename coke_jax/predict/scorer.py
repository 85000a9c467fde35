"""Runs the encoder on batches of queries on all devices.

The number of queries differs between calls. Batches are therefore padded to one
of three sizes: 8 or 64 queries per device, or the full batch. Programs are
compiled once per size.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from coke_jax import parallel
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import counting, device_call
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import ensemble, parameters
from coke_jax.shards import placement as placement_lib
from coke_jax.shards import sharded_encoder

_SMALL_BATCHES = (8, 64)  # rows for each device
_MIN_TOP_K = 16  # A smaller k would need another compilation.


class Scorer:
  """An encoder with its parameters on all devices.

  Attributes:
    model: the Flax module.
    batch_size: maximum number of queries in a call, over all devices.
    placement: how the parameters are distributed over the devices.
  """

  def __init__(
    self,
    model: ensemble.Encoder,
    params: Any,
    batch_size: int = 0,
    placement: placement_lib.Placement | None = None,
  ):
    """Prepares a scorer. Each program is compiled when it is first used.

    Args:
      model: the Flax module.
      params: parameters of the module on the devices, see `placement`.
      batch_size: maximum number of queries in a call, over all devices.
        Default 0: see `device_call.batch_rows`.
      placement: how the parameters are distributed over the devices. Default:
        every device has a copy.
    """
    self.model = model
    self.placement = placement or placement_lib.Placement(model)
    self._sharded: sharded_encoder.ShardedEncoder | None = None
    self._axes = None
    if self.placement.is_cut:
      self._sharded = sharded_encoder.ShardedEncoder(model, self.placement)
      self._axes = self.placement.axes(parameters.param_shapes(model))
    self._params = params
    self._on_devices = True
    self.batch_size = batch_size or device_call.batch_rows(model.num_entities)
    self._calls: dict[tuple[str, int], device_call.DeviceCall] = {}

  def __getstate__(self) -> dict[str, Any]:
    """Returns the state for pickling, without compiled programs."""
    return {
      **self.__dict__,
      '_params': self.whole_params(),
      '_on_devices': False,
      '_calls': {},
    }

  @property
  def params(self) -> Any:
    """The parameters on all devices.

    The parameters of an unpickled scorer are copied to the devices here, at
    their first use.

    Raises:
      parallel.ForkError: this process was forked from one that uses devices.
    """
    parallel.check_process()
    if not self._on_devices:
      self._params = self.placement.place(self._params)
      self._on_devices = True
    return self._params

  def whole_params(self) -> Any:
    """Copies the parameters from the devices, as NumPy arrays."""
    if not self._on_devices:
      return self._params
    return self.placement.fetch(self._params)

  def top_k(
    self,
    queries: queries_lib.Queries,
    k: int,
    candidates: np.ndarray | None = None,
  ) -> tuple[np.ndarray, np.ndarray]:
    """Finds the entities with the highest scores.

    Args:
      queries: B queries, 1 <= B <= `batch_size`. Their answers are not used.
      k: number of entities for each query, at most V.
      candidates: bool [B, V], the entities to choose from. Default: all.

    Returns:
      Entity ids, int32 [B, k], best first. Equal scores are ordered by id.
      Log-probabilities, float32 [B, k], normalized over all entities. If there
      are fewer than k candidates, the last values are minus infinity.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    compiled_k = min(_power_of_two(max(k, _MIN_TOP_K)), self.model.num_entities)

    def find(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      if self._sharded is not None:
        return self._sharded.find_best(params, batch, compiled_k)
      logits, normalizer = self._logits(params, batch)
      finite = jnp.isfinite(logits).all(axis=1)
      if 'candidates' in batch:
        logits = jnp.where(batch['candidates'], logits, -jnp.inf)
      score, entity = jax.lax.top_k(logits, compiled_k)  # ties ordered by id
      return {'entity': entity, 'score': score - normalizer}, finite

    batch = _inputs(queries)
    if candidates is not None:
      batch['candidates'] = candidates
    found = self._run('top_k', compiled_k, batch, find)
    return found['entity'][:, :k], found['score'][:, :k]

  def rank(
    self, queries: queries_lib.Queries, candidates: np.ndarray
  ) -> tuple[ranks_lib.Ranks, np.ndarray]:
    """Ranks the answer of each query among candidates.

    Args:
      queries: B queries with one answer each, 1 <= B <= `batch_size`.
      candidates: bool [B, V]. The answer of a query is always a candidate.

    Returns:
      The ranks of the B answers.
      The log-probabilities of the answers, float32 [B], normalized over all
      entities.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """

    def count(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      logits, normalizer = self._logits(params, batch)
      counts, finite = counting.count_among(
        logits, batch['gold'], batch['candidates']
      )
      gold = jnp.take_along_axis(logits, batch['gold'][:, None], axis=1)
      return {**counts, 'score': (gold - normalizer)[:, 0]}, finite

    batch = {
      **_inputs(queries),
      'gold': queries.indices,
      'candidates': candidates,
    }
    found = self._run('rank', 0, batch, count)
    better, equal, among = (
      found[name].astype(np.int64) for name in ('better', 'equal', 'candidates')
    )
    return ranks_lib.Ranks(better, equal, among), found['score']

  def log_probabilities(self, queries: queries_lib.Queries) -> np.ndarray:
    """Computes the log-probabilities of all entities.

    Args:
      queries: B queries, 1 <= B <= `batch_size`. Their answers are not used.

    Returns:
      float32 [B, V].

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """

    def normalize(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      logits, normalizer = self._logits(params, batch)
      finite = jnp.isfinite(logits).all(axis=1)
      return {'score': logits - normalizer}, finite

    return self._run('all', 0, _inputs(queries), normalize)['score']

  def answer_log_probabilities(
    self, queries: queries_lib.Queries, answers: np.ndarray
  ) -> np.ndarray:
    """Computes the log-probabilities of M answers to each query.

    Args:
      queries: B queries, 1 <= B <= `batch_size`. Their answers are not used.
      answers: int32 [B, M], entity ids. Programs are compiled once per M.

    Returns:
      float32 [B, M].

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """

    def gather(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      logits, normalizer = self._logits(params, batch)
      finite = jnp.isfinite(logits).all(axis=1)
      own = jnp.take_along_axis(logits, batch['answers'], axis=1)
      return {'score': own - normalizer}, finite

    batch = {**_inputs(queries), 'answers': answers}
    return self._run('answers', answers.shape[1], batch, gather)['score']

  def encode(self, tokens: np.ndarray, layer: int) -> np.ndarray:
    """Computes the hidden states of sequences after a number of blocks.

    Args:
      tokens: int32 [B, K], PAD on the right, 1 <= B <= `batch_size`.
      layer: the number of blocks to apply. 0 returns the input of the first
        block.

    Returns:
      float32 [B, K, D].

    Raises:
      errors.NonFiniteError: a hidden state is NaN or infinite.
    """

    def states(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      apply: Any = functools.partial(self.model.apply, {'params': params})
      if self._sharded is not None:
        apply = functools.partial(self._sharded.apply, params)
      hidden = apply(batch['tokens'], layer=layer, method='encode')
      return {'hidden': hidden}, jnp.isfinite(hidden).all(axis=(1, 2))

    return self._run('encode', layer, {'tokens': tokens}, states)['hidden']

  def padded_size(self, rows: int) -> int:
    """Returns the padded batch size for a number of rows, over all devices."""
    devices = parallel.num_devices()
    sizes = [
      n * devices for n in _SMALL_BATCHES if n * devices < self.batch_size
    ]
    return next(
      (size for size in sizes if size >= rows), max(self.batch_size, rows)
    )

  def _logits(
    self, params: Any, batch: device_call.DeviceBatch
  ) -> tuple[jax.Array, jax.Array]:
    """Returns the logits [B, V] and their logsumexp [B, 1]."""
    tokens, mask_position = batch['tokens'], batch['mask_position']
    logits: Any
    if self._sharded is None:
      logits = self.model.apply({'params': params}, tokens, mask_position)
    else:
      logits = self._sharded.all_entities(
        self._sharded.logits(params, tokens, mask_position)
      )
    return logits, jax.nn.logsumexp(logits, axis=1, keepdims=True)

  def _run(
    self,
    name: str,
    variant: int,
    batch: device_call.Batch,
    function: device_call.Function,
  ) -> device_call.Batch:
    """Runs a batch. The function is compiled once per name and variant."""
    if (name, variant) not in self._calls:
      self._calls[name, variant] = device_call.DeviceCall(function, self._axes)
    size = self.padded_size(len(batch['tokens']))
    return self._calls[name, variant].start(self.params, batch, size).fetch()


def _inputs(queries: queries_lib.Queries) -> device_call.Batch:
  return {'tokens': queries.tokens, 'mask_position': queries.mask_position}


def _power_of_two(number: int) -> int:
  """Returns the smallest power of two that is at least `number`."""
  return 1 << (number - 1).bit_length()
