"""Tests the scripts for the paper's tables."""

import fcntl
import importlib
import json
import os
import pathlib
import shutil

import jax
import pytest

from coke_jax import config as config_lib
from experiments.benchmarks import throughput
from experiments.paper import (
  document,
  formats,
  options,
  published,
  report,
  runs,
  settings,
)

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / 'experiments'
SCRIPTS = (
  'link_prediction',
  'parameters',
  'path_queries',
  'single_hop_from_paths',
  'contextual_maps',
)
FIGURES = (
  'single_hop_from_paths',
  'contextual_map_entity',
  'contextual_map_relations',
)
LABEL = 'smoke: stand-in graph countries'


@pytest.fixture(scope='session')
def smoke(tmp_path_factory, request):
  """Returns the output folder of `experiments.paper.all --budget=smoke`.

  All workers of pytest-xdist share this folder.
  """
  pytest.importorskip('matplotlib')
  pytest.importorskip('sklearn')
  shared = tmp_path_factory.getbasetemp()
  if hasattr(request.config, 'workerinput'):  # This process is a worker.
    shared = shared.parent
  out = shared / 'smoke'
  with (shared / 'smoke.lock').open('w') as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    if not (out / 'progress.json').is_file():
      all_ = importlib.import_module('experiments.paper.all')
      all_.main(['--budget=smoke', f'--out={out}'])
  return out


def read(path):
  return json.loads(path.read_text(encoding='utf-8'))


def test_every_script_writes_its_table(smoke):
  for name in SCRIPTS:
    results = read(smoke / f'{name}.json')
    assert results['budget'] == 'smoke'
    assert results['rows']
    for row in results['rows']:
      assert row['stand_in'] == 'countries'
      assert row['full_length'] is False
      assert set(row['runs']) <= set(results['runs'])
      for number in row['numbers'].values():
        assert isinstance(number['ours'], float | None)
    text = (smoke / f'{name}.md').read_text(encoding='utf-8')
    assert 'Budget **smoke**' in text
    assert LABEL in text


@pytest.mark.parametrize('name', FIGURES)
def test_every_figure_is_there(smoke, name):
  assert (smoke / f'{name}.png').read_bytes().startswith(b'\x89PNG')
  assert '<svg' in (smoke / f'{name}.svg').read_text(encoding='utf-8')
  assert read(smoke / f'{name}.json')['budget'] == 'smoke'


def test_numbers_are_those_of_the_work_folders(smoke):
  rows = read(smoke / 'link_prediction.json')['rows']
  assert [row['dataset'] for row in rows] == list(settings.TRIPLES)
  measured = read(smoke / 'runs' / 'countries-smoke-seed0' / 'results.json')
  for row in rows:
    for metric, printed in zip(
      published.LINK_PREDICTION_METRICS,
      published.LINK_PREDICTION[row['dataset']],
      strict=True,
    ):
      number = row['numbers'][metric]
      assert number['ours'] == measured['both'][metric]
      assert number['paper'] == printed
      assert number['difference'] == pytest.approx(number['ours'] - printed)
  for row in read(smoke / 'path_queries.json')['rows']:
    folder = smoke / 'runs' / row['runs'][0]
    assert f'k{row["max_path_length"]}-' in folder.name
    config = read(folder / 'config.json')
    assert config['data']['max_path_length'] == row['max_path_length']
    measured = read(folder / 'results.json')
    assert row['numbers']['hits@10']['ours'] == measured['hits@10']
    # Each model is evaluated on test paths of all lengths.
    assert set(measured['by_length']) == {'1', '2'}
  rows = read(smoke / 'single_hop_from_paths.json')['rows']
  measured = read(smoke / 'runs' / rows[1]['runs'][0] / 'results.json')
  single = measured['single_edges']['both']
  assert rows[1]['numbers']['mrr']['ours'] == single['mrr']


def test_a_record_contains_the_origin_of_its_numbers(smoke):
  record = read(smoke / 'records' / 'countries-smoke-seed0.json')
  assert record['budget'] == 'smoke'
  assert record['dataset'] == 'countries'
  assert record['seed'] == 0
  assert 'cpu' in record['device']
  assert {'python', 'jax', 'flax', 'coke_jax'} <= set(record['versions'])
  assert record['wall_seconds'] > 0
  assert record['sittings'] == 1
  assert record['epochs'] == pytest.approx(0.5)
  assert record['config']['train.seed'] == 0
  assert set(record['config']) == set(
    config_lib.flatten(config_lib.default_config())
  )
  if (ROOT / '.git').exists():
    assert len(record['commit']) == 40
    assert isinstance(record['dirty'], bool)
  assert 'by_relation' not in json.dumps(record)


