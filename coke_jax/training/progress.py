"""How far a training is; stored with every checkpoint."""

import dataclasses


@dataclasses.dataclass
class Progress:
  """How far a training is: the part of a checkpoint that is not arrays.

  Attributes:
    step: steps done.
    best_step: the step with the best validation so far; None before the first.
    best_metric: its validation metric, see `tasks.Task.choosing_metric`.
    stale_validations: validations since then.
    finished: whether the training is over.
    validation_pending: whether the validation after this step is still to come.
    losses: of the steps since the last record in metrics.jsonl.
    norms: gradient norms of the same steps.
  """

  step: int = 0
  best_step: int | None = None
  best_metric: float | None = None
  stale_validations: int = 0
  finished: bool = False
  validation_pending: bool = False
  losses: list[float] = dataclasses.field(default_factory=list)
  norms: list[float] = dataclasses.field(default_factory=list)
