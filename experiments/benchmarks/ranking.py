"""Times the full filtered test evaluation, with and without ranking."""

import time
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax import parallel, tasks
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import device_call, ranker
from coke_jax.model import parameters
from experiments.benchmarks import data_sets, memory, plan, stopwatch


class Evaluation:
  """Measures a setting of kind `evaluation`."""

  def __init__(self, setting: plan.Setting):
    self._setting = setting

  def prepare(self) -> dict[str, Any]:
    """Reads the data, builds the model and compiles.

    Returns:
      `compile_seconds` and the number of `queries`.
    """
    config = data_sets.make_config(self._setting)
    self._task = data_sets.make_task(self._setting, config)
    self._memory = memory.Growth()
    vocabulary = self._task.data.vocabulary
    model = tasks.build_model(config, vocabulary, self._task.max_length)
    self._ranker = ranker.Ranker(model, config.evaluate.batch_size)
    self._params = parallel.replicate(
      parameters.init_params(model, config.train.seed)
    )

    def scores_only(
      params: Any, batch: device_call.DeviceBatch
    ) -> tuple[device_call.DeviceBatch, jax.Array]:
      logits: Any = model.apply(
        {'params': params}, batch['tokens'], batch['mask_position']
      )
      # The compiler can simplify the sum of a product, but not its maximum.
      best = logits.max(axis=1)
      return {'best': best}, jnp.isfinite(best)

    self._scores_only = device_call.DeviceCall(scores_only)
    triples: Any = self._task.data.split('test')
    self._queries = queries_lib.from_triples(triples, vocabulary)
    first = self._evaluate()
    self._score()
    return {
      'compile_seconds': max(first - self._evaluate(), 0.0),
      'queries': len(self._queries),
    }

  def measure(self) -> dict[str, Any]:
    """Measures one round.

    Returns:
      `seconds`: the time of the evaluation.
      `product_seconds`: the time of encoding and scoring without ranking.
    """
    return {'seconds': self._evaluate(), 'product_seconds': self._score()}

  def finish(self) -> dict[str, Any]:
    """Returns the peak memory, as `worker.Training.finish` does."""
    return {
      'memory': self._memory.peak(),
      'device_memory': stopwatch.peak_device_memory(),
    }

  def _evaluate(self) -> float:
    """Returns the seconds of an evaluation, without reading the data."""
    started = time.perf_counter()
    self._task.evaluate(self._ranker, self._params, 'test', choosing=False)
    return time.perf_counter() - started

  def _score(self) -> float:
    """Returns the seconds of encoding and scoring without ranking."""
    started = time.perf_counter()
    size, queries = self._ranker.batch_size, self._queries
    pending = None
    for start in range(0, len(queries), size):
      rows = slice(start, start + size)
      batch = {
        'tokens': queries.tokens[rows],
        'mask_position': queries.mask_position[rows],
      }
      running = self._scores_only.start(self._params, batch, size)
      # Like `Ranker`, starts a batch before it fetches the previous result.
      if pending is not None:
        pending.fetch()
      pending = running
    assert pending is not None, 'no test triples'
    pending.fetch()
    return time.perf_counter() - started
