"""Tests the search over settings."""

import json
import pathlib

import pytest
from optuna import distributions

from coke_jax import builtin_configs
from experiments import search, search_space

CONFIG = (
  pathlib.Path(__file__).resolve().parents[1] / 'robustness' / 'small_runs.py'
)


def test_values_of_fields():
  space = search_space.distributions(
    ['a.b=1,2', 'c.d=x', 'e.f=1..8', 'g.h=.1..1', 'i.j=1e-4..1@log']
  )
  assert space == {
    'a.b': distributions.CategoricalDistribution(['1', '2']),
    'c.d': distributions.CategoricalDistribution(['x']),
    'e.f': distributions.IntDistribution(1, 8),
    'g.h': distributions.FloatDistribution(0.1, 1.0),
    'i.j': distributions.FloatDistribution(1e-4, 1.0, log=True),
  }
  with pytest.raises(ValueError, match=r'--set e\.f: a range needs --trials'):
    search_space.all_combinations(space)


@pytest.mark.parametrize(
  'wrong',
  [
    ['a.b'],
    ['a.b='],
    ['a.b=1,,2'],
    ['=1'],
    ['a.b=1', 'a.b=2'],
    ['a.b=2..1'],
    ['a.b=0..1@sqrt'],
    ['a.b=x..y'],
  ],
)
def test_invalid_texts_are_refused(wrong):
  with pytest.raises(ValueError, match='expected <group>'):
    search_space.distributions(wrong)


def test_all_combinations():
  assert search_space.all_combinations({}) == [{}]
  space = search_space.distributions(['a.b=1,2', 'c.d=x'])
  assert search_space.all_combinations(space) == [
    {'a.b': '1', 'c.d': 'x'},
    {'a.b': '2', 'c.d': 'x'},
  ]


@pytest.fixture
def data(tmp_path):
  """Writes a graph of five entities in a circle."""
  folder = tmp_path / 'data'
  folder.mkdir()
  lines = ''.join(f'e{i}\tnext\te{(i + 1) % 5}\n' for i in range(5))
  for split in ('train', 'valid', 'test'):
    (folder / f'{split}.txt').write_text(lines)
  return folder


def test_the_best_validation_is_reported(data, tmp_path, capsys, monkeypatch):
  monkeypatch.setenv('JAX_DISABLE_MOST_OPTIMIZATIONS', 'true')
  out = tmp_path / 'out'
  flags = [f'--config={CONFIG}', f'--out={out}']
  chosen = {
    'data.dir': str(data),
    'model.num_layers': '0',
    'train.num_epochs': '20',
  }
  search.main([*flags, *(f'--set={k}={v}' for k, v in chosen.items())])
  (tried,) = json.loads((out / 'search.json').read_text())['tried']
  assert tried['set'] == chosen
  assert tried['epoch'] in (10, 20)
  assert 0 < tried['mrr'] <= 1
  table = (out / 'search.md').read_text()
  assert f'{tried["mrr"]:.4f}' in table
  assert table in capsys.readouterr().out


@pytest.fixture
def trainings(monkeypatch):
  """Replaces trainings by a formula.

  Returns the list of the settings of all trainings, and `interrupt_at`.
  `interrupt_at(5)` interrupts the fifth training.
  """
  made = []

  def train(config, chosen, folder):
    made.append(dict(chosen))
    if len(made) == trainings_until_interrupt:
      raise KeyboardInterrupt

  def best_validation(folder):
    dropout = float(made[-1]['model.dropout'])
    epochs = made[-1]['train.num_epochs']
    return {
      'step': 1,
      'epoch': epochs,
      'mrr': 0.5 - abs(dropout - 0.3) + epochs / 1000,
      'hits@10': 1.0,
    }

  trainings_until_interrupt = -1

  def interrupt_at(count):
    nonlocal trainings_until_interrupt
    trainings_until_interrupt = count

  monkeypatch.setattr(search, 'train', train)
  monkeypatch.setattr(search, 'best_validation', best_validation)
  return made, interrupt_at


def test_only_the_best_trials_reach_the_last_rung(tmp_path, trainings):
  made, interrupt_at = trainings
  flags = [f'--config={CONFIG}', f'--out={tmp_path}', '--rungs=3', '--trials=9']
  flags.append('--set=model.dropout=0.0..0.9')
  interrupt_at(5)
  with pytest.raises(SystemExit) as stop:
    search.main(flags)
  assert stop.value.code == 130
  interrupted = made[-1]
  search.main(flags)
  # The interrupted trial is repeated with the same values.
  assert made[5]['model.dropout'] == interrupted['model.dropout']
  tried = json.loads((tmp_path / 'search.json').read_text())['tried']
  assert len(tried) == 9
  full = builtin_configs.load(CONFIG).train.num_epochs
  for one in tried:
    expected = [full / 9, full / 3, full][: len(one['rungs'])]
    assert [rung['num_epochs'] for rung in one['rungs']] == expected
  lengths = [len(one['rungs']) for one in tried]
  assert lengths == sorted(lengths, reverse=True)
  assert lengths[0] == 3
  assert 1 in lengths
  best = max(tried, key=lambda one: one['rungs'][0]['mrr'])
  assert tried[0]['set'] == best['set']
  table = (tmp_path / 'search.md').read_text().splitlines()
  assert f'{tried[0]["mrr"]:.4f}' in table[2]
  assert (tmp_path / 'search.png').stat().st_size > 1000
  search.main([*flags[:-2], '--trials=10', flags[-1]])
  extended = json.loads((tmp_path / 'search.json').read_text())['tried']
  assert len(extended) == 10


@pytest.mark.parametrize('error', ['interrupted', 'failed', 'both'])
@pytest.mark.parametrize('number', [1, 3, 6])
def test_each_combination_is_trained_once(tmp_path, monkeypatch, error, number):
  """One training fails or is interrupted, and the search is started again."""
  attempts, done = [], []
  # With 'both', the first training after the restart is interrupted.
  stop_at = {'interrupted': number, 'failed': 0, 'both': 7}[error]

  def train(config, chosen, folder):
    attempts.append(1)
    if len(attempts) == number and error != 'interrupted':
      raise search.TrainingFailedError('x.log')
    if len(attempts) == stop_at:
      raise KeyboardInterrupt
    done.append((chosen['model.dropout'], chosen['train.seed']))

  monkeypatch.setattr(search, 'train', train)
  monkeypatch.setattr(
    search,
    'best_validation',
    lambda folder: {'step': 1, 'epoch': 1, 'mrr': 0.5, 'hits@10': 0.5},
  )
  flags = [f'--config={CONFIG}', f'--out={tmp_path}']
  flags += ['--set=model.dropout=0.1,0.2,0.3', '--set=train.seed=0,1']
  with pytest.raises(SystemExit):
    search.main(flags)
  if error == 'both':
    with pytest.raises(SystemExit, match='130'):
      search.main(flags)
  search.main(flags)
  expected = [(rate, seed) for rate in ('0.1', '0.2', '0.3') for seed in '01']
  assert sorted(done) == expected


def test_an_invalid_combination_is_named(data, tmp_path):
  flags = [f'--config={CONFIG}', f'--out={tmp_path / "out"}']
  with pytest.raises(SystemExit, match=r'failed: see .*dropout=2\.log'):
    search.main([*flags, '--set=model.dropout=2'])
  log = (tmp_path / 'out' / 'model.dropout=2.log').read_text()
  assert 'model.dropout is 2' in log
