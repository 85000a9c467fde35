"""Trains on small files, and checks what training and evaluation write."""

import gzip
import hashlib
import json
import pathlib
import subprocess
import sys

import numpy as np
import pytest
import small

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import checks, data_commands
from coke_jax.data import graph, text_files
from coke_jax.storage import layout, workdir
from coke_jax.training import run

SIDES = ('both', 'head', 'tail')
METRICS = ('mrr', 'hits@1', 'hits@3', 'hits@10', 'mean_rank')


def write_graph(folder):
  """Writes a ring of 20 people. Each knows the next and trusts the previous."""
  triples = [
    triple
    for i in range(20)
    for triple in (
      (f'person {i}', 'knows', f'person {(i + 1) % 20}'),
      (f'person {i}', 'trusts', f'person {(i - 1) % 20}'),
    )
  ]
  return small.write_splits(
    folder, train=triples[:30], valid=triples[30:35], test=triples[35:]
  )


def small_config(folder):
  return small.config(
    data={'name': 'ring', 'dir': str(folder)},
    model={'hidden_size': 16},
    train={'num_epochs': 4, 'batch_size': 32, 'validate_every_epochs': 2},
  )


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  """Returns the work folder and the config of a finished training."""
  folder = tmp_path_factory.mktemp('run')
  config = small_config(write_graph(folder / 'data'))
  run.train_and_evaluate(config, str(folder / 'work'))
  return folder / 'work', config


def test_results_have_the_documented_keys(trained):
  folder, _ = trained
  results = json.loads((folder / 'results.json').read_text())
  assert results['dataset'] == 'ring'
  assert results['split'] == 'test'
  assert results['queries'] == 10
  for side in SIDES:
    assert set(METRICS) <= set(results[side])
  for side in ('optimistic', 'pessimistic'):
    assert set(METRICS) <= set(results[side])
  assert set(results['by_relation']) == {'knows', 'trusts'}
  assert sum(part['queries'] for part in results['by_category'].values()) == 10
  head, tail = results['head']['mrr'], results['tail']['mrr']
  assert results['both']['mrr'] == pytest.approx((head + tail) / 2)


def test_the_log_has_every_step_and_validation(trained):
  folder, config = trained
  lines = [
    json.loads(line)
    for line in (folder / 'metrics.jsonl').read_text().splitlines()
  ]
  steps = [line['step'] for line in lines if line['kind'] == 'train']
  assert steps == list(range(1, 9))  # Each of the 4 epochs has 2 batches.
  valid = [line for line in lines if line['kind'] == 'valid']
  assert [line['epoch'] for line in valid] == [2, 4]
  best = max(valid, key=lambda line: line['both']['mrr'])
  results = json.loads((folder / 'results.json').read_text())
  assert results['step'] == best['step']
  rates = [line['learning_rate'] for line in lines if line['kind'] == 'train']
  assert max(rates) == pytest.approx(config.train.learning_rate)
  assert rates[-1] < rates[1]


def test_training_again_finds_it_finished(trained, capsys):
  folder, config = trained
  before = (folder / 'results.json').read_text()
  run.train_and_evaluate(config, str(folder))
  assert 'training is already finished' in capsys.readouterr().out
  assert (folder / 'results.json').read_text() == before


def test_other_settings_are_refused(trained):
  folder, config = trained
  other = config.copy_and_resolve_references()
  other.train.learning_rate = 0.1
  other.train.log_every_steps = 7  # This field may differ.
  with pytest.raises(workdir.WorkdirError) as caught:
    run.train_and_evaluate(other, str(folder))
  assert 'train.learning_rate is 0.1: expected 0.0005' in str(caught.value)
  assert 'log_every_steps' not in str(caught.value)


@pytest.mark.parametrize(
  'change',
  [
    {'data.dir': '/nonexistent'},
    {'data.columns': 'tail relation head'},
    {'data.header': True},
  ],
)
def test_other_data_are_refused(trained, change):
  folder, config = trained
  other = config.copy_and_resolve_references()
  other.update_from_flattened_dict(change)
  (field,) = change
  with pytest.raises(workdir.WorkdirError, match=f'{field} is .*: expected'):
    run.train_and_evaluate(other, str(folder))


def test_changed_data_files_are_refused(trained, tmp_path, caplog):
  """If a file has changed, training raises an error and evaluation warns.

  Missing files are accepted.
  """
  folder, config = trained
  data = pathlib.Path(config.data.dir)
  before = (data / 'train.txt').read_bytes()
  try:
    with (data / 'train.txt').open('a') as out:
      out.write('person 1\tknows\tperson new\n')
    digests = [
      hashlib.sha256(content).hexdigest()
      for content in ((data / 'train.txt').read_bytes(), before)
    ]
    with pytest.raises(workdir.WorkdirError, match='other data') as caught:
      run.train_and_evaluate(config, folder)
    for part in (str(data / 'train.txt'), *digests):
      assert part in str(caught.value)
    assert 'valid.txt' not in str(caught.value)
    # The evaluation uses the copy of the data in the work folder.
    run.evaluate(config, folder)
    assert str(data / 'train.txt') in caplog.text
    # A file with the same content is accepted, even if it is compressed.
    (data / 'train.txt').unlink()
    (data / 'train.txt.gz').write_bytes(gzip.compress(before))
    run.train_and_evaluate(config, folder)
    (data / 'train.txt.gz').rename(tmp_path / 'train.txt.gz')
    run.train_and_evaluate(config, folder)
  finally:
    (data / 'train.txt').write_bytes(before)


