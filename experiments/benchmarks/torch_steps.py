"""The training steps of `torch_model.CoKE`, for comparison with coke_jax."""

from collections.abc import Callable, Iterable

import ml_collections
import torch

from coke_jax import tasks
from coke_jax.data import batches as batches_lib
from coke_jax.training import setup as setup_lib
from experiments.benchmarks import torch_model

_CLASSES = {'float32': torch.float32, 'bfloat16': torch.bfloat16}


class Steps:
  """The steps of PyTorch, on a GPU if there is one; see `stopwatch.Stepper`."""

  steps_per_call = 1
  whole_last_block = True

  def __init__(self, config: ml_collections.ConfigDict, task: tasks.Task):
    """Builds the model and the optimizer.

    Args:
      config: the settings. If `model.dtype` is bfloat16, autocast is used.
      task: the task to train on.
    """
    vocabulary = task.data.vocabulary
    self.training_set = setup_lib.build_training_set(
      config, task.training_queries(), vocabulary
    )
    self.device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
    torch.manual_seed(config.train.seed)
    settings = config.model
    self.model = torch_model.CoKE(
      num_entities=vocabulary.num_entities,
      num_tokens=vocabulary.num_tokens,
      max_length=task.max_length,
      num_layers=settings.num_layers,
      hidden_size=settings.hidden_size,
      num_heads=settings.num_heads,
      feed_forward_size=settings.feed_forward_size,
      dropout=settings.dropout,
    ).to(self.device)
    self._dtype = _CLASSES[settings.dtype]
    self._target_mass = config.train.target_mass
    self._clip_norm = config.train.clip_norm
    # On a GPU, computes float32 products as TF32 on tensor cores, as jax does.
    torch.set_float32_matmul_precision('high')
    self._optimizer = torch.optim.AdamW(
      self.model.parameters(),
      lr=config.train.learning_rate,
      betas=(0.9, 0.999),
      eps=1e-6,
      weight_decay=config.train.weight_decay,
      fused=True,
    )
    num_steps = round(
      config.train.num_epochs * self.training_set.steps_per_epoch
    )
    self._schedule = torch.optim.lr_scheduler.LambdaLR(
      self._optimizer,
      warmup_and_decay(num_steps, config.train.warmup_fraction),
    )

  def run(self, batches: Iterable[batches_lib.Batch]) -> None:
    """Trains on each batch and returns when the device has finished."""
    for batch in batches:
      self.last_loss = self.loss(*self._to_device(batch))
      self.last_loss.backward()
      torch.nn.utils.clip_grad_norm_(self.model.parameters(), self._clip_norm)
      self._optimizer.step()
      self._schedule.step()
      self._optimizer.zero_grad(set_to_none=True)
    if self.device.type == 'cuda':
      torch.cuda.synchronize()

  def device_memory(self) -> int | None:
    """Returns the peak bytes of an accelerator's memory; None on a CPU."""
    if self.device.type != 'cuda':
      return None
    most: int = torch.cuda.max_memory_allocated()
    return most

  def loss(
    self,
    tokens: torch.Tensor,
    mask_position: torch.Tensor,
    answers: torch.Tensor,
  ) -> torch.Tensor:
    """Computes the mean loss of a batch, float32 []."""
    with torch.autocast(
      self.device.type, self._dtype, enabled=self._dtype != torch.float32
    ):
      logits = self.model(tokens, mask_position)
    return torch_model.loss(logits, answers, self._target_mass)

  def _to_device(self, batch: batches_lib.Batch) -> list[torch.Tensor]:
    """Returns tokens [B, K], mask_position [B] and one answer per row [B]."""
    arrays = (
      batch['tokens'],
      batch['mask_position'],
      batch['answers'][:, 0].astype('int64'),
    )
    return [
      torch.from_numpy(array).to(self.device, non_blocking=True)
      for array in arrays
    ]


def warmup_and_decay(
  num_steps: int, warmup_fraction: float
) -> Callable[[int], float]:
  """Returns a function that maps a step to its factor of the learning rate.

  The factors are those of `optimizer.learning_rate_schedule`.
  """
  warmup = round(num_steps * warmup_fraction)

  def factor(step: int) -> float:
    if step < warmup:
      return (step + 1) / max(warmup, 1)
    return max(1 - (step - warmup) / max(num_steps - warmup, 1), 0.0)

  return factor
