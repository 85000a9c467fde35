"""Runs the encoder on batches of queries on all devices.

The number of queries differs between calls. So batches are padded to one of
three sizes: 8 or 64 queries per device, or the full batch. A program is
compiled once per size.
"""

from typing import Any

import numpy as np

from coke_jax import parallel
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import device_call
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import ensemble
from coke_jax.predict import score_programs
from coke_jax.shards import placement as placement_lib

# Numbers of rows per device to which small batches are padded.
_SMALL_BATCHES = (8, 64)
_MIN_TOP_K = 16  # All smaller k share the program for this k.


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
    self.placement = placement or placement_lib.make(model)
    self._params = params
    self._on_devices = True
    self.batch_size = batch_size or device_call.batch_rows(model.num_entities)

  def __getstate__(self) -> dict[str, Any]:
    """Returns the state for pickling, with the parameters on the host."""
    params = self._params
    if self._on_devices:
      params = self.placement.fetch(params)
    return {**self.__dict__, '_params': params, '_on_devices': False}

  @property
  def params(self) -> Any:
    """The parameters on all devices.

    After unpickling, the first use copies the parameters to the devices.

    Raises:
      parallel.ForkError: this process was forked from one that uses devices.
    """
    parallel.check_process()
    if not self._on_devices:
      self._params = self.placement.place(self._params)
      self._on_devices = True
    return self._params

  def whole_params(self) -> Any:
    """Copies the parameters from the devices, as NumPy arrays.

    Raises:
      parallel.ForkError: this process was forked from one that uses devices.
    """
    return self.placement.fetch(self.params)

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
    batch = _inputs(queries)
    if candidates is not None:
      batch['candidates'] = candidates
    found = self._run(
      score_programs.top_k(self.model, self.placement, compiled_k), batch
    )
    return found['entity'][:, :k], found['score'][:, :k]

  def rank(
    self, queries: queries_lib.Queries, candidates: np.ndarray
  ) -> tuple[ranks_lib.Ranks, np.ndarray]:
    """Ranks the answer of each query among candidates.

    Args:
      queries: B queries with one answer each, 1 <= B <= `batch_size`.
      candidates: bool [B, V]. The answer of a query counts as a candidate even
        if its value is False.

    Returns:
      The ranks of the B answers.
      The log-probabilities of the answers, float32 [B], normalized over all
      entities.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    batch = {
      **_inputs(queries),
      'gold': queries.indices,
      'candidates': candidates,
    }
    found = self._run(score_programs.rank(self.model, self.placement), batch)
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
    program = score_programs.all_entities(self.model, self.placement)
    return self._run(program, _inputs(queries))['score']

  def answer_log_probabilities(
    self, queries: queries_lib.Queries, answers: np.ndarray
  ) -> np.ndarray:
    """Computes the log-probabilities of M answers to each query.

    Args:
      queries: B queries, 1 <= B <= `batch_size`. Their answers are not used.
      answers: int32 [B, M], entity ids. Each M has a separate program.

    Returns:
      float32 [B, M].

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    batch = {**_inputs(queries), 'answers': answers}
    program = score_programs.answers(self.model, self.placement)
    return self._run(program, batch)['score']

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
    program = score_programs.encode(self.model, self.placement, layer)
    return self._run(program, {'tokens': tokens})['hidden']

  def batch_sizes(self) -> list[int]:
    """Returns the sizes to which batches are padded, over all devices."""
    devices = parallel.num_devices()
    small = (number * devices for number in _SMALL_BATCHES)
    return [size for size in small if size < self.batch_size] + [
      self.batch_size
    ]

  def padded_size(self, rows: int) -> int:
    """Returns the padded batch size for a number of rows, over all devices."""
    return next((size for size in self.batch_sizes() if size >= rows), rows)

  def _run(
    self, program: device_call.DeviceCall, batch: device_call.Batch
  ) -> device_call.Batch:
    """Pads a batch and runs a program."""
    size = self.padded_size(len(batch['tokens']))
    return program.start(self.params, batch, size).fetch()


def _inputs(queries: queries_lib.Queries) -> device_call.Batch:
  return {'tokens': queries.tokens, 'mask_position': queries.mask_position}


def _power_of_two(number: int) -> int:
  """Returns the smallest power of two that is at least `number`."""
  return 1 << (number - 1).bit_length()
