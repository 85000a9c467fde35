"""The training loop of one work folder: steps, validations, checkpoints."""

import contextlib
import dataclasses
import time
from collections.abc import Iterator

import jax
import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import errors, parallel, tasks
from coke_jax.data import batches
from coke_jax.evaluate import ranker
from coke_jax.model import encoder
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import workdir
from coke_jax.training import (
  interruption,
  progress_log,
  train_state,
  train_step,
)


@dataclasses.dataclass
class Progress:
  """What a checkpoint says of the training besides its state.

  Attributes:
    step: steps done.
    best_step: the step that validated best so far.
    best_metric: its validation metric, see `tasks.Task.choosing_metric`.
    stale_validations: validations since then.
    finished: whether the training is over.
    validation_pending: whether the validation after this step is still to come.
    losses: of the steps since the last line of metrics.jsonl; None in
      checkpoints of earlier versions.
    norms: likewise, the gradients' norms.
  """

  step: int = 0
  best_step: int | None = None
  best_metric: float | None = None
  stale_validations: int = 0
  finished: bool = False
  validation_pending: bool = False
  losses: list[float] | None = None
  norms: list[float] | None = None


class Trainer:
  """Trains one model in one work folder, from its last checkpoint on."""

  def __init__(
    self,
    config: ml_collections.ConfigDict,
    task: tasks.Task,
    folder: workdir.Workdir,
  ):
    self.config = config
    self.task = task
    self.folder = folder
    vocabulary = task.data.vocabulary
    self.training_set = train_step.build_training_set(
      config, task.training_queries(), vocabulary.pad_id
    )
    self.steps_per_epoch = self.training_set.steps_per_epoch
    self.num_steps = self._steps(config.train.num_epochs)
    self.model = tasks.build_model(config, vocabulary, task.max_length)
    self.ranker = ranker.Ranker(self.model, config.evaluate.batch_size)
    self.transformation, self.schedule = train_state.build_optimizer(
      config, self.num_steps
    )
    self.progress = Progress()
    if config.train.early_stopping_validations and not len(task.data.valid):
      raise config_lib.ConfigError(
        f'config.train.early_stopping_validations is '
        f'{config.train.early_stopping_validations}: expected 0: the valid '
        'split is empty'
      )
    if config.train.tensorboard:
      progress_log.import_tensorboard()

  def run(self) -> train_state.TrainState:
    """Trains to the end and returns the last state, replicated.

    Raises:
      progress_log.TrainingError: a number that is not finite; names the step.
      checkpoints.CheckpointError: checkpoints that cannot be read or written.
      interruption.Interruption: a signal asked to stop; all is saved.
    """
    with self.folder.checkpoints(writing=True) as checkpoints:
      state = self._start(checkpoints)
      if self.progress.finished:
        print(f'{self.folder.folder}: training was finished before')
        return state
      progress = self.progress
      log = progress_log.TrainingLog(
        self.folder,
        self.schedule,
        first_step=progress.step,
        losses=progress.losses,
        norms=progress.norms or [],
        validated=not progress.validation_pending,
        num_steps=self.num_steps,
        steps_per_epoch=self.steps_per_epoch,
        log_every_steps=self.config.train.log_every_steps,
        tensorboard=self.config.train.tensorboard,
      )
      watch = interruption.Watch()
      try:
        with log, watch:
          state = self._loop(state, checkpoints, log, watch)
        watch.check()
      except interruption.Interruption as stop:
        raise interruption.Interruption(
          stop.signal_number, self._what_is_saved(checkpoints)
        ) from None
      return state

  def _steps(self, epochs: float) -> int:
    """Epochs in steps, at least 1."""
    return max(1, round(epochs * self.steps_per_epoch))

  def _start(
    self, checkpoints: checkpoints_lib.Checkpoints
  ) -> train_state.TrainState:
    state = train_state.init_state(
      self.model, self.transformation, self.config.train.seed
    )
    restored = checkpoints.latest(state)
    if restored is not None:
      state, metadata = restored
      try:
        self.progress = Progress(**metadata)
      except TypeError as error:
        raise checkpoints_lib.CheckpointError(
          f'{self.folder.folder}: the checkpoints are of another version of '
          f'this program: {error}'
        ) from error
      if self.progress.best_step not in (None, *checkpoints.steps()):
        # It went when later checkpoints came that are damaged now.
        self.progress.best_step = self.progress.best_metric = None
        self.progress.stale_validations = 0
      print(
        f'{self.folder.folder}: continuing after step {self.progress.step:,} '
        f'of {self.num_steps:,}'
      )
    return parallel.replicate(state)

  def _loop(
    self,
    state: train_state.TrainState,
    checkpoints: checkpoints_lib.Checkpoints,
    log: progress_log.TrainingLog,
    watch: interruption.Watch,
  ) -> train_state.TrainState:
    progress = self.progress
    step_function = train_step.make_train_step(
      self.model,
      self.transformation,
      target_mass=self.config.train.target_mass,
      weight_per_row=self.training_set.weight_per_row,
      steps_per_call=self.config.train.steps_per_call,
    )
    key = encoder.dropout_key(self.config.train.seed)
    save_seconds = 60 * self.config.train.checkpoint_every_minutes
    if progress.validation_pending:
      self._validate(state, checkpoints, log, watch)
    saved_at = time.monotonic()
    # Until the first call is compiled and done there is nothing to be saved.
    first_call: contextlib.AbstractContextManager[None] = watch.at_once()
    before: dict[str, jax.Array] = {}
    while not progress.finished:
      for run in self._runs_of_epoch():
        with first_call:
          state, metrics = step_function(state, run, key)
        first_call = contextlib.nullcontext()
        # The host prepares one call ahead of the devices, and no more, so that
        # a signal is answered soon.
        jax.block_until_ready(before)
        before = metrics
        progress.step += len(run)
        log.steps(metrics, [train_step.count_instances(batch) for batch in run])
        saving_is_due = watch.received or (
          save_seconds and time.monotonic() - saved_at > save_seconds
        )
        progress.validation_pending = self._validating_is_due(progress.step)
        if progress.validation_pending:
          log.flush()
        if progress.validation_pending or saving_is_due:
          self._save(state, checkpoints, log)
          saved_at = time.monotonic()
        if progress.validation_pending:
          self._validate(state, checkpoints, log, watch)
        watch.check()
        if progress.finished:
          break
    return state

  def _save(
    self,
    state: train_state.TrainState,
    checkpoints: checkpoints_lib.Checkpoints,
    log: progress_log.TrainingLog,
  ) -> None:
    """Writes a checkpoint of what is proved to be finite."""
    log.check()
    progress, host = self.progress, jax.device_get(state)
    for path, leaf in jax.tree_util.tree_leaves_with_path(host):
      if not np.isfinite(leaf).all():
        raise progress_log.TrainingError(
          f'step {progress.step}: {jax.tree_util.keystr(path)} is not finite '
          f'after it, so training stopped and nothing from then on was saved; '
          f'{progress_log.ADVICE}'
        )
    progress.losses, progress.norms = log.losses, log.norms
    log.sync()
    checkpoints.save(progress.step, host, dataclasses.asdict(progress))

  def _what_is_saved(self, checkpoints: checkpoints_lib.Checkpoints) -> str:
    """What a person reads who has stopped the training."""
    steps = checkpoints.steps()
    done = f'step {steps[0]:,} of {self.num_steps:,}' if steps else 'the start'
    return f'{self.folder.folder} goes on from {done} when trained again'

  def _runs_of_epoch(self) -> Iterator[list[batches.Batch]]:
    """The rest of this epoch, cut where the host has something to do."""
    done = self.progress.step
    log_every = self.config.train.log_every_steps

    def ends(number: int) -> bool:
      step = done + number
      return step % log_every == 0 or self._validating_is_due(step)

    epoch, first = divmod(done, self.steps_per_epoch)
    return batches.runs(
      self.training_set.epoch(epoch, first),
      self.config.train.steps_per_call,
      ends,
    )

  def _validating_is_due(self, step: int) -> bool:
    every = self.config.train.validate_every_epochs
    if step >= self.num_steps:
      return True
    return every > 0 and step % self._steps(every) == 0

  def _validate(
    self,
    state: train_state.TrainState,
    checkpoints: checkpoints_lib.Checkpoints,
    log: progress_log.TrainingLog,
    watch: interruption.Watch,
  ) -> None:
    """Measures the valid split and notes it in the checkpoint of this step.

    The checkpoint is there before, so that the validation can be left at any
    moment, and is made up for when training goes on.
    """
    with watch.at_once():
      self._measure(state, log)
    self.progress.validation_pending = False
    self._save(state, checkpoints, log)

  def _measure(
    self, state: train_state.TrainState, log: progress_log.TrainingLog
  ) -> None:
    """Measures the valid split; notes the best step, and whether it is over.

    With an empty valid split the last checkpoint counts as the best.
    """
    progress = self.progress
    progress.finished = progress.step >= self.num_steps
    if not len(self.task.data.valid):
      return
    try:
      results = self.task.evaluate(
        self.ranker, state.params, 'valid', choosing=True, progress='validation'
      )
    except errors.NonFiniteError as error:
      raise progress_log.TrainingError(
        f'validation after step {progress.step}: {error}; {progress_log.ADVICE}'
      ) from error
    metric = self.task.choosing_metric(results)
    is_best = progress.best_metric is None or metric > progress.best_metric
    if is_best:
      progress.best_metric, progress.best_step = metric, progress.step
    progress.stale_validations = (
      0 if is_best else progress.stale_validations + 1
    )
    log.validation(results, self.task.describe(results), is_best=is_best)
    patience = self.config.train.early_stopping_validations
    if patience and progress.stale_validations >= patience:
      progress.finished = True
      log.say(
        f'stopped early: nothing better than {progress.best_metric:.4f} in '
        f'{patience} validations'
      )
