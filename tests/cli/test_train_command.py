"""Tests training on a file or folder of triples."""

import hashlib
import shutil

import numpy as np
import pandas as pd
import pytest
import small

import coke_jax
from coke_jax import config as config_lib
from coke_jax import given_data, recipes, tasks
from coke_jax.cli import train_command
from coke_jax.data import arrays
from coke_jax.training import run


@pytest.fixture
def csv(tmp_path, monkeypatch):
  """Writes a CSV file, and makes `recipes.for_size` return a tiny config."""
  monkeypatch.chdir(tmp_path)
  config = recipes.one_block()
  config.model.update(hidden_size=8, feed_forward_size=8, num_heads=2)
  config.train.update(batch_size=16, num_epochs=1.0, steps_per_call=2)
  monkeypatch.setattr(recipes, 'for_size', lambda _: config)
  graph = small.random_graph(repeats=False)
  words = graph.vocabulary
  lines = [
    f'"{words.entities[h]}","{words.relations[r]}","{words.entities[t]}"'
    for h, r, t in graph.triples(*small.SPLITS)
  ]
  path = tmp_path / 'facts.csv'
  path.write_text('head,relation,tail\n' + '\n'.join(lines) + '\n')
  return path


def train(config=None, workdir='', data='', minutes=0.0):
  train_command.train(
    config, workdir, split='test', minutes=minutes, data=str(data)
  )


def test_from_a_csv_file_to_answers(csv, tmp_path, capsys):
  train(data=csv)
  printed = capsys.readouterr().out
  assert 'given away' in printed  # The report of leaks has these words.
  assert printed.count('facts: 20 entities, 2 relations') == 1
  model = coke_jax.load(tmp_path / 'runs' / 'facts')
  assert len(model.predict((small.ENTITIES[0], 'likes', '?'), top=3)) == 3
  config = small.workdir.Workdir(tmp_path / 'runs' / 'facts').config()
  train(config, str(tmp_path / 'runs' / 'facts'), csv)
  assert 'already finished' in capsys.readouterr().out


def test_changed_triples_are_refused(csv, tmp_path):
  train(data=csv)
  csv.write_text(csv.read_text() + '"new","likes","e00"\n')
  with pytest.raises(coke_jax.CokeError, match='started with other data'):
    train(data=csv)


def test_without_config_and_data_it_is_an_error():
  with pytest.raises(coke_jax.CokeError, match='--config'):
    train()


def test_a_config_for_another_graph_gets_the_name_of_the_data(csv, tmp_path):
  config = recipes.for_size(0)
  config.data.name = 'FB15k-237'
  train(config, data=csv)
  saved = small.workdir.Workdir(tmp_path / 'runs' / 'facts').config()
  assert saved.data.name == 'facts'
  config.data.kind = 'walks'
  with pytest.raises(coke_jax.CokeError, match=r"data\.kind is 'walks'"):
    train(config, data=csv)


ROWS = [
  (f'person {i}', relation, f'person {(i + step) % 12}')
  for i in range(12)
  for relation, step in (('knows', 1), ('trusts', 3), ('likes', 5))
]


def write_folder(folder, order=(0, 1, 2), delimiter='\t', header=''):
  """Writes ROWS in the given form, and returns the folder."""
  folder.mkdir(parents=True, exist_ok=True)
  parts = {'train': ROWS[:28], 'valid': ROWS[28:32], 'test': ROWS[32:]}
  for split, rows in parts.items():
    lines = [delimiter.join(row[place] for place in order) for row in rows]
    text = ''.join(line + '\n' for line in [header, *lines] if line)
    (folder / f'{split}.txt').write_text(text)
  return folder


def only_read(source, workdir=None, config=None, **options):
  return given_data.read(source, workdir=workdir, config=config, **options)


def data_config(**fields):
  config = small.config()
  config.data.update(fields)
  return config


@pytest.mark.parametrize(
  ('form', 'fields'),
  [
    ({'order': (0, 2, 1)}, {'columns': 'head tail relation'}),
    ({'order': (2, 0, 1)}, {'columns': 'tail head relation'}),
    ({'delimiter': ','}, {'delimiter': ','}),
    ({'delimiter': ' | '}, {'delimiter': ' | '}),
    ({'header': 'x\ty\tz'}, {'header': True}),
    (
      {'order': (1, 2, 0), 'delimiter': ';', 'header': 'x;y;z'},
      {'columns': 'relation tail head', 'delimiter': ';', 'header': True},
    ),
  ],
)
def test_the_fields_of_the_config_describe_the_given_files(
  tmp_path, form, fields
):
  expected = only_read(write_folder(tmp_path / 'plain')).graph
  folder = write_folder(tmp_path / 'other', **form)
  config = data_config(**fields)
  graph = only_read(folder, config=config).graph
  assert arrays.equal(graph, expected)
  config.data.update(name='mine', dir=str(folder))
  assert arrays.equal(graph, tasks.read_data(config))


