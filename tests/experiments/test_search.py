"""Tests of the search over settings: combinations, ranking, errors."""

import json
import pathlib

import pytest

from experiments import search

CONFIG = (
  pathlib.Path(__file__).resolve().parents[1] / 'robustness' / 'small_runs.py'
)


def test_all_combinations():
  assert search.combinations([]) == [{}]
  assert search.combinations(['a.b=1,2', 'c.d=x']) == [
    {'a.b': '1', 'c.d': 'x'},
    {'a.b': '2', 'c.d': 'x'},
  ]
  for wrong in (['a.b'], ['a.b='], ['a.b=1,,2'], ['=1'], ['a.b=1', 'a.b=2']):
    with pytest.raises(ValueError, match='expected <group>'):
      search.combinations(wrong)


@pytest.fixture
def data(tmp_path):
  """Writes a graph of five entities in a circle."""
  folder = tmp_path / 'data'
  folder.mkdir()
  lines = ''.join(f'e{i}\tnext\te{(i + 1) % 5}\n' for i in range(5))
  for split in ('train', 'valid', 'test'):
    (folder / f'{split}.txt').write_text(lines)
  return folder


def test_what_training_kept_is_reported(data, tmp_path, capsys, monkeypatch):
  monkeypatch.setenv('JAX_DISABLE_MOST_OPTIMIZATIONS', 'true')
  out = tmp_path / 'out'
  flags = [f'--config={CONFIG}', f'--out={out}']
  flags += [f'--set=data.dir={data}', '--set=train.num_epochs=20']
  search.main(flags)
  (tried,) = json.loads((out / 'search.json').read_text())['tried']
  assert tried['set'] == {'data.dir': str(data), 'train.num_epochs': '20'}
  assert tried['epoch'] in (10, 20)
  assert 0 < tried['mrr'] <= 1
  table = (out / 'search.md').read_text()
  assert f'{tried["mrr"]:.4f}' in table
  assert table in capsys.readouterr().out


@pytest.mark.parametrize('metric', ['mrr', 'mean_quantile'])
def test_the_best_is_first(tmp_path, metric):
  tried = [
    {'set': {'a.b': name}, 'step': 1, 'epoch': 2.0, metric: value, 'hits@10': 0}
    for name, value in {'bad': 0.1, 'best': 0.3, 'good': 0.2}.items()
  ]
  table = search.report(tried, tmp_path)
  assert table.index('best') < table.index('good') < table.index('bad')
  written = json.loads((tmp_path / 'search.json').read_text())['tried']
  assert [one['set']['a.b'] for one in written] == ['best', 'good', 'bad']


def test_a_combination_that_cannot_be_is_named(data, tmp_path):
  flags = [f'--config={CONFIG}', f'--out={tmp_path / "out"}']
  with pytest.raises(SystemExit, match=r'not trained, see .*dropout=2\.log'):
    search.main([*flags, '--set=model.dropout=2'])
  log = (tmp_path / 'out' / 'model.dropout=2.log').read_text()
  assert 'model.dropout is 2' in log
