"""Times the steps of a training, on real batches and without compilation."""

import dataclasses
import itertools
import math
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

import jax
import ml_collections

from coke_jax import tasks
from coke_jax.data import batches as batches_lib
from coke_jax.model import parameters
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_step

LONGEST_ROUND_SECONDS = 30.0


class Stepper(Protocol):
  """The interface of `Steps` for coke_jax and `torch_steps.Steps` for PyTorch.

  Attributes:
    training_set: the rows and their batches.
    steps_per_call: maximum number of steps in one device call.
    whole_last_block: see `flops.Shape`.
  """

  training_set: batches_lib.TrainingSet
  steps_per_call: int
  whole_last_block: bool

  def run(self, batches: Iterable[batches_lib.Batch]) -> None:
    """Trains on each batch and returns when the device has finished."""

  def device_memory(self) -> int | None:
    """Returns the peak bytes of an accelerator's memory; None on a CPU."""


class Steps:
  """The steps of coke_jax, as `training.loop` runs them; see `Stepper`.

  Attributes:
    num_steps: the number of steps of the whole training.
  """

  whole_last_block = False

  def __init__(self, config: ml_collections.ConfigDict, task: tasks.Task):
    self._setup = setup_lib.Setup(config, task)
    self._key = parameters.dropout_key(config.train.seed)
    self._state = self._setup.placement.place(self._setup.init_state())
    self.training_set = self._setup.training_set
    self.num_steps = self._setup.num_steps
    self.steps_per_call: int = config.train.steps_per_call

  def run(self, batches: Iterable[batches_lib.Batch]) -> None:
    """Trains on each batch and returns when the device has finished."""
    before: dict[str, jax.Array] = {}
    for chunk in batches_lib.chunks(
      batches, self.steps_per_call, lambda _: False
    ):
      self._state, metrics = self._setup.train_step(
        self._state, chunk, self._key
      )
      jax.block_until_ready(before)  # The training loop waits here, too.
      before = metrics
    jax.block_until_ready((self._state, before))

  def device_memory(self) -> int | None:
    """Returns the peak bytes of an accelerator's memory; None on a CPU."""
    return peak_device_memory()


class Stopwatch:
  """Times training steps, separately for each sequence length.

  Batches of paths have several lengths. A round times steps of each length. The
  time of an epoch is the sum over the lengths: the number of batches times the
  seconds of a step.

  Attributes:
    batches: the number of batches of an epoch, by length.
    step_seconds: the time of one step after compilation, by length.
    compile_seconds: the time of the first step of each length minus the time
      of the second, summed over the lengths.
  """

  def __init__(self, stepper: Stepper):
    """Compiles the steps."""
    self._stepper = stepper
    parts = by_length(stepper.training_set)
    self._rest = {length: _endless(part) for length, part in parts.items()}
    self.batches = {
      length: part.steps_per_epoch for length, part in parts.items()
    }
    first = {length: self._seconds(length, 1) for length in parts}
    self.step_seconds = {length: self._seconds(length, 1) for length in parts}
    self.compile_seconds = max(
      sum(first.values()) - sum(self.step_seconds.values()), 0.0
    )

  def round_steps(self, seconds: float, least: int = 1) -> dict[int, int]:
    """Returns the number of steps of each length in a round.

    The number is rounded up to whole device calls, unless the round would then
    take longer than LONGEST_ROUND_SECONDS.

    Args:
      seconds: minimum duration of a round.
      least: minimum number of steps in a round.
    """
    found = {}
    per_call = self._stepper.steps_per_call
    least = math.ceil(least / len(self.step_seconds))
    for length, measured in self.step_seconds.items():
      step = max(measured, 1e-6) * len(self.step_seconds)
      needed = max(least, math.ceil(seconds / step))
      whole_calls = per_call * math.ceil(needed / per_call)
      most = int(LONGEST_ROUND_SECONDS / step)
      found[length] = max(needed, min(whole_calls, most))
    return found

  def measure(self, steps: Mapping[int, int]) -> dict[int, float]:
    """Returns the mean seconds of a step, by length.

    Args:
      steps: the number of steps to time, by length.
    """
    return {
      length: self._seconds(length, count) / count
      for length, count in steps.items()
    }

  def epoch_seconds(self, step_seconds: Mapping[int, float]) -> float:
    """Returns the time of an epoch, given the seconds of a step by length."""
    return sum(
      count * step_seconds[length] for length, count in self.batches.items()
    )

  def _seconds(self, length: int, steps: int) -> float:
    """Returns the seconds of some steps, including building their batches."""

    def some() -> Iterator[batches_lib.Batch]:
      for batch in itertools.islice(self._rest[length], steps):
        train_step.count_instances(batch)  # The training log does this, too.
        yield batch

    started = time.perf_counter()
    self._stepper.run(some())
    return time.perf_counter() - started


def time_training(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  *,
  seconds: float,
  least: int = 1,
) -> dict[str, Any]:
  """Times one round of steps of coke_jax.

  Args:
    config: the settings.
    task: the task to train on.
    seconds: minimum duration of the round.
    least: minimum number of steps in the round.

  Returns:
    `timed_steps`, `seconds_per_step`, `seconds_per_epoch`, `epochs_per_hour`,
    `rows_per_second`, `instances_per_second` and `compile_seconds`. `steps` is
    the number of steps of the whole training.
  """
  steps = Steps(config, task)
  stopwatch = Stopwatch(steps)
  counts = stopwatch.round_steps(seconds, least)
  epoch = stopwatch.epoch_seconds(stopwatch.measure(counts))
  return {
    'timed_steps': sum(counts.values()),
    'seconds_per_step': epoch / sum(stopwatch.batches.values()),
    'seconds_per_epoch': epoch,
    'epochs_per_hour': 3600 / epoch,
    'rows_per_second': steps.training_set.num_rows / epoch,
    'instances_per_second': steps.training_set.num_instances / epoch,
    'compile_seconds': stopwatch.compile_seconds,
    'steps': steps.num_steps,
  }


def by_length(
  training_set: batches_lib.TrainingSet,
) -> dict[int, batches_lib.TrainingSet]:
  """Splits a training set by sequence length.

  If there are several lengths, the sets have no `walks`.
  """
  queries = training_set.queries
  lengths = (queries.tokens != training_set.pad_id).sum(axis=1)
  found = sorted(set(lengths.tolist()))
  if len(found) == 1:
    return {found[0]: training_set}
  return {
    length: dataclasses.replace(
      training_set,
      queries=queries.take(lengths == length),
      chunk_size=1,
      walks=None,
    )
    for length in found
  }


def peak_device_memory() -> int | None:
  """Returns the peak bytes of one accelerator's memory; None on a CPU."""
  statistics = jax.local_devices()[0].memory_stats()
  return statistics['peak_bytes_in_use'] if statistics else None


def _endless(
  training_set: batches_lib.TrainingSet,
) -> Iterator[batches_lib.Batch]:
  for epoch in itertools.count():
    yield from training_set.epoch(epoch)