@pytest.mark.parametrize(
  ('fields', 'expected'),
  [
    ({'columns': 'head tail relation'}, "'head relation tail', the default"),
    ({'delimiter': ','}, "config.data.delimiter is ','"),
    ({'header': True}, 'config.data.header is True'),
    ({'columns': 'head tail'}, 'the words head, relation and tail'),
  ],
)
def test_fields_that_cannot_apply_are_refused(tmp_path, fields, expected):
  config = data_config(**fields)
  (tmp_path / 'a.nt').write_text('<a> <r> <b> .\n')
  for source in (ROWS, np.array(ROWS), pd.DataFrame(ROWS), tmp_path / 'a.nt'):
    with pytest.raises(config_lib.ConfigError) as caught:
      only_read(source, config=config)
    assert expected in str(caught.value)
  with pytest.raises(config_lib.ConfigError):
    coke_jax.train(ROWS, config=config)
  with pytest.raises(config_lib.ConfigError):
    train(config, data=tmp_path / 'a.nt')


def test_a_field_and_an_argument_must_agree(tmp_path):
  folder = write_folder(tmp_path / 'other', order=(0, 2, 1))
  config = data_config(columns='head tail relation')
  for same in ('1,3,2', ['1', '3', '2'], (1, 3, 2)):
    assert only_read(folder, config=config, columns=same).graph
  with pytest.raises(config_lib.ConfigError, match=r'columns is .*1,2,3'):
    only_read(folder, config=config, columns='1,2,3')
  config = data_config(header=True)
  with pytest.raises(config_lib.ConfigError, match=r"header is 'no'"):
    only_read(folder, config=config, header='no')


@pytest.fixture
def trained(tmp_path, csv):
  """Returns a folder of data and the work folder of a run with this data."""
  del csv  # The fixture `csv` has replaced `recipes.for_size`.
  folder = write_folder(tmp_path / 'people')
  train(workdir=str(tmp_path / 'work'), data=folder)
  return folder, tmp_path / 'work'


def test_changed_and_missing_files(trained, tmp_path, capsys, caplog):
  """A changed file is an error. A missing file is read from the work folder."""
  folder, work = trained
  config = small.workdir.Workdir(work).config()
  before = (folder / 'train.txt').read_bytes()
  after = before + b'person 1\tknows\tperson 11\n'
  (folder / 'train.txt').write_bytes(after)
  digests = [hashlib.sha256(text).hexdigest() for text in (after, before)]
  for data in (folder, ''):
    with pytest.raises(coke_jax.CokeError, match='has changed') as caught:
      train(config, str(work), data)
    for part in (str(folder / 'train.txt'), *digests):
      assert part in str(caught.value)
    assert 'valid.txt' not in str(caught.value)
  run.evaluate(config, work)
  assert f'{folder / "train.txt"}: has changed' in caplog.text
  # Another folder has other triples.
  other = write_folder(tmp_path / 'more' / 'people')
  (other / 'train.txt').write_bytes(after)
  with pytest.raises(coke_jax.CokeError, match='the SHA-256 of') as caught:
    train(config, str(work), other)
  assert str(other / 'train.txt') in str(caught.value)
  assert str(folder / 'train.txt') in str(caught.value)
  # A CSV file has the same triples as the deleted file.
  (folder / 'train.txt').unlink()
  (folder / 'train.csv').write_bytes(before.replace(b'\t', b','))
  train(config, str(work), folder)
  assert 'note' not in capsys.readouterr().out
  for missing in ('valid.txt', 'train.csv', ''):
    if missing:
      (folder / missing).unlink()
    else:
      shutil.rmtree(folder)
    train(config, str(work), folder)
    printed = capsys.readouterr().out
    assert 'files of the data are missing' in printed
    assert 'already finished' in printed
  with pytest.raises(coke_jax.CokeError, match='no such file or folder'):
    train(config, str(work), tmp_path / 'absent')


def test_the_missing_file_of_a_notebook(trained, csv, capsys):
  model = coke_jax.train(csv, workdir='notebook')
  csv.unlink()
  capsys.readouterr()
  again = coke_jax.train(csv, workdir='notebook')
  assert f'missing: {csv}' in capsys.readouterr().out
  question = (small.ENTITIES[0], 'likes', '?')
  assert again.predict(question) == model.predict(question)
  with pytest.raises(coke_jax.CokeError, match='no such file'):
    coke_jax.train(csv, workdir='another')


def test_a_config_for_paths_names_the_flags_that_work(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  config = small.config(data={'kind': 'walks', 'max_path_length': 2})
  write_folder(tmp_path / 'people')
  (tmp_path / 'facts.csv').write_text('a,r,b\n')
  for data, expected in (
    ('people', '`--config.data.name=people --config.data.dir=people`'),
    ('facts.csv', '`coke prepare facts.csv --output=data/facts`'),
    ('countries', '`--config.data.name=countries`'),
  ):
    with pytest.raises(config_lib.ConfigError) as caught:
      train(config, data=data)
    assert expected in str(caught.value)
