"""The full filtered test evaluation, and how much of it is the model itself."""

import time
from typing import Any

import jax
import numpy as np

from coke_jax import parallel, tasks
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranker
from coke_jax.model import encoder
from experiments.benchmarks import coke_steps, data_sets, memory, plan


class Evaluation:
  """What a process of kind `evaluation` measures."""

  def __init__(self, setting: plan.Setting):
    self._setting = setting

  def prepare(self) -> dict[str, Any]:
    """Reads the data, builds the model, compiles.

    Returns:
      `compile_seconds`, and how many `queries` there are.
    """
    config = data_sets.make_config(self._setting)
    self._task = data_sets.make_task(self._setting, config)
    memory.reset_peak()
    self._memory_before = memory.resident()
    vocabulary = self._task.data.vocabulary
    model = tasks.build_model(config, vocabulary, self._task.max_length)
    self._ranker = ranker.Ranker(model, config.evaluate.batch_size)
    self._params = parallel.replicate(
      encoder.init_params(model, config.train.seed)
    )

    def scores_only(
      params: Any, batch: dict[str, jax.Array], _: None
    ) -> tuple[jax.Array, tuple[()]]:
      logits: Any = model.apply(
        {'params': params}, batch['tokens'], batch['mask_position']
      )
      # Of a sum, a compiler could find a way around the product.
      return parallel.sum_over_devices(logits.max(axis=1).sum()), ()

    self._scores_only = parallel.map_devices(scores_only)
    triples: Any = self._task.data.split('test')  # there are no paths here
    test = queries_lib.from_triples(triples, vocabulary)
    size = self._ranker.batch_size
    self._batches = [
      parallel.shard(_ask(test, start, size))
      for start in range(0, len(test), size)
    ]
    first = self._evaluate()
    self._score(self._batches[:1])
    return {
      'compile_seconds': max(first - self._evaluate(), 0.0),
      'queries': len(test),
    }

  def measure(self) -> dict[str, Any]:
    """One round: `seconds` of all, and of the model's products alone."""
    return {
      'seconds': self._evaluate(),
      'product_seconds': self._score(self._batches),
    }

  def finish(self) -> dict[str, Any]:
    """As `stepping.Training.finish`."""
    return {
      'memory': memory.peak() - self._memory_before,
      'device_memory': coke_steps.peak_device_memory(),
    }

  def _evaluate(self) -> float:
    """Seconds of what `--mode=evaluate` does once data and model are there."""
    started = time.perf_counter()
    self._task.evaluate(self._ranker, self._params, 'test', choosing=False)
    return time.perf_counter() - started

  def _score(self, batches: list[dict[str, np.ndarray]]) -> float:
    """Seconds of encoding and scoring alone, as precisely as ranks need it."""
    started = time.perf_counter()
    pending = None
    with jax.default_matmul_precision('highest'):
      for batch in batches:
        running = self._scores_only(self._params, batch, None)
        jax.block_until_ready(pending)  # one runs, one waits, as in the Ranker
        pending = running
    jax.block_until_ready(pending)
    return time.perf_counter() - started


def _ask(
  queries: queries_lib.Queries, start: int, size: int
) -> dict[str, np.ndarray]:
  """Tokens [B, K] and mask_position [B]; a short batch repeats the last row."""
  rows = np.minimum(np.arange(start, start + size), len(queries) - 1)
  return {
    'tokens': queries.tokens[rows],
    'mask_position': queries.mask_position[rows],
  }
