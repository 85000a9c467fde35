"""Tests training from triples in one call."""

import numpy as np
import pandas as pd
import pytest
import small

import coke_jax
from coke_jax import recipes


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
  with pytest.raises(coke_jax.CokeError, match='the same seed'):
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
