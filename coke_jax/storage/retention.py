"""Which checkpoints are kept when a new one is written."""

from collections.abc import Sequence
from typing import Any

_NEWEST = 2  # The last but one is used if the last one is damaged.


class Retention:
  """Keeps the newest two checkpoints, and the best one of any age.

  Implements orbax's interface of a preservation policy.

  Attributes:
    best_step: the step of the best checkpoint; None if there is none yet.
  """

  def __init__(self) -> None:
    self.best_step: int | None = None

  def should_preserve(
    self, checkpoints: Sequence[Any], *, context: Any
  ) -> list[bool]:
    """Returns which of the checkpoints, oldest first, are kept."""
    del context
    oldest_kept = len(checkpoints) - _NEWEST
    return [
      index >= oldest_kept or info.step == self.best_step
      for index, info in enumerate(checkpoints)
    ]
