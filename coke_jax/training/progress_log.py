"""Collects the metrics of steps and validations and passes them to writers."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import optax

from coke_jax.training import duration
from coke_jax.training import writers as writers_lib

# The loss in the progress bar is updated at most once in this time.
_SHOW_SECONDS = 2.0


class TrainingLog:
  """Averages the metrics of steps and writes records.

  Use it as a context manager. Metrics stay on the device until a record is due,
  so that the host does not wait for every step.

  Attributes:
    losses: the losses that were fetched and are in no record yet.
    norms: the gradient norms of the same steps as `losses`.
  """

  def __init__(
    self,
    writers: Sequence[writers_lib.Writer],
    bar: writers_lib.ProgressBar,
    schedule: optax.Schedule,
    *,
    first_step: int,
    num_steps: int,
    losses: Sequence[float],
    norms: Sequence[float],
    steps_per_epoch: int,
  ):
    """Starts or continues a log.

    Args:
      writers: receive every record. They are closed at the end of the context.
      bar: the progress bar, which is also one of the writers.
      schedule: the learning rate as a function of the step, counted from 0.
      first_step: number of steps that are already done.
      num_steps: number of steps of the whole training.
      losses: the losses of earlier steps that are in no record yet.
      norms: the gradient norms of the same steps as `losses`.
      steps_per_epoch: number of steps in an epoch.
    """
    self._writers = writers
    self._bar = bar
    self._schedule = schedule
    self._steps_per_epoch = steps_per_epoch
    self._last_step = first_step
    # The metrics and the number of steps of each call of `add_steps` whose
    # metrics were not fetched yet.
    self._pending: list[tuple[dict[str, jax.Array], int]] = []
    self.losses, self.norms = list(losses), list(norms)
    self._instances = 0
    self._rate = 0.0
    self._compiled = False
    self._duration = duration.Duration(num_steps)
    self._since = self._shown = time.monotonic()

  def __enter__(self) -> 'TrainingLog':
    return self

  def __exit__(self, *_: object) -> None:
    for writer in self._writers:
      writer.close()

  def say(self, text: str) -> None:
    """Prints a line above the progress bar."""
    self._bar.say(text)

  def add_steps(
    self, metrics: dict[str, jax.Array], instances: Sequence[int]
  ) -> None:
    """Adds the metrics of N steps, which one call of `Setup.train_step` did.

    Waits for the device only in the first call, and in calls that update the
    loss in the progress bar.

    Args:
      metrics: `loss` and `gradient_norm`, float32 [at least N] each, on the
        device.
      instances: the number of training answers in each of the N steps.
    """
    count = len(instances)
    self._last_step += count
    self._pending.append((metrics, count))
    if not self._compiled:
      # Wait for the first call, so that no rate includes compilation.
      jax.block_until_ready(metrics)
      self._compiled = True
      self._since = time.monotonic()
      self._duration.restart(self._last_step, self._since)
      self._bar.advance_after_compilation(count)
      return
    # The training loop has waited for all calls before this one.
    finished = self._last_step - count
    if text := self._duration.announcement(finished, time.monotonic()):
      self.say(text)
    self._instances += sum(instances)
    now = time.monotonic()
    if now - self._shown > _SHOW_SECONDS:
      self._shown = now
      self._bar.write(self._record([float(metrics['loss'][count - 1])], [0.0]))
    self._bar.advance(count)

  def fetch(self) -> list[tuple[int, float, float]]:
    """Fetches the metrics of all steps that were not fetched before.

    Returns:
      Number, loss and gradient norm of each of these steps.
    """
    fetched = [
      (float(metrics['loss'][index]), float(metrics['gradient_norm'][index]))
      for metrics, count in jax.device_get(self._pending)
      for index in range(count)
    ]
    self._pending = []
    self.losses += [loss for loss, _ in fetched]
    self.norms += [norm for _, norm in fetched]
    first = self._last_step - len(fetched) + 1
    return [
      (step, loss, norm) for step, (loss, norm) in enumerate(fetched, first)
    ]

  def write_steps(self) -> None:
    """Writes a record of the steps that were fetched since the last record."""
    if not self.losses:
      return
    if self._instances:
      self._rate = self._instances / (time.monotonic() - self._since)
    self._write(self._record(self.losses, self.norms))
    self.losses, self.norms, self._instances = [], [], 0
    self._since = time.monotonic()

  def write_validation(
    self, results: dict[str, Any], description: str, *, is_best: bool
  ) -> None:
    """Writes a record of a validation after the most recent step.

    Args:
      results: the results of the task. The record leaves out `by_relation`.
      description: one line with the most important metrics.
      is_best: whether this validation is the best so far.
    """
    epoch = self._last_step / self._steps_per_epoch
    metrics = {
      name: value for name, value in results.items() if name != 'by_relation'
    }
    self._write(
      {'kind': 'valid', 'step': self._last_step, 'epoch': epoch, **metrics}
    )
    best = ' (best so far)' if is_best else ''
    self.say(f'epoch {epoch:.4g}: validation {description}{best}')
    self._since = time.monotonic()
    self._duration.restart(self._last_step, self._since)

  def sync(self) -> None:
    """Waits until all records are on disk."""
    for writer in self._writers:
      writer.sync()

  def learning_rate(self, step: int) -> float:
    """Returns the learning rate of a step, counted from 1."""
    return float(self._schedule(step - 1))

  def _record(
    self, losses: Sequence[float], norms: Sequence[float]
  ) -> dict[str, Any]:
    """Returns a `train` record with the averages of the most recent steps."""
    seconds = time.monotonic() - self._since
    return {
      'kind': 'train',
      'step': self._last_step,
      'epoch': self._last_step / self._steps_per_epoch,
      'loss': sum(losses) / len(losses),
      'gradient_norm': sum(norms) / len(norms),
      'learning_rate': self.learning_rate(self._last_step),
      'instances_per_second': self._rate or self._instances / (seconds + 1e-9),
    }

  def _write(self, record: dict[str, Any]) -> None:
    for writer in self._writers:
      writer.write(record)