def test_parameter_counts_are_the_papers(smoke):
  for row in read(smoke / 'parameters.json')['rows']:
    number = row['numbers']['parameters_million']
    assert round(number['ours'], 2) == number['paper']
    assert {'RotatE', 'TuckER', 'CoKE'} == set(row['paper'])


def test_a_second_call_changes_nothing(smoke, capsys):
  files = [path for path in smoke.rglob('*') if path.is_file()]
  before = {path: path.stat().st_mtime_ns for path in files}
  all_ = importlib.import_module('experiments.paper.all')
  all_.main(['--budget=smoke', f'--out={smoke}'])
  assert capsys.readouterr().out.count('complete, skipped') == len(SCRIPTS)
  files = [path for path in smoke.rglob('*') if path.is_file()]
  assert {path: path.stat().st_mtime_ns for path in files} == before


def test_an_unfinished_model_is_not_taken_for_finished(smoke, tmp_path):
  out = shutil.copytree(smoke, tmp_path / 'copy')
  asked = options.Options('smoke', out)
  all_ = importlib.import_module('experiments.paper.all')
  script = all_.SCRIPTS['link_prediction']
  entry = read(out / 'progress.json')['link_prediction']
  assert all_.is_complete(script, asked, entry)
  assert not all_.is_complete(script, asked, {**entry, 'complete': False})
  more = options.Options('smoke', out, seeds=2)
  assert not all_.is_complete(script, more, entry)
  # A fresh clone has no work folders.
  shutil.rmtree(out / 'runs' / 'countries-smoke-seed0')
  assert not all_.is_complete(script, asked, entry)


def test_maps_are_kept_if_their_data_set_is_not_selected(
  smoke, tmp_path, capsys
):
  maps = importlib.import_module('experiments.paper.contextual_maps')
  kept = (smoke / 'contextual_maps.json').read_bytes()
  (tmp_path / 'contextual_maps.json').write_bytes(kept)
  maps.make(options.Options('smoke', tmp_path, datasets=('WN18RR',)))
  assert [path.name for path in tmp_path.iterdir()] == ['contextual_maps.json']
  assert (tmp_path / 'contextual_maps.json').read_bytes() == kept
  assert 'FB15k is not selected' in capsys.readouterr().out


def test_epochs_until_the_best_validation():
  record = {'epochs': 14.6, 'steps': 1986, 'best_step': 992}
  assert report.epochs(record) == '7.293 of 14.6'
  assert report.epochs({**record, 'best_step': 1986}) == '14.6'
  assert report.epochs({'epochs': 38.0, 'steps': 9, 'best_step': 9}) == '38'


def test_a_script_that_fails_does_not_stop_the_others(tmp_path, monkeypatch):
  all_ = importlib.import_module('experiments.paper.all')
  done = []

  def fail(_):
    raise config_lib.ConfigError('no such thing')

  monkeypatch.setattr(all_.SCRIPTS['link_prediction'], 'make', fail)
  monkeypatch.setattr(all_.SCRIPTS['parameters'], 'make', done.append)
  asked = options.Options('smoke', tmp_path)
  assert all_.run_all(asked, SCRIPTS[:2]) == ['link_prediction']
  assert done == [asked]
  progress = read(tmp_path / 'progress.json')
  assert progress['link_prediction']['error'] == 'no such thing'
  assert not progress['link_prediction']['complete']
  assert progress['parameters']['complete']


def test_records_of_other_settings_are_left_out(smoke, capsys):
  run = settings.make_run('FB15k', budget='smoke', seed=5)
  assert [r['seed'] for r in runs.load_records(run, smoke)] == [0]
  run.config.model.num_layers = 2
  assert runs.load_records(run, smoke) == []
  assert 'other settings: model.num_layers' in capsys.readouterr().out


def test_fields_missing_in_a_record_have_their_default(smoke, tmp_path):
  run = settings.make_run('FB15k', budget='smoke')
  record = runs.load_record(run, smoke)
  del record['config']['train.n3_penalty']
  (tmp_path / 'records').mkdir()
  path = tmp_path / 'records' / f'{run.name}.json'
  path.write_text(json.dumps(record))
  assert runs.load_records(run, tmp_path) == [record]
  run.config.train.n3_penalty = 0.5
  assert runs.load_records(run, tmp_path) == []