@pytest.mark.parametrize(
  'change',
  [
    # The valid split is empty.
    {'train.early_stopping_validations': 2},
    # The label `knows` begins with this marker.
    {'data.kind': 'walks', 'data.inverse_marker': 'k'},
  ],
)
def test_a_mistake_in_the_settings_creates_no_work_folder(tmp_path, change):
  data = write_graph(tmp_path / 'data')
  (data / 'valid.txt').write_text('')
  config = small_config(data)
  config.update_from_flattened_dict(change)
  with pytest.raises(coke_jax.CokeError):
    run.train_and_evaluate(config, str(tmp_path / 'work'))
  assert not (tmp_path / 'work').exists()


def test_a_run_that_another_process_trains_can_be_measured(trained):
  folder, config = trained
  with workdir.Workdir(folder).locked():
    run.evaluate(config, str(folder), 'valid')
  results = json.loads((folder / 'results_valid.json').read_text())
  assert results['filter'] == ['train', 'valid', 'test']


def test_the_training_split_can_be_ranked(trained):
  folder, config = trained
  results = run.evaluate(config, folder, 'train')
  assert results == json.loads((folder / 'results_train.json').read_text())
  assert (results['split'], results['queries']) == ('train', 60)
  with pytest.raises(config_lib.ConfigError, match="split is 'tset'"):
    run.train_and_evaluate(config, folder, split='tset')


def test_a_loaded_model_evaluates_itself(trained):
  folder, config = trained
  model = coke_jax.load(folder)
  for split in ('test', 'train'):
    expected = run.evaluate(config, folder, split)
    expected.pop('step')
    assert model.evaluate(split) == expected
  with pytest.raises(coke_jax.QuestionError, match=r"split.*'tset'"):
    model.evaluate('tset')


def test_output_can_replace_no_file_of_a_run(trained):
  folder, _ = trained
  for path in folder.iterdir():
    if path.is_file() and not path.name.startswith('.'):
      assert layout.is_own_file(path.name), path
      with pytest.raises(config_lib.ConfigError, match='is a file of'):
        checks.protect_files(str(path), '-', folder)


def test_evaluation_needs_only_the_work_folder(trained):
  """Renames the work folder, and evaluates in a separate process."""
  folder, _ = trained
  before = json.loads((folder / 'results.json').read_text())
  moved = folder.parent / 'moved'
  folder.rename(moved)
  try:
    command = [sys.executable, '-m', 'coke_jax.main', '--mode=evaluate']
    done = subprocess.run(
      [*command, f'--workdir={moved}', '--split=valid'],
      cwd=folder.parent,
      capture_output=True,
      text=True,
      check=False,
    )
    assert done.returncode == 0, done.stderr
    assert 'mrr' in done.stdout
    results = json.loads((moved / 'results_valid.json').read_text())
    assert results['split'] == 'valid'
    assert json.loads((moved / 'results.json').read_text()) == before
    (moved / 'results.json').unlink()
    run.evaluate(workdir.Workdir(moved).config(), moved)
    assert json.loads((moved / 'results.json').read_text()) == before
  finally:
    moved.rename(folder)


def test_evaluation_and_prediction_agree(trained):
  """The rank of a test tail is its position among the predicted answers.

  Other known answers are left out.
  """
  folder, _ = trained
  model = coke_jax.load(folder)
  data = model.data
  known = {tuple(row) for row in data.triples(*graph.SPLITS).tolist()}
  ranks = []
  for head, relation, tail in data.test.tolist():
    labels = data.vocabulary
    question = (labels.entities[head], labels.relations[relation], '?')
    answers = model.predict(question, top=100)
    competing = [
      answer.label
      for answer in answers
      if (head, relation, labels.entity_id(answer.label)) not in known
      or labels.entity_id(answer.label) == tail
    ]
    ranks.append(competing.index(labels.entities[tail]) + 1)
    assert {a.label: a.known_in for a in answers}[labels.entities[tail]]
  results = json.loads((folder / 'results.json').read_text())
  assert results['tail']['mrr'] == pytest.approx(np.mean(1 / np.array(ranks)))


def test_a_mistake_in_the_data_creates_no_work_folder(tmp_path):
  data = write_graph(tmp_path / 'data')
  with (data / 'test.txt').open('a') as out:
    out.write('person 1\tknows\n')
  with pytest.raises(text_files.DataError, match=r'test\.txt:6: .*expected 3'):
    run.train_and_evaluate(small_config(data), str(tmp_path / 'work'))
  assert not (tmp_path / 'work').exists()


def test_empty_valid_and_test_splits(tmp_path, capsys):
  data = write_graph(tmp_path / 'data')
  (data / 'valid.txt').write_text('')
  (data / 'test.txt').write_text('')
  config = small_config(data)
  run.train_and_evaluate(config, str(tmp_path / 'work'))
  assert 'the test split is empty' in capsys.readouterr().out
  assert not (tmp_path / 'work' / 'results.json').exists()


def test_walks_from_a_graph_are_written_as_path_files(tmp_path, capsys):
  config = small_config(write_graph(tmp_path / 'data'))
  with pytest.raises(config_lib.ConfigError, match="expected 'walks'"):
    data_commands.sample_paths(config, str(tmp_path / 'paths'))
  config.data.kind = 'walks'
  config.data.max_path_length = 3
  data_commands.sample_paths(config, str(tmp_path / 'paths'))
  assert 'sampled paths' in capsys.readouterr().out
  written = {path.name for path in (tmp_path / 'paths').iterdir()}
  assert {'train', 'dev', 'test'} <= written
  first = (tmp_path / 'paths' / 'train').read_text().splitlines()[0]
  assert len(first.split('\t')) == 3
