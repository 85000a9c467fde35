"""Builds the model, training set, optimizer and train step from a config."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import ml_collections
import optax

from coke_jax import config as config_lib
from coke_jax import hosts, parallel, tasks
from coke_jax.data import batches, fresh_walks
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import chunked_loss, regularization
from coke_jax.shards import placement as placement_lib
from coke_jax.training import optimizer, train_state, train_step


class Setup:
  """The model, training set, optimizer and train step of one training.

  Attributes:
    config: the settings.
    task: the task and its data.
    model: the encoder.
    placement: how the state is distributed over the devices.
    training_set: the batches of every epoch.
    steps_per_epoch: number of steps in an epoch.
    num_steps: number of steps of the whole training.
    transformation: the optimizer.
    schedule: the learning rate as a function of the step, counted from 0.
  """

  def __init__(self, config: ml_collections.ConfigDict, task: tasks.Task):
    """Builds the model, training set and optimizer. Compiles nothing.

    Args:
      config: valid settings.
      task: the task and its data.

    Raises:
      config.ConfigError: a setting does not fit the data.
      parallel.DeviceError: the devices cannot share a batch evenly.
    """
    self.config = config
    self.task = task
    vocabulary = task.data.vocabulary
    self.model = tasks.build_model(config, vocabulary, task.max_length)
    self.placement = tasks.build_placement(config, self.model)
    self.training_set = build_training_set(
      config, task.training_queries(), vocabulary, task.walks
    )
    self.steps_per_epoch = self.training_set.steps_per_epoch
    self.num_steps = self.steps(config.train.num_epochs)
    self.transformation, self.schedule = build_optimizer(
      config, self.num_steps, self.placement
    )
    if config.train.early_stopping_validations and not len(task.data.valid):
      raise config_lib.ConfigError(
        f'config.train.early_stopping_validations is '
        f'{config.train.early_stopping_validations}: expected 0, because the '
        'valid split is empty'
      )

  def steps(self, epochs: float) -> int:
    """Converts a number of epochs to a number of steps, at least 1."""
    return max(1, round(epochs * self.steps_per_epoch))

  def init_state(self) -> train_state.TrainState:
    """Creates the state before the first step, from the seed."""
    return train_state.init_state(
      self.model, self.transformation, self.config.train.seed
    )

  def init_placed(self) -> train_state.TrainState:
    """Creates the state of `init_state` on the devices."""
    return train_state.init_placed(
      self.model,
      self.transformation,
      self.config.train.seed,
      self.placement,
    )

  def make_ranker(self) -> ranker_lib.Ranker:
    """Returns a ranker for parameters on the devices."""
    return ranker_lib.Ranker(
      self.model,
      self.config.evaluate.batch_size,
      placement=self.placement,
    )

  @functools.cached_property
  def train_step(self) -> Callable[..., Any]:
    """The step function, see `train_step.make_train_step`."""
    settings = self.config.train
    return train_step.make_train_step(
      self.model,
      self.transformation,
      target_mass=settings.target_mass,
      penalties=penalties(self.config),
      answers_per_row=self.training_set.mean_answers_per_row,
      steps_per_call=settings.steps_per_call,
      chunk_size=chunk_size(settings, self.model.num_entities, self.placement),
      update_rows=settings.candidates > 0
      and settings.optimizer == 'adagrad'
      and settings.weight_decay == 0,
      placement=self.placement,
    )

  def calls(self, done: int) -> Iterator[list[batches.Batch]]:
    """Yields the batches of each call of the train step until an epoch ends.

    A call has at most `train.steps_per_call` steps. If a record or a validation
    is due after a step, this step is the last of its call.

    Args:
      done: the number of steps done.
    """
    log_every = self.config.train.log_every_steps

    def ends(number: int) -> bool:
      step = done + number
      return step % log_every == 0 or self.validation_is_due(step)

    epoch, first = divmod(done, self.steps_per_epoch)
    return batches.chunks(
      self.training_set.epoch(epoch, first),
      self.config.train.steps_per_call,
      ends,
    )

  def validation_is_due(self, step: int) -> bool:
    """Returns whether the valid split is to be ranked after a step."""
    every = self.config.train.validate_every_epochs
    if step >= self.num_steps:
      return True
    return every > 0 and step % self.steps(every) == 0


def chunk_size(
  settings: ml_collections.ConfigDict,
  num_entities: int,
  placement: placement_lib.Placement | None = None,
) -> int:
  """Returns the number of entities whose logits are computed at a time.

  Args:
    settings: `config.train`.
    num_entities: V.
    placement: how the state is distributed over the devices. Default: every
      device has a copy.

  Returns:
    The number of entities, see `chunked_loss`. 0 means all of them.
  """
  if settings.candidates or settings.vocabulary_chunk < 0:
    return 0
  if settings.vocabulary_chunk:
    return min(settings.vocabulary_chunk, num_entities)
  rows = settings.batch_size // parallel.num_devices()
  if placement is not None and placement.is_cut:
    rows, num_entities = settings.batch_size, placement.shard_size
  return chunked_loss.default_chunk_size(rows, num_entities)


def penalties(config: ml_collections.ConfigDict) -> regularization.Penalties:
  """Returns the penalties that a config describes.

  The module `regularization` explains when N3 includes the relation factors.
  """
  return regularization.Penalties(
    n3=config.train.n3_penalty,
    dura=config.train.dura_penalty,
    penalize_factors=config.data.kind == 'triples'
    and config.model.composition != 'rotation',
  )


def build_optimizer(
  config: ml_collections.ConfigDict,
  num_steps: int,
  placement: placement_lib.Placement | None = None,
) -> tuple[optax.GradientTransformation, optax.Schedule]:
  """Builds the optimizer that a config describes.

  Args:
    config: valid settings.
    num_steps: number of steps of the whole training.
    placement: how the state is distributed over the devices. Default: every
      device has a copy.

  Returns:
    The gradient transformation, then the learning rate as a function of the
    step, counted from 0.
  """
  settings = config.train
  schedule = optimizer.learning_rate_schedule(
    settings.learning_rate,
    num_steps,
    settings.warmup_fraction,
    settings.learning_rate_decay,
  )
  transformation = optimizer.make_optimizer(
    schedule,
    name=settings.optimizer,
    weight_decay=settings.weight_decay,
    clip_norm=settings.clip_norm,
    embedding_factor=settings.embedding_learning_rate_factor,
    norm=placement_lib.norm_of_cut if placement and placement.is_cut else None,
  )
  return transformation, schedule


def build_training_set(
  config: ml_collections.ConfigDict,
  queries: queries_lib.Queries,
  vocabulary: vocabulary_lib.Vocabulary,
  walks: fresh_walks.FreshWalks | None = None,
) -> batches.TrainingSet:
  """Builds the training set. `config.train.rows` states what a row is.

  Args:
    config: valid settings.
    queries: the training queries, each with a single answer.
    vocabulary: the labels of the data set.
    walks: the source of more queries for each epoch. Default: none.

  Raises:
    parallel.DeviceError: the devices cannot share a batch evenly.
  """
  settings = config.train
  parallel.check_divides(
    settings.batch_size, 'config.train.batch_size: a batch'
  )
  if settings.rows == 'query':
    queries = queries.grouped().split_answers(settings.max_answers_per_row)
  return batches.TrainingSet(
    queries,
    settings.batch_size,
    vocabulary.pad_id,
    settings.seed,
    settings.steps_per_call,
    settings.candidates,
    vocabulary.num_entities,
    parallel.own_rows(settings.batch_size)
    if hosts.num_processes() > 1
    else None,
    walks,
    settings.rare_answer_weight,
  )