def test_a_killed_sitting_lasts_until_its_last_written_file(tmp_path):
  workdir = importlib.import_module('coke_jax.storage.workdir')
  place = workdir.Workdir(tmp_path / 'runs' / 'a')
  with pytest.raises(RuntimeError), runs.Sittings(place).sitting():
    raise RuntimeError('killed')
  path = place.folder.with_name('a.sittings.json')
  (entry,) = read(path)
  entry.update(started='2026-01-01T00:00:00+00:00', seconds=None)
  path.write_text(json.dumps([entry]))
  place.folder.mkdir()
  log = place.folder / 'metrics.jsonl'
  log.touch()
  os.utime(log, (1767225600 + 90,) * 2)  # This is 90 s after `started`.
  again = runs.Sittings(place)
  assert not again.finished
  with again.sitting():
    pass
  reread = runs.Sittings(place)
  assert reread.finished
  assert reread.entries[0]['seconds'] == 90
  assert reread.wall_seconds == pytest.approx(90, abs=1)


def test_wall_time_is_unknown_when_another_program_began(tmp_path):
  workdir = importlib.import_module('coke_jax.storage.workdir')
  place = workdir.Workdir(tmp_path / 'a')
  place.folder.mkdir()
  (place.folder / 'config.json').write_text('{}')
  with runs.Sittings(place).sitting():
    pass
  assert runs.Sittings(place).wall_seconds is None


def test_mean_and_spread():
  nothing = {'ours': None, 'deviation': None, 'paper': None}
  assert report.measured([]) == nothing
  assert report.measured([0.25]) == {**nothing, 'ours': 0.25}
  several = report.measured([0.1, 0.2, 0.6])
  assert several['ours'] == pytest.approx(0.3)
  # The variance is (.04 + .01 + .09) / 2 = .07.
  assert several['deviation'] == pytest.approx(0.07**0.5)


def test_comparison():
  ours = [{'mrr': 0.2, 'hits@1': 0.1}, {'mrr': 0.4, 'hits@1': 0.1}]
  compared = report.compare(('mrr', 'hits@1'), ours, (0.5, 0.1))
  assert compared['mrr']['ours'] == pytest.approx(0.3)
  assert compared['mrr']['deviation'] == pytest.approx(0.02**0.5)
  assert compared['mrr']['difference'] == pytest.approx(-0.2)
  assert compared['hits@1']['difference'] == pytest.approx(0)
  missing = report.compare(('mrr',), [], (0.5,))['mrr']
  assert missing == {
    'ours': None,
    'deviation': None,
    'paper': 0.5,
    'difference': None,
  }


@pytest.mark.parametrize(
  ('records', 'budget', 'expected'),
  [
    ([], 'cpu', 'cpu: not run yet'),
    ([False], 'cpu', 'cpu'),
    ([True, True], 'paper', 'paper'),
    ([True, False], 'paper', 'paper, cut short'),
    ([False], 'smoke', LABEL),
  ],
)
def test_labels(tmp_path, records, budget, expected):
  run = settings.make_run('WN18RR', budget=budget)
  asked = options.Options(budget, tmp_path)
  row = report.Table(asked, 'name', title='title', header=['']).add(
    run,
    [
      {'name': f'r{seed}', 'seed': seed, 'full_length': full}
      for seed, full in enumerate(records)
    ],
    {},
  )
  assert report.label(row) == expected


def test_numbers_as_text():
  assert formats.decimal(0.3641) == '.364'
  assert formats.decimal(1.0) == '1.000'
  assert formats.decimal(0.9999) == '1.000'
  assert formats.decimal(None) == '-'
  assert formats.signed(-0.0296) == '-.030'
  assert formats.signed(0.0004) == '.000'
  assert formats.signed(0.02) == '+.020'
  assert formats.plus_minus(0.3, 0.0125) == '.300 ± .013'
  assert formats.plus_minus(0.3, None) == '.300'
  assert formats.duration(61.2) == '1 min 02 s'
  assert formats.duration(3599.5) == '60 min 00 s'
  assert formats.duration(7380) == '2 h 03 min'


