"""Our training steps, as `coke_jax/trainer.py` takes them."""

import tempfile
from collections.abc import Iterable

import jax
import ml_collections

from coke_jax import parallel, tasks
from coke_jax.data import batches as batches_lib
from coke_jax.model import encoder
from coke_jax.storage import workdir
from coke_jax.training import loop, train_state, train_step


class Steps:
  """See `stepping.Stepper`.

  Attributes:
    num_steps: of the whole training.
  """

  whole_last_block = False

  def __init__(self, config: ml_collections.ConfigDict, task: tasks.Task):
    with tempfile.TemporaryDirectory() as folder:  # nothing is written there
      worker = loop.Trainer(config, task, workdir.Workdir(folder))
    self.training_set = worker.training_set
    self.num_steps = worker.num_steps
    self.steps_per_call = config.train.steps_per_call
    self._step = train_step.make_train_step(
      worker.model,
      worker.transformation,
      target_mass=config.train.target_mass,
      weight_per_row=worker.training_set.weight_per_row,
      steps_per_call=self.steps_per_call,
    )
    self._key = encoder.dropout_key(config.train.seed)
    self._state = parallel.replicate(
      train_state.init_state(
        worker.model, worker.transformation, config.train.seed
      )
    )

  def run(self, batches: Iterable[batches_lib.Batch]) -> None:
    """Trains on each batch and returns when the device has done it all."""
    before: dict[str, jax.Array] = {}
    for run in batches_lib.runs(batches, self.steps_per_call, lambda _: False):
      self._state, metrics = self._step(self._state, run, self._key)
      jax.block_until_ready(before)  # the host is one call ahead, and no more
      before = metrics
    jax.block_until_ready((self._state, before))

  def device_memory(self) -> int | None:
    """The most bytes it took of the accelerator's memory; None: has none."""
    return peak_device_memory()


def peak_device_memory() -> int | None:
  """The most bytes taken of one accelerator's memory; None: there is none."""
  statistics = jax.local_devices()[0].memory_stats()  # a CPU has None
  return statistics['peak_bytes_in_use'] if statistics else None
