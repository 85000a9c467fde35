"""Outputs of a training: a progress bar, metrics.jsonl and TensorBoard.

A writer receives records, which are the JSON objects of metrics.jsonl. A record
of kind `train` is written after every `train.log_every_steps` steps, and before
each validation. A record of kind `valid` is written after each validation.
"""

import pathlib
import sys
import time
from typing import Any, Protocol

from coke_jax import config as config_lib
from coke_jax import progress_bar
from coke_jax.storage import metrics_log


class Writer(Protocol):
  """Receives the records of a training."""

  def write(self, record: dict[str, Any]) -> None:
    """Reports a record."""

  def sync(self) -> None:
    """Waits until all records are on disk, if they are stored."""

  def close(self) -> None:
    """Flushes the records and closes all files."""


class MetricsFile:
  """Appends records to metrics.jsonl."""

  def __init__(self, log: metrics_log.MetricsLog):
    self._log = log

  def write(self, record: dict[str, Any]) -> None:
    """Appends a line, which is kept even if the process is killed."""
    self._log.append(record)

  def sync(self) -> None:
    """Waits until the lines are on disk."""
    self._log.sync()

  def close(self) -> None:
    """Does nothing, because `write` closes the file."""


class ProgressBar:
  """Shows steps, loss and speed in a progress bar on standard error."""

  def __init__(self, first_step: int, num_steps: int):
    """Starts the bar.

    Args:
      first_step: number of steps that are already done.
      num_steps: number of steps of the whole training.
    """
    interactive = sys.stderr is not None and sys.stderr.isatty()
    self._bar = progress_bar.create(
      'training',
      total=num_steps,
      initial=first_step,
      unit='step',
      mininterval=0.5 if interactive else 30,
      dynamic_ncols=True,
      postfix='compiling',
    )

  def advance(self, steps: int) -> None:
    """Moves the bar forward."""
    self._bar.update(steps)

  def advance_after_compilation(self, steps: int) -> None:
    """Moves the bar forward, and starts to measure the time.

    Before this call, the bar shows `compiling`. The estimates of the speed and
    of the remaining time ignore the time before this call.
    """
    bar = self._bar
    if bar.disable:
      return
    bar.set_postfix_str('', refresh=False)
    bar.n += steps
    bar.initial = bar.last_print_n = bar.n
    bar.start_t = bar.last_print_t = time.time()
    bar.refresh()

  def say(self, text: str) -> None:
    """Prints a line above the bar."""
    progress_bar.say(text, sys.stdout)

  def write(self, record: dict[str, Any]) -> None:
    """Shows the loss, learning rate and speed of a `train` record."""
    if record['kind'] == 'train':
      self._bar.set_postfix_str(
        f'loss {record["loss"]:.4f}, lr {record["learning_rate"]:.2e}, '
        f'{record["instances_per_second"]:,.0f} instances/s',
        refresh=False,
      )

  def sync(self) -> None:
    """Does nothing, because a bar is not stored."""

  def close(self) -> None:
    """Stops updating the bar and ends its line."""
    self._bar.close()


class TensorBoard:
  """Writes the metrics of records as TensorBoard events."""

  def __init__(self, folder: pathlib.Path, first_step: int):
    """Opens the event files.

    Args:
      folder: the folder of the event files.
      first_step: number of steps that are already done. TensorBoard hides
        events of later steps, which were written before an interruption.

    Raises:
      config.ConfigError: tensorboardX is not installed.
    """
    self._board = import_tensorboard().SummaryWriter(
      str(folder), purge_step=first_step + 1
    )

  def write(self, record: dict[str, Any]) -> None:
    """Adds one event for each float, with tags such as `valid/both/mrr`.

    Integers and more deeply nested values, such as `by_category`, are left out.
    """
    for name, value in record.items():
      values = value if isinstance(value, dict) else {'': value}
      for part, number in values.items():
        if isinstance(number, float):
          tag = '/'.join(filter(None, [record['kind'], name, part]))
          self._board.add_scalar(tag, number, record['step'])

  def sync(self) -> None:
    """Does nothing, because training does not read the events."""

  def close(self) -> None:
    """Flushes the event files."""
    self._board.close()


def import_tensorboard() -> Any:
  """Imports the module that writes TensorBoard events.

  Raises:
    config.ConfigError: tensorboardX is not installed.
  """
  try:
    import tensorboardX
  except ImportError:
    raise config_lib.ConfigError(
      'config.train.tensorboard is True, but tensorboardX is not installed: '
      "run pip install '.[tensorboard]'"
    ) from None
  return tensorboardX
