"""The training loop of one work folder: steps, validations, checkpoints."""

import dataclasses
import time
from typing import Any

import jax
import ml_collections

from coke_jax import (
  checkpoint,
  evaluation,
  parallel,
  tasks,
  training,
  training_log,
  workdir,
)
from coke_jax import config as config_lib


@dataclasses.dataclass
class Progress:
  """What a checkpoint says of the training besides its state.

  Attributes:
    step: steps done.
    best_step: the step that validated best so far.
    best_metric: its validation metric, see `tasks.Task.choosing_metric`.
    stale_validations: validations since then.
    finished: whether the training is over.
  """

  step: int = 0
  best_step: int | None = None
  best_metric: float | None = None
  stale_validations: int = 0
  finished: bool = False


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
    self.training_set = training.build_training_set(
      config, task.training_queries(), vocabulary.pad_id
    )
    self.steps_per_epoch = self.training_set.steps_per_epoch
    self.num_steps = self._steps(config.train.num_epochs)
    self.model = training.build_model(config, vocabulary, task.max_length)
    self.ranker = evaluation.Ranker(self.model, config.evaluate.batch_size)
    self.transformation, self.schedule = training.build_optimizer(
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
      training_log.import_tensorboard()

  def run(self) -> training.TrainState:
    """Trains to the end and returns the last state, replicated.

    Raises:
      training_log.TrainingError: a loss that is not finite; names the step.
    """
    with self.folder.checkpoints(writing=True) as checkpoints:
      state = self._start(checkpoints)
      if self.progress.finished:
        print(f'{self.folder.folder}: training was finished before')
        return state
      log = training_log.TrainingLog(
        self.folder,
        self.schedule,
        first_step=self.progress.step,
        num_steps=self.num_steps,
        steps_per_epoch=self.steps_per_epoch,
        log_every_steps=self.config.train.log_every_steps,
        tensorboard=self.config.train.tensorboard,
      )
      with log:
        return self._loop(state, checkpoints, log)

  def _steps(self, epochs: float) -> int:
    """Epochs in steps, at least 1."""
    return max(1, round(epochs * self.steps_per_epoch))

  def _start(self, checkpoints: checkpoint.Checkpoints) -> training.TrainState:
    state = training.init_state(
      self.model, self.transformation, self.config.train.seed
    )
    restored = checkpoints.latest(state)
    if restored is not None:
      state, metadata = restored
      self.progress = Progress(**metadata)
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
    state: training.TrainState,
    checkpoints: checkpoint.Checkpoints,
    log: training_log.TrainingLog,
  ) -> training.TrainState:
    step_function = training.make_train_step(
      self.model,
      self.transformation,
      target_mass=self.config.train.target_mass,
      instances_per_row=self.training_set.instances_per_row,
    )
    key = training.dropout_key(self.config.train.seed)
    save_seconds = 60 * self.config.train.checkpoint_every_minutes
    saved_at = time.monotonic()
    while not self.progress.finished:
      epoch, first = divmod(self.progress.step, self.steps_per_epoch)
      for batch in self.training_set.epoch(epoch, first):
        (state, metrics), _ = step_function(state, parallel.shard(batch), key)
        self.progress.step += 1
        log.step(metrics, training.count_instances(batch))
        saving_is_due = (
          save_seconds and time.monotonic() - saved_at > save_seconds
        )
        validating_is_due = self._validating_is_due()
        if validating_is_due or saving_is_due:
          log.check()  # so that no checkpoint holds unchecked parameters
          if validating_is_due:
            log.flush()
            self._validate(state, log)
          checkpoints.save(
            self.progress.step, state, dataclasses.asdict(self.progress)
          )
          saved_at = time.monotonic()
        if self.progress.finished:
          break
    return state

  def _validating_is_due(self) -> bool:
    step, every = self.progress.step, self.config.train.validate_every_epochs
    if step >= self.num_steps:
      return True
    return every > 0 and step % self._steps(every) == 0

  def _validate(
    self, state: training.TrainState, log: training_log.TrainingLog
  ) -> None:
    """Measures the valid split and notes the best step, and whether it is over.

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
    except FloatingPointError as error:
      raise training_log.TrainingError(
        f'validation after step {progress.step}: {error}; {training_log.ADVICE}'
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


def load_best_params(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  folder: workdir.Workdir,
) -> tuple[Any, int]:
  """Replicated parameters of a work folder's best checkpoint, and its step.

  Raises:
    checkpoint.CheckpointError: there is none, or it is damaged.
  """
  model = training.build_model(config, task.data.vocabulary, task.max_length)
  transformation, _ = training.build_optimizer(config, 1)
  template = jax.eval_shape(
    lambda: training.init_state(model, transformation, config.train.seed)
  )
  with folder.checkpoints(writing=False) as checkpoints:
    restored = checkpoints.best(template)
  if restored is None:
    raise checkpoint.CheckpointError(
      f'{folder.folder}: no checkpoint yet: train first'
    )
  state, metadata = restored
  return parallel.replicate(state.params), metadata['step']
