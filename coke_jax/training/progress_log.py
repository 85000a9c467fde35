"""Collects the metrics of steps and validations and passes them to writers."""

import time
from collections.abc import Sequence
from typing import Any

import jax
import optax

from coke_jax.training import writers as writers_lib

_SHOW_SECONDS = 2.0  # between two updates of the loss in the progress bar


class TrainingLog:
  """Averages the metrics of steps into records; use as a context manager.

  Metrics stay on the device until a record is due, so that the host does not
  wait for every step.

  Attributes:
    losses: the loss of each fetched step since the last record.
    norms: the gradient norm of each fetched step since the last record.
  """

  def __init__(
    self,
    writers: Sequence[writers_lib.Writer],
    bar: writers_lib.ProgressBar,
    schedule: optax.Schedule,
    *,
    first_step: int,
    losses: Sequence[float],
    norms: Sequence[float],
    steps_per_epoch: int,
  ):
    """Starts or continues a log.

    Args:
      writers: receive every record; closed at the end.
      bar: the progress bar, one of the writers.
      schedule: the learning rate as a function of the step, counted from 0.
      first_step: steps done before.
      losses: of those of them that are not in a record yet.
      norms: of the same steps.
      steps_per_epoch: steps in an epoch.
    """
    self._writers = writers
    self._bar = bar
    self._schedule = schedule
    self._steps_per_epoch = steps_per_epoch
    self._last_step = first_step
    # The metrics and the number of steps of each call not fetched yet.
    self._pending: list[tuple[dict[str, jax.Array], int]] = []
    self.losses, self.norms = list(losses), list(norms)
    self._instances = 0
    self._rate = 0.0
    self._compiled = False
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
    """Records the steps of one call; rarely waits for the device.

    Args:
      metrics: `loss` and `gradient_norm`, float32 [at least N], still on the
        device.
      instances: the number of answers that each of the N steps trained on.
    """
    count = len(instances)
    self._last_step += count
    self._pending.append((metrics, count))
    if not self._compiled:
      # Wait for the first call, so that no rate includes compilation.
      jax.block_until_ready(metrics)
      self._compiled = True
      self._since = time.monotonic()
    else:
      self._instances += sum(instances)
    now = time.monotonic()
    if now - self._shown > _SHOW_SECONDS:
      self._shown = now
      self._bar.write(self._record([float(metrics['loss'][count - 1])], [0.0]))
    self._bar.advance(count)

  def fetch(self) -> list[tuple[int, float, float]]:
    """Fetches the metrics of all steps added so far.

    Returns:
      Step, loss and gradient norm of each step that was not fetched before.
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
    """Writes a record of the fetched steps since the last one, if any."""
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
    """Writes a record of a validation after the last step.

    Args:
      results: the results of the task; those by relation are left out.
      description: the most important metrics in a line.
      is_best: whether no earlier validation was better.
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

  def sync(self) -> None:
    """Makes the records so far survive a power failure."""
    for writer in self._writers:
      writer.sync()

  def learning_rate(self, step: int) -> float:
    """Returns the learning rate of a step, counted from 1."""
    return float(self._schedule(step - 1))

  def _record(
    self, losses: Sequence[float], norms: Sequence[float]
  ) -> dict[str, Any]:
    """Returns the averages of some steps up to the last one."""
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
