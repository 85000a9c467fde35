"""Tests the choice of settings for a time budget, with made-up step times."""

import pytest
import small

from coke_jax import config as config_lib
from coke_jax import recipes, tasks
from coke_jax.training import budget, run, setup


@pytest.fixture
def task():
  return tasks.make_task(small.config(), small.random_graph())


@pytest.fixture
def config():
  config = recipes.one_block()
  config.model.update(hidden_size=8, feed_forward_size=8, num_heads=2)
  config.train.update(batch_size=16, steps_per_call=2)
  return config


@pytest.fixture
def times(monkeypatch):
  """Returns a function that sets the measured times, in seconds."""

  def set_times(step, compilation, evaluation):
    monkeypatch.setattr(budget, '_time_steps', lambda _: (step, compilation))
    monkeypatch.setattr(budget, '_time_evaluation', lambda _: evaluation)

  return set_times


def planned_seconds(choice, steps_per_epoch, compilation):
  """Returns the planned seconds of a training and its evaluations."""
  config = choice.config
  steps = config.train.num_epochs * steps_per_epoch
  members = config.model.num_members
  return (
    compilation
    + members * steps * choice.step_seconds
    + 5 * members * choice.evaluation_seconds
  )


@pytest.mark.parametrize('step', [1e-4, 0.01, 0.1, 1.0])
def test_the_plan_fits_into_the_time(task, config, times, step):
  times(step, 3.0, 0.2)
  choice = budget.choose(config, task, 2.0)
  rows = len(setup.Setup(config, task).training_set.queries)
  steps_per_epoch = -(-rows // 16)
  assert planned_seconds(choice, steps_per_epoch, 3.0) < 120
  assert choice.config.train.num_epochs <= 200
  assert 1 <= choice.config.model.num_members <= budget.MAX_MEMBERS
  if choice.config.train.num_epochs < 60:
    assert choice.config.model.num_members == 1
  if choice.config.train.num_epochs < 200:
    assert planned_seconds(choice, steps_per_epoch, 3.0) > 0.8 * 120
  assert config.model.num_members == 1  # The recipe is not changed.


def test_more_time_gives_more_members(task, config, times):
  times(0.01, 0.0, 0.0)
  members = [
    budget.choose(config, task, minutes).config.model.num_members
    for minutes in (0.01, 0.2, 0.4, 60)
  ]
  assert members == sorted(members)
  assert members[0] == 1
  assert members[-1] == budget.MAX_MEMBERS


def test_one_member_is_timed(task, config, monkeypatch):
  timed = []

  def time_steps(setup):
    timed.append(setup.config.model.num_members)
    return 0.01, 0.0

  monkeypatch.setattr(budget, '_time_steps', time_steps)
  monkeypatch.setattr(budget, '_time_evaluation', lambda _: 0.0)
  expected = budget.choose(config, task, 60.0).config
  config.model.num_members = 6
  assert budget.choose(config, task, 60.0).config == expected
  assert timed == [1, 1]


@pytest.mark.parametrize('minutes', [0.0, -1.0, float('nan')])
def test_a_time_must_be_positive(task, config, minutes):
  with pytest.raises(config_lib.ConfigError, match='minutes is'):
    budget.choose(config, task, minutes)


def test_too_little_time_is_an_error(task, config, times):
  times(1.0, 30.0, 1.0)
  # The compilation takes 30 s. A step, a validation and the test together take
  # 3 s. They must fit into 85 % of the remaining 2.4 s.
  message = r'minutes is 0\.54: expected more than 0\.6'
  with pytest.raises(config_lib.ConfigError, match=message):
    budget.choose(config, task, 0.54)


@pytest.mark.parametrize(
  ('evaluation', 'validations'),
  [(0.0, 4), (0.1, 4), (2.5, 3), (4.0, 1), (16.0, 1)],
)
def test_slow_rankings_are_rarer(task, config, times, evaluation, validations):
  # The plan uses 51 s of the minute. All rankings together take at most 10.2 s,
  # but there is always one validation.
  times(1.0, 0.0, evaluation)
  train = budget.choose(config, task, 1.0).config.train
  assert train.num_epochs / train.validate_every_epochs == pytest.approx(
    validations
  )


def test_the_size_selects_the_recipe():
  assert recipes.for_size(10_000).model.num_layers == 1
  assert recipes.for_size(10_001).model.num_layers == 0
  for size in (10_000, 10_001):
    config_lib.validate(recipes.for_size(size))


def test_the_size_selects_the_slower_recipe():
  slower = recipes.with_more_time(10_001, 50_005)
  assert slower.model.num_layers == 1
  assert slower.train.candidates > 0
  assert recipes.with_more_time(10_001, 50_004) is None  # too sparse
  assert recipes.with_more_time(10_000, 10**6) is None


@pytest.mark.parametrize(
  ('affordable', 'layers', 'epochs'),
  [(15, 0, 15), (310, 0, 38.75), (700, 1, 70)],
)
def test_a_slower_config_needs_time(
  task, config, monkeypatch, affordable, layers, epochs
):
  """There is time for `affordable` epochs of one member of the fast config."""

  def time_steps(setup):
    return (1.0 if setup.config.model.num_layers == 0 else 10.0), 0.0

  monkeypatch.setattr(budget, '_time_steps', time_steps)
  monkeypatch.setattr(budget, '_time_evaluation', lambda _: 0.0)
  slower = config
  slower.train.num_epochs = 100.0
  fast = slower.copy_and_resolve_references()
  fast.model.num_layers = 0
  fast.train.num_epochs = 20.0
  fast.data.name = 'mine'
  seconds = affordable * setup.Setup(fast, task).steps_per_epoch
  minutes = seconds / 0.85 / 60
  choice = budget.choose(fast, task, minutes, slower=slower)
  assert choice.config.model.num_layers == layers
  assert choice.config.train.num_epochs == pytest.approx(epochs, abs=0.5)
  assert choice.config.data.name == 'mine'
  assert budget.adopt(fast, choice.config, slower) == choice.config


def test_a_run_keeps_the_chosen_settings(tmp_path, config, capsys):
  graph = small.random_graph()
  words = graph.vocabulary
  small.write_splits(
    tmp_path / 'data',
    **{
      split: [
        (words.entities[h], words.relations[r], words.entities[t])
        for h, r, t in graph.split(split)
      ]
      for split in small.SPLITS
    },
  )
  config.data.update(name='mine', dir=str(tmp_path / 'data'))
  config.train.num_epochs = 2.0
  config.model.num_layers = 0  # Without blocks, the compilation is faster.
  results = run.train_and_evaluate(config, tmp_path / 'work', minutes=5.0)
  assert 'settings for this budget' in capsys.readouterr().out
  saved = small.workdir.Workdir(tmp_path / 'work').config()
  assert saved.model.num_members > 1
  assert saved.train.num_epochs == 5
  again = run.train_and_evaluate(config, tmp_path / 'work', minutes=1.0)
  assert again == results
