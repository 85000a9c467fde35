"""Selects the checkpoints to keep after a new checkpoint is written."""

from collections.abc import Sequence
from typing import Any

_NEWEST = 2  # The second newest is used if the newest is damaged.


class Retention:
  """Keeps the newest two checkpoints and the best one.

  Implements orbax's interface of a preservation policy.

  Attributes:
    best_step: the step of the best checkpoint. None if there is none yet.
  """

  def __init__(self) -> None:
    self.best_step: int | None = None

  def should_preserve(
    self, checkpoints: Sequence[Any], *, context: Any
  ) -> list[bool]:
    """Returns whether each checkpoint is kept.

    Args:
      checkpoints: orbax's descriptions of the checkpoints, oldest first.
      context: unused.
    """
    del context
    return self.kept([info.step for info in checkpoints])

  def kept(self, steps: Sequence[int]) -> list[bool]:
    """Returns whether the checkpoint of each step is kept.

    Args:
      steps: the steps of the checkpoints, in ascending order.
    """
    oldest_kept = len(steps) - _NEWEST
    return [
      index >= oldest_kept or step == self.best_step
      for index, step in enumerate(steps)
    ]
