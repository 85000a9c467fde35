"""Chooses settings for a graph, a device and a number of minutes.

First, the time of a step is measured. On small graphs, whose epochs have few
steps, the number of epochs is raised. If there is time to train several models
for three quarters of the epochs, these models are trained side by side, see
`model.ensemble`. If the time is too short for all epochs, the number of epochs
is lowered.

A second config can be given, which needs more time and gives better results. It
is used if there is enough time.
"""

import dataclasses
import math
import time

import jax
import ml_collections

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import argument_checks, batches, text_files
from coke_jax.model import parameters
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_step

# The settings that are chosen.
FIELDS = (
  'model.num_members',
  'train.num_epochs',
  'train.validate_every_epochs',
)
# Members beyond this number improve the ranks very little.
MAX_MEMBERS = 8
# Members are added while there is time to train all of them for this share of
# the wanted epochs. On CoDEx-S, two members with 60 epochs are better than one
# member with 80 epochs.
_SHARE_OF_EPOCHS = 0.75
# On small graphs, the number of epochs is raised to reach `_FEWEST_STEPS`, but
# at most by the factor `_MOST_EPOCHS`. On UMLS, 80 epochs of 13 steps are too
# few.
_FEWEST_STEPS = 2_500
_MOST_EPOCHS = 2.5
# Share of the time that is used. The rest is a reserve, because steps can be
# slower later, for example if other programs run on the same machine.
_USABLE = 0.85
_MEASURED_CALLS = 2
# The slower config is used if there is time for this share of its epochs. In
# `recipes`, the slower config has one block, and the faster config has none. On
# CoDEx-M, the slower config gives better results after half of its epochs. On
# FB15k-237, it gives better results even earlier.
_SLOWER_SHARE = 0.6
_VALIDATIONS = 4  # maximum number of validations
# If there is one member, rankings take at most this share of the time. There
# is always one validation, even if its ranking takes longer.
_RANKING_SHARE = 0.2


@dataclasses.dataclass(frozen=True)
class Choice:
  """Settings for a budget, and the measurements that led to them.

  Attributes:
    config: the settings.
    step_seconds: the time of a step of one member.
    evaluation_seconds: the time for ranking a split with one member, as the
      mean of the valid and the test split.
    reason: one sentence that explains the choice, for messages.
  """

  config: ml_collections.ConfigDict
  step_seconds: float
  evaluation_seconds: float
  reason: str


def choose(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  minutes: float,
  *,
  slower: ml_collections.ConfigDict | None = None,
  started: float | None = None,
) -> Choice:
  """Chooses the numbers of epochs and members that fit into a time.

  Compiles the step, and runs some steps and rankings to measure their time.
  `slower` is only measured if there is time for two members with `config`.

  Args:
    config: the settings. More epochs than `train.num_epochs` hardly improve the
      result. `model.num_members` is ignored.
    task: the task with its data.
    minutes: the time for the whole training with its evaluations.
    slower: settings that give a better result after a longer training.
      `config.data` is used instead of `slower.data`.
    started: the value of `time.monotonic()` from which the time is counted.
      Default: the time is counted from now on.

  Raises:
    config.ConfigError: the time is not positive, or there is no time left for a
      step after the measurement.
  """
  check_minutes(minutes)
  started = time.monotonic() if started is None else started
  choice = _fit(config, task, minutes, started)
  if slower is None or choice.config.model.num_members < 2:
    return choice
  slower = _with_data_of(config, slower)
  try:
    other = _fit(slower, task, minutes, started)
  except config_lib.ConfigError:  # There is no time for a single step.
    return choice
  share = other.config.train.num_epochs / slower.train.num_epochs
  return other if share >= _SLOWER_SHARE else choice


