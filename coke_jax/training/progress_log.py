"""What a training says while it runs: a bar, metrics.jsonl, TensorBoard."""

import math
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax
import optax
import tqdm

from coke_jax import config as config_lib
from coke_jax import errors
from coke_jax.storage import workdir

_SHOW_SECONDS = 2.0  # between two looks at the loss for the progress bar
ADVICE = (
  "a lower train.learning_rate or model.dtype 'float32', in another --workdir, "
  'may help'
)


class TrainingError(errors.CokeError, RuntimeError):
  """A run that cannot go on, with the reason."""


class TrainingLog:
  """Takes note of steps and validations; use it as a context manager.

  Losses stay on the device until a line is due, so that the host does not wait
  for every step.

  Attributes:
    losses: of the steps since the last line, as far as `check` has seen them.
    norms: the norms of their gradients.
  """

  def __init__(
    self,
    folder: workdir.Workdir,
    schedule: optax.Schedule,
    *,
    first_step: int,
    losses: list[float] | None,
    norms: list[float],
    validated: bool,
    num_steps: int,
    steps_per_epoch: int,
    log_every_steps: int,
    tensorboard: bool,
  ):
    """Goes on with the log of a work folder.

    Args:
      folder: whose metrics.jsonl goes on; lines after `first_step`, which will
        be written again, are taken out.
      schedule: the learning rate by step.
      first_step: steps done before.
      losses: of those since the last line; see the attribute. None: unknown.
      norms: likewise.
      validated: whether a validation after `first_step` is over.
      num_steps: steps of the whole training.
      steps_per_epoch: likewise of an epoch.
      log_every_steps: steps between two lines.
      tensorboard: whether to write TensorBoard events.
    """
    self._metrics = folder.metrics()
    self._metrics.cut_after(
      first_step,
      last_line=None if losses is None else first_step - len(losses),
      validated=validated,
    )
    self._schedule = schedule
    self._steps_per_epoch = steps_per_epoch
    self._log_every_steps = log_every_steps
    self._last_step = first_step
    # Of each call that was not looked at yet, its metrics and its steps.
    self._pending: list[tuple[dict[str, jax.Array], int]] = []
    self.losses, self.norms = list(losses or []), list(norms)
    self._instances = 0
    self._rate = 0.0
    self._compiled = False
    self._since = self._shown = time.monotonic()
    self._bar = tqdm.tqdm(
      total=num_steps,
      initial=first_step,
      unit='step',
      desc='training',
      mininterval=0.5 if sys.stderr.isatty() else 30,
      dynamic_ncols=True,
    )
    self._board = None
    if tensorboard:
      self._board = import_tensorboard().SummaryWriter(
        str(folder.folder / 'tensorboard'), purge_step=first_step + 1
      )

  def __enter__(self) -> 'TrainingLog':
    return self

  def __exit__(self, *_: object) -> None:
    self._bar.close()
    if self._board is not None:
      self._board.close()

  def say(self, text: str) -> None:
    """Prints a line above the progress bar."""
    self._bar.write(text)

  def steps(
    self, metrics: dict[str, jax.Array], instances: Sequence[int]
  ) -> None:
    """Takes note of the steps of one call; seldom waits for the device.

    Args:
      metrics: `loss` and `gradient_norm`, float32 [at least N], still on the
        device.
      instances: how many answers each of the N steps trained on.
    """
    count = len(instances)
    self._last_step += count
    self._pending.append((metrics, count))
    if not self._compiled:  # wait for it, so that no rate contains compiling
      jax.block_until_ready(metrics)
      self._compiled = True
      self._since = time.monotonic()
    else:
      self._instances += sum(instances)
    if self._last_step % self._log_every_steps == 0:
      self.flush()
    elif time.monotonic() - self._shown > _SHOW_SECONDS:
      self._show(float(metrics['loss'][count - 1]))
    self._bar.update(count)

  def check(self) -> None:
    """Fetches the steps since the last look and checks them.

    Raises:
      TrainingError: a loss or a gradient is not a finite number.
    """
    fetched = [
      (float(metrics['loss'][index]), float(metrics['gradient_norm'][index]))
      for metrics, count in jax.device_get(self._pending)
      for index in range(count)
    ]
    first = self._last_step - len(fetched) + 1
    for step, (loss, norm) in enumerate(fetched, first):
      if not (math.isfinite(loss) and math.isfinite(norm)):
        raise TrainingError(
          f'step {step}: loss {loss}, gradient norm {norm}, learning rate '
          f'{self._learning_rate(step):.3g}: not finite, so training stopped '
          f'and no parameters from then on were saved; {ADVICE}'
        )
      self.losses.append(loss)
      self.norms.append(norm)
    self._pending = []

  def flush(self) -> None:
    """Checks the steps since the last line and writes a line.

    Raises:
      TrainingError: a loss or a gradient is not a finite number.
    """
    self.check()
    if not self.losses:
      return
    if self._instances:
      self._rate = self._instances / (time.monotonic() - self._since)
    self._write(
      {
        'kind': 'train',
        'step': self._last_step,
        'epoch': self._last_step / self._steps_per_epoch,
        'loss': sum(self.losses) / len(self.losses),
        'gradient_norm': sum(self.norms) / len(self.norms),
        'learning_rate': self._learning_rate(self._last_step),
        'instances_per_second': self._rate,
      }
    )
    self._show(sum(self.losses) / len(self.losses))
    self.losses, self.norms, self._instances = [], [], 0
    self._since = time.monotonic()

  def validation(
    self, results: dict[str, Any], description: str, *, is_best: bool
  ) -> None:
    """Takes note of a validation after the last step.

    Args:
      results: what the task measured; per-relation results are not logged.
      description: its metrics in a line.
      is_best: whether none was better so far.
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
    """Makes the lines so far outlast a power cut, too."""
    self._metrics.sync()

  def _learning_rate(self, step: int) -> float:
    return float(self._schedule(step - 1))

  def _show(self, loss: float) -> None:
    self._shown = now = time.monotonic()
    rate = self._rate or self._instances / (now - self._since + 1e-9)
    self._bar.set_postfix_str(
      f'loss {loss:.4f}, lr {self._learning_rate(self._last_step):.2e}, '
      f'{rate:,.0f} instances/s',
      refresh=False,
    )

  def _write(self, line: dict[str, Any]) -> None:
    self._metrics.append(line)
    if self._board is None:
      return
    for name, value in line.items():
      values = value if isinstance(value, dict) else {'': value}
      for part, number in values.items():
        if isinstance(number, float):
          tag = '/'.join(filter(None, [line['kind'], name, part]))
          self._board.add_scalar(tag, number, line['step'])


def import_tensorboard() -> Any:
  """The module that writes TensorBoard events.

  Raises:
    config.ConfigError: it is not installed.
  """
  try:
    import tensorboardX
  except ImportError:
    raise config_lib.ConfigError(
      "config.train.tensorboard is True: needs pip install '.[tensorboard]'"
    ) from None
  return tensorboardX
