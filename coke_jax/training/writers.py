"""Where a training reports: a progress bar, metrics.jsonl, TensorBoard.

A writer receives records, the JSON objects of metrics.jsonl: of kind `train`
after every `train.log_every_steps` steps, and of kind `valid` after each
validation.
"""

import pathlib
import sys
from typing import Any, Protocol

import tqdm

from coke_jax import config as config_lib
from coke_jax.storage import metrics_log


class Writer(Protocol):
  """Receives the records of a training."""

  def write(self, record: dict[str, Any]) -> None:
    """Reports a record."""

  def sync(self) -> None:
    """Makes the records so far survive a power failure."""

  def close(self) -> None:
    """Flushes and releases everything."""


class MetricsFile:
  """Appends records to metrics.jsonl."""

  def __init__(self, log: metrics_log.MetricsLog):
    self._log = log

  def write(self, record: dict[str, Any]) -> None:
    """Appends a line; it is not lost if the process is killed afterwards."""
    self._log.append(record)

  def sync(self) -> None:
    """Waits until the lines are on disk."""
    self._log.sync()

  def close(self) -> None:
    """Does nothing: the file is not kept open."""


class ProgressBar:
  """Shows steps, loss and speed on standard error, and validations above."""

  def __init__(self, first_step: int, num_steps: int):
    """Starts the bar.

    Args:
      first_step: steps done before.
      num_steps: steps of the whole training.
    """
    self._bar = tqdm.tqdm(
      total=num_steps,
      initial=first_step,
      unit='step',
      desc='training',
      mininterval=0.5 if sys.stderr.isatty() else 30,
      dynamic_ncols=True,
    )

  def advance(self, steps: int) -> None:
    """Moves the bar forward."""
    self._bar.update(steps)

  def say(self, text: str) -> None:
    """Prints a line above the bar."""
    self._bar.write(text)

  def write(self, record: dict[str, Any]) -> None:
    """Shows the loss, learning rate and speed of a `train` record."""
    if record['kind'] == 'train':
      self._bar.set_postfix_str(
        f'loss {record["loss"]:.4f}, lr {record["learning_rate"]:.2e}, '
        f'{record["instances_per_second"]:,.0f} instances/s',
        refresh=False,
      )

  def sync(self) -> None:
    """Does nothing: a bar is not stored."""

  def close(self) -> None:
    """Leaves the bar as it is and ends its line."""
    self._bar.close()


class TensorBoard:
  """Writes every number of a record as a TensorBoard event."""

  def __init__(self, folder: pathlib.Path, first_step: int):
    """Opens the event files.

    Args:
      folder: where they are.
      first_step: steps done before; later events of an interrupted run are
        hidden.

    Raises:
      config.ConfigError: tensorboardX is not installed.
    """
    self._board = import_tensorboard().SummaryWriter(
      str(folder), purge_step=first_step + 1
    )

  def write(self, record: dict[str, Any]) -> None:
    """Adds one event per number, with tags such as `valid/both/mrr`."""
    for name, value in record.items():
      values = value if isinstance(value, dict) else {'': value}
      for part, number in values.items():
        if isinstance(number, float):
          tag = '/'.join(filter(None, [record['kind'], name, part]))
          self._board.add_scalar(tag, number, record['step'])

  def sync(self) -> None:
    """Does nothing: events are for looking at, not for resuming."""

  def close(self) -> None:
    """Flushes the event files."""
    self._board.close()


def import_tensorboard() -> Any:
  """Imports the module that writes TensorBoard events.

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
