"""Tests `coke_jax.train`, and error messages about arguments."""

import os
import pathlib
import re
from collections.abc import Callable
from typing import Any

import ml_collections
import numpy as np
import pandas as pd
import pytest
import small

import coke_jax
from coke_jax import builtin_configs, cross_audit, recipes


@pytest.fixture
def config():
  config = recipes.one_block()
  config.model.update(hidden_size=8, feed_forward_size=8, num_heads=2)
  config.train.update(batch_size=16, num_epochs=2.0, steps_per_call=2)
  return config


@pytest.fixture(scope='module')
def triples():
  graph = small.random_graph(repeats=False)
  words = graph.vocabulary
  return [
    (words.entities[head], words.relations[relation], words.entities[tail])
    for head, relation, tail in np.concatenate(
      [graph.train, graph.valid, graph.test]
    )
  ]


def test_every_form_of_the_same_triples_gives_the_same_model(
  triples, config, tmp_path
):
  frame = pd.DataFrame(triples, columns=['head', 'relation', 'tail'])
  path = tmp_path / 'facts.tsv'
  path.write_text(''.join('\t'.join(one) + '\n' for one in triples))
  question = (triples[0][0], triples[0][1], '?')
  answers = [
    coke_jax.train(source, config=config).predict(question, top=5)
    for source in (triples, frame, np.array(triples), path)
  ]
  assert len(answers[0]) == 5
  assert all(other == answers[0] for other in answers[1:])


def test_a_run_in_a_work_folder_is_continued(triples, config, tmp_path, capsys):
  first = coke_jax.train(triples, config=config, workdir=tmp_path / 'work')
  capsys.readouterr()
  again = coke_jax.train(triples, config=config, workdir=tmp_path / 'work')
  assert 'already finished' in capsys.readouterr().out
  question = (triples[0][0], triples[0][1], '?')
  assert first.predict(question) == again.predict(question)
  with pytest.raises(coke_jax.CokeError, match='started with other data'):
    coke_jax.train(triples[1:], config=config, workdir=tmp_path / 'work')
  with pytest.raises(coke_jax.CokeError, match='such as seed'):
    coke_jax.train(triples, config=config, workdir=tmp_path / 'work', seed=1)


def test_given_splits_are_used(triples, config):
  parts = {'valid': triples[40:50], 'test': triples[50:55]}
  model = coke_jax.train(triples[:40], config=config, **parts)
  assert len(model.data.train) == 40
  assert len(model.data.valid) == 10
  assert len(model.data.test) == 5


def test_the_config_is_not_changed(triples, config):
  before = config.to_dict()
  coke_jax.train(triples, config=config)
  assert config.to_dict() == before


def test_a_config_is_given_by_name_or_path(triples, tmp_path):
  assert (
    builtin_configs.load('own_graph').to_dict()
    == builtin_configs.load(builtin_configs.folder() / 'own_graph.py').to_dict()
  )
  path = tmp_path / 'mine.py'
  path.write_text(
    'from coke_jax import builtin_configs\n'
    'def get_config():\n'
    '  config = builtin_configs.load("countries_paths")\n'
    '  config.model.update(hidden_size=8, feed_forward_size=8, num_heads=2)\n'
    '  config.model.update(num_layers=0, composition="complex")\n'
    '  config.train.update(batch_size=16, num_epochs=1.0)\n'
    '  return config\n'
  )
  model = coke_jax.train(triples, config=path)
  assert model.embed_elements().entities.shape[1] == 8


class BytesPath:
  """A path of bytes. The package accepts only paths of str."""

  def __fspath__(self) -> bytes:
    return b'x'


HALF = 'x\ud800'  # UTF-8 cannot encode half of a surrogate pair.
# Pairs of an argument and a value that is not valid.
TRAIN = [
  ('config', 'own_grap'),
  ('config', 'missing.py'),
  ('config', 3),
  ('config', {'a': 1}),
  ('config', HALF),
  ('minutes', '1'),
  ('minutes', None),
  ('minutes', True),
  ('minutes', float('nan')),
  ('workdir', 3),
  ('workdir', HALF),
  ('valid', 3),
  ('test', b'x'),
  ('seed', '1'),
]
PREPARE = [
  ('output', 3),
  ('output', HALF),
  ('output', 'x\0'),
  ('output', BytesPath()),
  ('valid', HALF),
  ('valid_share', 'x'),
  ('test_share', None),
  ('seed', 1.5),
  ('keep_together', 3),
  ('duplicates', None),
  ('overwrite', 'yes'),
  ('progress', 'yes'),
  ('name', 3),
  ('columns', 3),
  ('format', 3),
  ('delimiter', 3),
  ('quote', None),
  ('header', True),
  ('weight', 2.5),
  ('min_weight', '1'),
  ('literals', 1),
  ('on_bad_line', None),
  ('escape_labels', 'no'),
]


@pytest.mark.parametrize(
  ('function', 'name', 'value'),
  [
    *((coke_jax.train, name, value) for name, value in TRAIN),
    *((coke_jax.prepare, name, value) for name, value in PREPARE),
  ],
)
def test_the_error_names_the_argument_and_its_value(
  triples, tmp_path, monkeypatch, function: Callable[..., Any], name, value
):
  monkeypatch.chdir(tmp_path)
  shown = f'{re.escape(str(name))} is {re.escape(repr(value))}'
  with pytest.raises(
    (coke_jax.CokeError, TypeError), match=f'{shown}.*: expected'
  ):
    function(triples, **{name: value})
  assert not os.listdir(tmp_path)


def test_settings_that_do_not_fit_are_an_error(triples):
  for given in ({'data': 3}, {'train': {'num_epochs': 'x'}}):
    config = ml_collections.ConfigDict(given)
    with pytest.raises(coke_jax.CokeError, match='not a config of this vers'):
      coke_jax.train(triples, config=config)


@pytest.mark.parametrize('value', [3, HALF, 'x\0'])
def test_paths_of_other_functions(value):
  for function, name in (
    (coke_jax.load, 'folder'),
    (cross_audit.audit, 'workdir'),
  ):
    with pytest.raises(
      (coke_jax.CokeError, TypeError),
      match=f'{name} is {re.escape(repr(value))}.*: expected a path',
    ):
      function(value)
  graph_of = coke_jax.prepare([('a', 'r', 'b')])
  with pytest.raises((coke_jax.CokeError, TypeError), match='folder is'):
    graph_of.write(value)


def test_the_home_folder_is_found(tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  coke_jax.prepare([('a', 'r', 'b')], '~/made')
  assert (pathlib.Path(tmp_path) / 'made' / 'train.txt').exists()
  assert len(coke_jax.prepare('~/made').graph.train) == 1
