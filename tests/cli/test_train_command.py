"""Tests training on a file of triples without a config."""

import pytest
import small

import coke_jax
from coke_jax import recipes
from coke_jax.cli import train_command


@pytest.fixture
def csv(tmp_path, monkeypatch):
  """Writes a CSV file, and replaces the recipes by a tiny one."""
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
  assert 'given away' in printed  # words of the leak report
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
