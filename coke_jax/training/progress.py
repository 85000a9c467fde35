"""The progress of a training, which is stored with every checkpoint."""

import dataclasses
from collections.abc import Sequence
from typing import Any


@dataclasses.dataclass
class Progress:
  """The progress of a training: the content of a checkpoint except the arrays.

  Attributes:
    step: number of steps done.
    best_step: the step with the best validation so far. None before the first
      validation.
    best_metric: the validation metric of `best_step`. See
      `tasks.Task.choosing_metric`.
    stale_validations: number of validations after `best_step`.
    finished: whether the training is over.
    validation_pending: whether the validation after `step` is due, but not
      done.
    losses: the loss of each step since the last record in metrics.jsonl.
    norms: the gradient norm of each step since the last record.
  """

  step: int = 0
  best_step: int | None = None
  best_metric: float | None = None
  stale_validations: int = 0
  finished: bool = False
  validation_pending: bool = False
  losses: list[float] = dataclasses.field(default_factory=list)
  norms: list[float] = dataclasses.field(default_factory=list)


def restored(metadata: dict[str, Any], steps: Sequence[int]) -> Progress:
  """Returns the progress that a checkpoint contains.

  Args:
    metadata: the metadata of the checkpoint.
    steps: the steps of all checkpoints.
  """
  progress = Progress(**metadata)
  if progress.best_step not in (None, *steps):
    # The checkpoint of `best_step` was deleted when a later checkpoint became
    # the best. The later checkpoint is damaged, or this one would not be
    # restored. So no checkpoint counts as the best.
    progress.best_step = progress.best_metric = None
    progress.stale_validations = 0
  return progress
