"""A training, timed: compiling, then rounds of steps on real batches."""

import functools
import itertools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from coke_jax.data import batches as batches_lib
from coke_jax.training import train_step
from experiments.benchmarks import data_sets, flops, memory, plan


class Stepper(Protocol):
  """A framework's training: see `coke_steps` and `torch_steps`.

  Attributes:
    training_set: the rows and their batches.
    steps_per_call: steps that the device does at a call, where there are as
      many.
    whole_last_block: see `flops.Shape`.
  """

  training_set: batches_lib.TrainingSet
  steps_per_call: int
  whole_last_block: bool

  def run(self, batches: Iterable[batches_lib.Batch]) -> None:
    """Trains on each batch and returns when the device has done it all."""

  def device_memory(self) -> int | None:
    """The most bytes it took of the accelerator's memory; None: has none."""


class Training:
  """What a process of kind `training` measures.

  Path data have batches of several lengths. Each is timed by itself, so that
  every round weighs them as an epoch does.
  """

  def __init__(self, setting: plan.Setting):
    self._setting = setting
    self._make_stepper = _import_steps(setting)

  def prepare(self) -> dict[str, Any]:
    """Reads the data, builds the model, compiles all steps.

    Returns:
      `compile_seconds`, `step_seconds` and `steps` of a round by length, and
      counts of an `epoch`: its `batches` by length.
    """
    setting = self._setting
    config = data_sets.make_config(setting)
    task = data_sets.make_task(setting, config)
    memory.reset_peak()
    self._memory_before = memory.resident()
    self._stepper = self._make_stepper(config, task)
    shape = flops.Shape(
      task.data.vocabulary.num_entities,
      config.model.num_layers,
      config.model.hidden_size,
      config.model.feed_forward_size,
      self._stepper.whole_last_block,
    )
    training_set = self._stepper.training_set
    parts = by_length(training_set)
    self._batches = {length: _endless(part) for length, part in parts.items()}
    first = {length: self._timed(length, 1) for length in parts}
    second = {length: self._timed(length, 1) for length in parts}
    self._steps = {
      length: self._steps_of_round(seconds, len(parts))
      for length, seconds in second.items()
    }
    batches = {length: part.steps_per_epoch for length, part in parts.items()}
    return {
      'compile_seconds': max(sum(first.values()) - sum(second.values()), 0.0),
      'step_seconds': second,
      'steps': self._steps,
      'epoch': {
        'instances': training_set.num_instances,
        'queries': len(training_set.queries),
        'batches': batches,
        'flops': setting.batch_size
        * sum(
          count * shape.training(length) for length, count in batches.items()
        ),
      },
    }

  def measure(self) -> dict[str, Any]:
    """One round: `step_seconds` by length."""
    return {
      'step_seconds': {
        length: self._timed(length, steps) / steps
        for length, steps in self._steps.items()
      }
    }

  def finish(self) -> dict[str, Any]:
    """What all rounds took of memory.

    Returns:
      `memory` above what libraries and data took before, `device_memory`.
    """
    return {
      'memory': memory.peak() - self._memory_before,
      'device_memory': self._stepper.device_memory(),
    }

  def _timed(self, length: int, steps: int) -> float:
    """Seconds of some steps; their batches are made meanwhile."""

    def some() -> Iterator[batches_lib.Batch]:
      for batch in itertools.islice(self._batches[length], steps):
        train_step.count_instances(batch)  # as a training does for its log
        yield batch

    started = time.perf_counter()
    self._stepper.run(some())
    return time.perf_counter() - started

  def _steps_of_round(self, step_seconds: float, num_lengths: int) -> int:
    """Steps of one length: whole calls, unless they would take too long."""
    seconds = max(step_seconds, 1e-6)
    least = max(
      self._setting.steps,
      math.ceil(self._setting.seconds / num_lengths / seconds),
    )
    most = int(plan.LONGEST_ROUND_SECONDS / num_lengths / seconds)
    per_call = self._stepper.steps_per_call
    whole_calls = per_call * math.ceil(least / per_call)
    return max(least, min(whole_calls, most))


def by_length(
  training_set: batches_lib.TrainingSet,
) -> dict[int, batches_lib.TrainingSet]:
  """The rows of each length of sequences, as a training set of their own."""
  queries = training_set.queries
  lengths = (queries.tokens != training_set.pad_id).sum(axis=1)
  found = sorted(set(lengths.tolist()))
  if len(found) == 1:
    return {found[0]: training_set}
  return {
    length: batches_lib.TrainingSet(
      queries.take(lengths == length),
      training_set.batch_size,
      training_set.pad_id,
      training_set.seed,
    )
    for length in found
  }


def _endless(
  training_set: batches_lib.TrainingSet,
) -> Iterator[batches_lib.Batch]:
  for epoch in itertools.count():
    yield from training_set.epoch(epoch)


def _import_steps(setting: plan.Setting) -> Callable[[Any, Any], Stepper]:
  """What makes a framework's steps; a process loads one framework alone."""
  if setting.framework == 'torch':
    from experiments.benchmarks import torch_steps

    return functools.partial(torch_steps.Steps, compiled=setting.compiled)
  from experiments.benchmarks import coke_steps

  return coke_steps.Steps