def _fit(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  minutes: float,
  started: float,
) -> Choice:
  """Chooses the numbers of epochs and members for a config, see `choose`."""
  config = config.copy_and_resolve_references()
  config.model.num_members = 1  # The times are those of one member.
  setup = setup_lib.Setup(config, task)
  step_seconds, compile_seconds = _time_steps(setup)
  evaluation = _time_evaluation(setup)
  elapsed = time.monotonic() - started
  # The training compiles again, so the time for this is reserved.
  left = _USABLE * (60 * minutes - elapsed - compile_seconds)
  epoch = step_seconds * setup.steps_per_epoch
  given = float(config.train.num_epochs)
  enough = _FEWEST_STEPS / setup.steps_per_epoch
  wanted = max(given, min(enough, _MOST_EPOCHS * given))
  of_member = _SHARE_OF_EPOCHS * wanted * epoch
  of_member += (1 + _VALIDATIONS) * evaluation
  members = min(max(int(left / of_member), 1), MAX_MEMBERS)
  validations = _VALIDATIONS
  if members == 1 and evaluation > 0:
    affordable = int(_RANKING_SHARE * max(left, 0.0) / evaluation) - 1
    validations = min(max(affordable, 1), _VALIDATIONS)
  # The time for all rankings of one member: validations and the test split.
  rankings = evaluation * (1 + validations)
  left -= members * rankings
  epochs = min(wanted, left / (members * epoch))
  if epochs * setup.steps_per_epoch < 1:
    least = (rankings + step_seconds) / _USABLE + elapsed + compile_seconds
    raise config_lib.ConfigError(
      f'minutes is {minutes:g}: expected more than {least / 60:.1f}, because '
      f'the measurement took {elapsed:.0f} s, compilation will take '
      f'{compile_seconds:.0f} s and rankings {rankings:.0f} s'
    )
  config.model.num_members = members
  config.train.num_epochs = round(epochs, 2) if epochs > 1 else epochs
  config.train.validate_every_epochs = config.train.num_epochs / validations
  layers = config.model.num_layers
  reason = (
    f'{task.data.vocabulary.num_entities:,} entities, {step_seconds * 1e3:.1f} '
    f'ms a step and {setup.steps_per_epoch:,} steps an epoch: '
    f'{layers} block{"" if layers == 1 else "s"}, '
    f'{config.train.num_epochs:g} of {wanted:g} epochs and {members} '
    f'member{"s" if members > 1 else ""} for {minutes:g} minutes'
  )
  return Choice(config, step_seconds, evaluation, reason)


def check_minutes(minutes: float) -> None:
  """Raises ConfigError unless a time is a positive number of minutes."""
  if not argument_checks.is_number(minutes) or not 0 < minutes < math.inf:
    shown = (
      f'{minutes:g}'
      if argument_checks.is_number(minutes)
      else text_files.show_value(minutes)
    )
    raise config_lib.ConfigError(
      f'minutes is {shown}: expected a number above 0'
    )


def adopt(
  config: ml_collections.ConfigDict,
  saved: ml_collections.ConfigDict,
  slower: ml_collections.ConfigDict | None = None,
) -> ml_collections.ConfigDict:
  """Returns a copy of a config with the values of `FIELDS` from a run.

  Args:
    config: the config, as in `choose`.
    saved: the settings of the run.
    slower: as in `choose`. If the run uses `slower`, a copy of `slower` is
      returned.
  """
  values = config_lib.flatten(saved)
  chosen = {name: values[name] for name in FIELDS}
  config = config.copy_and_resolve_references()
  config.update_from_flattened_dict(chosen)
  if slower is not None:
    slower = _with_data_of(config, slower)
    slower.update_from_flattened_dict(chosen)
    if not config_lib.differences(saved, slower):
      return slower
  return config


def _with_data_of(
  config: ml_collections.ConfigDict, slower: ml_collections.ConfigDict
) -> ml_collections.ConfigDict:
  """Returns a copy of `slower` with the data settings of `config`."""
  slower = slower.copy_and_resolve_references()
  slower.data = config.data.copy_and_resolve_references()
  return slower


def _time_steps(setup: setup_lib.Setup) -> tuple[float, float]:
  """Returns the seconds per step, and the seconds of the compilation."""
  # Clear the cache, so that the first call below compiles the step.
  train_step.make_train_step.cache_clear()
  state = setup.init_placed()
  key = parameters.dropout_key(0)
  size = setup.config.train.steps_per_call
  chunk = next(
    batches.chunks(setup.training_set.epoch(0), size, lambda _: False)
  )
  seconds = []
  for _ in range(1 + _MEASURED_CALLS):
    start = time.monotonic()
    state, _ = setup.train_step(state, chunk, key)
    jax.block_until_ready(state)
    seconds.append(time.monotonic() - start)
  call = min(seconds[1:])
  return call / len(chunk), seconds[0] - call


def _time_evaluation(setup: setup_lib.Setup) -> float:
  """Returns the mean of the seconds for ranking valid and test."""
  data = setup.task.data
  splits = [split for split in ('valid', 'test') if len(data.split(split))]
  if not splits:
    return 0.0
  ranker = setup.make_ranker()
  params = setup.init_placed().params
  smallest = min(splits, key=lambda split: len(data.split(split)))
  seconds = []
  for _ in range(2):  # The time of the first run includes the compilation.
    start = time.monotonic()
    setup.task.evaluate(ranker, params, smallest, choosing=False)
    seconds.append(time.monotonic() - start)
  mean = sum(len(data.split(split)) for split in splits) / len(splits)
  return seconds[1] * mean / len(data.split(smallest))
