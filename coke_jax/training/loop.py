"""The training loop of one work folder: steps, validations, checkpoints.

If there are several processes (see `hosts`), all of them run the loop. Only
process 0 reads and writes files, except for checkpoints of shards.
"""

import contextlib
import dataclasses
import math
import time

import jax
import numpy as np

from coke_jax import errors, hosts, parallel
from coke_jax.model import parameters
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import agreement as agreement_lib
from coke_jax.training import (
  interruption,
  progress_log,
  train_state,
  train_step,
  writers,
)
from coke_jax.training import progress as progress_lib
from coke_jax.training import setup as setup_lib

ADVICE = (
  'training again in another --workdir, with a lower train.learning_rate or '
  "with model.dtype 'float32', may help"
)


class TrainingError(errors.CokeError, RuntimeError):
  """Training cannot continue, because a number is not finite."""


class Trainer:
  """Trains in a work folder, starting from the last checkpoint if there is one.

  Attributes:
    setup: the model, training set and optimizer.
    workdir: the files of the run.
    ranker: ranks the valid split. Its functions are compiled only once.
    progress: the number of steps done and the state of the validations.
  """

  def __init__(self, setup: setup_lib.Setup, workdir: workdir_lib.Workdir):
    """Prepares a training. Reads and writes nothing.

    Args:
      setup: the model, training set and optimizer.
      workdir: the work folder. It must contain the settings and data of the run
        before `run` is called.

    Raises:
      config.ConfigError: `train.tensorboard` is True, but tensorboardX is not
        installed.
    """
    self.setup = setup
    self.workdir = workdir
    config = setup.config
    self.ranker = setup.make_ranker()
    self.progress = progress_lib.Progress()
    if config.train.tensorboard:
      writers.import_tensorboard()
    # `run` sets these attributes.
    self._state: train_state.TrainState
    self._checkpoints: checkpoints_lib.Checkpoints
    self._log: progress_log.TrainingLog
    self._watch: interruption.Watch

  def run(self) -> train_state.TrainState:
    """Trains to the end.

    Returns:
      The last state, on all local devices.

    Raises:
      TrainingError: a loss, gradient, parameter or score is not finite.
      checkpoints.CheckpointError: a checkpoint cannot be read or written.
      interruption.Interruption: SIGINT or SIGTERM was received. The message
        states the step from which the training will continue.
    """
    with contextlib.ExitStack() as stack:
      placement = self.setup.placement
      if hosts.is_main() or placement.is_cut:
        self._checkpoints = stack.enter_context(
          self.workdir.checkpoints(writing=True, placement=placement)
        )
      self._restore()
      if self.progress.finished:
        print(f'{self.workdir.folder}: the training is already finished')
        return self._state
      self._watch = interruption.Watch()
      try:
        with self._open_log() as self._log, self._watch:
          self._loop()
        self._watch.check()
      except interruption.Interruption as stop:
        raise interruption.Interruption(
          stop.signal_number, self._saved_steps()
        ) from None
      return self._state

  def _restore(self) -> None:
    """Restores state and progress from the last checkpoint, if there is one."""
    is_cut, restored = self.setup.placement.is_cut, None
    if hosts.is_main() or is_cut:
      restored = self._checkpoints.latest(
        train_state.to_items(jax.eval_shape(self.setup.init_state))
      )
    if restored is not None and hosts.is_main():
      self.progress = progress_lib.restored(
        restored[1], self._checkpoints.steps()
      )
      print(
        f'{self.workdir.folder}: continuing after step '
        f'{self.progress.step:,} of {self.setup.num_steps:,}'
      )
    self.progress = progress_lib.Progress(
      **hosts.broadcast(dataclasses.asdict(self.progress))
    )
    if restored is not None:
      state = train_state.from_items(restored[0])
    elif is_cut:
      state = self.setup.init_placed()
    else:
      state = self.setup.init_state()
    if not is_cut:
      state = self.setup.placement.place(parallel.broadcast(state))
    self._state = state

  def _open_log(self) -> progress_log.TrainingLog:
    progress = self.progress
    bar = writers.ProgressBar(progress.step, self.setup.num_steps)
    all_writers: list[writers.Writer] = [bar]
    if hosts.is_main():
      metrics = self.workdir.metrics()
      # The records after the checkpoint are removed and will be written again.
      metrics.cut_after(
        progress.step,
        last_line=progress.step - len(progress.losses),
        validated=not progress.validation_pending,
      )
      all_writers.insert(0, writers.MetricsFile(metrics))
      if self.setup.config.train.tensorboard:
        folder = self.workdir.folder / 'tensorboard'
        all_writers.append(writers.TensorBoard(folder, progress.step))
    return progress_log.TrainingLog(
      all_writers,
      bar,
      self.setup.schedule,
      first_step=progress.step,
      num_steps=self.setup.num_steps,
      losses=progress.losses,
      norms=progress.norms,
      steps_per_epoch=self.setup.steps_per_epoch,
    )

  def _loop(self) -> None:
    progress, settings = self.progress, self.setup.config.train
    key = parameters.dropout_key(settings.seed)
    save_seconds = 60 * settings.checkpoint_every_minutes
    if progress.validation_pending:
      self._validate()
    saved_at = time.monotonic()
    agreement = agreement_lib.Agreement()
    # The first call includes the compilation. Before the first call ends,
    # nothing can be saved, so a signal ends the training immediately.
    first_call: contextlib.AbstractContextManager[None] = self._watch.at_once()
    before: dict[str, jax.Array] = {}
    while not progress.finished:
      for steps in self.setup.calls(progress.step):
        with first_call:
          self._state, metrics = self.setup.train_step(self._state, steps, key)
        first_call = contextlib.nullcontext()
        # Wait for the previous call. Otherwise, the host could be many calls
        # ahead of the devices and would react to a signal late.
        jax.block_until_ready(before)
        before = metrics
        progress.step += len(steps)
        self._log.add_steps(
          metrics, [train_step.count_instances(batch) for batch in steps]
        )
        progress.validation_pending = self.setup.validation_is_due(
          progress.step
        )
        if (
          progress.validation_pending
          or progress.step % settings.log_every_steps == 0
        ):
          self._check_steps()
          self._log.write_steps()
        saving_is_due, stop = agreement.reach(
          bool(save_seconds) and time.monotonic() - saved_at > save_seconds,
          self._watch.received,
        )
        if progress.validation_pending or saving_is_due or stop:
          self._save()
          saved_at = time.monotonic()
        if progress.validation_pending:
          self._validate()
        if hosts.num_processes() == 1:
          self._watch.check()
        elif stop:
          hosts.wait_for_all()  # Wait until process 0 has saved.
          raise interruption.Interruption(stop)
        if progress.finished:
          break

  def _check_steps(self) -> None:
    """Raises TrainingError if a loss or gradient norm is not finite."""
    for step, loss, norm in self._log.fetch():
      if not (math.isfinite(loss) and math.isfinite(norm)):
        raise TrainingError(
          f'step {step}: loss {loss} and gradient norm {norm} at learning rate '
          f'{self._log.learning_rate(step):.3g}: expected finite numbers; '
          'training stopped without saving the parameters after this step; '
          f'{ADVICE}'
        )

  def _save(self) -> None:
    """Writes a checkpoint after checking that every number is finite."""
    self._check_steps()
    placement, progress = self.setup.placement, self.progress
    if not hosts.is_main() and not placement.is_cut:
      return
    state = self._state if placement.is_cut else jax.device_get(self._state)
    for path, part in placement.own_parts(state):
      if not np.isfinite(part).all():
        raise TrainingError(
          f'step {progress.step}: {jax.tree_util.keystr(path)} is not finite '
          'after this step; training stopped without saving this step; '
          f'{ADVICE}'
        )
    progress.losses, progress.norms = self._log.losses, self._log.norms
    self._log.sync()
    self._checkpoints.save(
      progress.step, train_state.to_items(state), dataclasses.asdict(progress)
    )

  def _saved_steps(self) -> str:
    """Returns a sentence that states where the training will continue."""
    if not hosts.is_main():
      return 'process 0 states how to continue'
    steps = self._checkpoints.steps()
    place = f'step {steps[0]:,}' if steps else 'the start'
    again = f'train again with {self.workdir.folder} to continue'
    return f'{again} from {place} of {self.setup.num_steps:,}'

  def _validate(self) -> None:
    """Ranks the valid split and updates the metadata of the checkpoint.

    The checkpoint was written before the validation, so a signal may end the
    validation at any time. A continued training then validates again.
    """
    with self._watch.at_once():
      self._rank_valid()
    self.progress.validation_pending = False
    self._save()

  def _rank_valid(self) -> None:
    """Ranks the valid split, then updates `best_step` and `finished`.

    If the valid split is empty, `best_step` stays None.
    """
    progress, task = self.progress, self.setup.task
    progress.finished = progress.step >= self.setup.num_steps
    if not len(task.data.valid):
      return
    try:
      results = task.evaluate(
        self.ranker,
        self._state.params,
        'valid',
        choosing=True,
        progress='validation',
      )
    except errors.NonFiniteError as error:
      raise TrainingError(
        f'validation after step {progress.step}: {error}; {ADVICE}'
      ) from error
    metric = task.choosing_metric(results)
    is_best = progress.best_metric is None or metric > progress.best_metric
    if is_best:
      progress.best_metric, progress.best_step = metric, progress.step
    progress.stale_validations = (
      0 if is_best else progress.stale_validations + 1
    )
    self._log.write_validation(results, task.describe(results), is_best=is_best)
    patience = self.setup.config.train.early_stopping_validations
    if patience and progress.stale_validations >= patience:
      progress.finished = True
      self._log.say(
        'stopped early: none of the last '
        f'{patience} validations was better than {progress.best_metric:.4f}'
      )