def test_the_papers_numbers_agree_between_its_tables():
  for dataset, metrics in published.LINK_PREDICTION.items():
    assert published.PARAMETERS[dataset]['CoKE'][1:] == metrics[:2]


@pytest.mark.parametrize('budget', ['cpu', 'paper'])
def test_settings(tmp_path, budget):
  names = set()
  asked = options.Options(budget, tmp_path, seeds=2)
  for run in asked.selected([*asked.triple_runs(), *asked.path_runs()]):
    names.add(run.name)
    name = {**settings.TRIPLES, **settings.PATHS}[run.dataset]
    config = config_lib.flatten(settings.load_config(name))
    differing = {
      field
      for field, value in config_lib.flatten(run.config).items()
      if value != config[field]
    } - {'train.seed', 'data.max_path_length'}
    assert bool(differing) == (budget == 'cpu')
    assert not differing - {
      'model.num_layers',
      'model.hidden_size',
      'model.feed_forward_size',
      'model.dropout',
      'train.rows',
      'train.batch_size',
      'train.learning_rate',
      'train.weight_decay',
      'train.target_mass',
      'train.num_epochs',
      'train.validate_every_epochs',
    }
    assert run.config.data.name == run.dataset
    assert not run.stand_in
  assert len(names) == 2 * (4 + 2 * 5)
  assert 'PathQueryWN-k3-' + budget + '-seed1' in names


def test_the_kept_records_have_the_settings_of_the_budget(capsys):
  """Checks all records except that of FB15k-237, which has older settings."""
  out = settings.default_out('cpu')
  asked = options.Options('cpu', out)
  found = [
    record['name']
    for run in [*asked.triple_runs(), *asked.path_runs()]
    for record in runs.load_records(run, out)
  ]
  kept = {path.stem for path in (out / 'records').glob('*.json')}
  assert kept - set(found) == {'FB15k-237-cpu-seed0'}
  assert capsys.readouterr().out.count('left out, other settings') == 1


@pytest.mark.parametrize(
  ('flags', 'message'),
  [
    ([], '--budget'),
    (['--budget=huge'], 'invalid choice'),
    (['--budget=cpu', '--seeds=0'], 'expected an integer above 0'),
    (['--budget=cpu', '--datasets=FB15K'], "unknown data set 'FB15K'"),
    (['--budget=cpu', '--path-lengths=6'], "unknown length '6'"),
    (['--budget=smoke', '--path-lengths=5'], 'at the smoke budget'),
  ],
)
def test_unknown_values_are_named(capsys, flags, message):
  with pytest.raises(SystemExit):
    options.parse(options.make_parser(''), flags)
  assert message in capsys.readouterr().err


def test_the_page_shows_the_results_that_are_kept():
  text = document.PAGE.read_text(encoding='utf-8')
  assert document.render(text) == text
  for name in (*SCRIPTS, 'throughput'):
    assert f'<!-- table: {name} -->' in text


def test_tables_of_the_page(tmp_path):
  page = '<!-- table: a -->\nold\n<!-- end of table -->\nrest\n'
  empty = document.render(page, tmp_path)
  assert 'Budget cpu: not run yet' in empty
  assert 'Budget paper: not run yet' in empty
  assert 'old' not in empty
  (tmp_path / 'cpu').mkdir()
  (tmp_path / 'cpu' / 'a.md').write_text('![bars](a.png) [x](http://y/z.png)')
  shown = document.render(empty, tmp_path)
  assert '![bars](../experiments/results/cpu/a.png)' in shown
  assert '(http://y/z.png)' in shown
  assert 'Budget paper: not run yet' in shown
  assert shown.endswith('rest\n')
  assert document.render(shown, tmp_path) == shown


def test_throughput(tmp_path, capsys):
  flags = ['--budget=smoke', '--steps=2', '--datasets=FB15k']
  try:
    throughput.main([*flags, f'--out={tmp_path}'])
  finally:
    jax.config.update('jax_disable_most_optimizations', False)
  (path,) = tmp_path.glob('*.json')
  (measured,) = read(path)['measurements']
  assert measured['model'] == 'countries-smoke'
  whole_call = config_lib.default_config().train.steps_per_call
  assert measured['timed_steps'] == whole_call > 2
  assert measured['steps'] == 16
  assert measured['seconds_per_step'] > 0
  assert '| countries-smoke |' in capsys.readouterr().out
