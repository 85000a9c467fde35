"""What runs on the devices can be compiled for GPUs and TPUs from anywhere."""

import jax
import jax.export
import numpy as np
import pytest
import small

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import encoder
from coke_jax.predict import model as model_lib
from coke_jax.training import train_state, train_step

PLATFORMS = ('cuda', 'tpu')


@pytest.fixture
def exported(monkeypatch):
  """All that is mapped over devices, lowered with what it is called with.

  It is not compiled and gives zeros.
  """
  original, found = parallel.map_devices, []

  def map_devices(function, *, donate_state=False):
    mapped = original(function, donate_state=donate_state)

    def call(*arguments):
      for platform in PLATFORMS:
        made = jax.export.export(jax.jit(mapped), platforms=[platform])
        found.append(made(*arguments))
      return jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype),
        jax.tree.unflatten(found[-1].out_tree, found[-1].out_avals),
      )

    return call

  monkeypatch.setattr(parallel, 'map_devices', map_devices)
  return found


def check(found, words):
  """Each platform has its own, and all hold these operations."""
  assert {program.platforms for program in found} == {
    (platform,) for platform in PLATFORMS
  }
  for program in found:
    text = program.mlir_module()
    for word in words:
      assert f'stablehlo.{word}' in text
    assert 'custom_call @lapack' not in text  # a library of the CPU's


def small_config(**model):
  config = config_lib.default_config()
  config.model.update(
    {'num_layers': 2, 'hidden_size': 16, 'num_heads': 2, **model}
  )
  config.model.feed_forward_size = 32
  config.train.batch_size = 8
  return config


@pytest.mark.parametrize(
  ('model', 'train'),
  [
    ({}, {}),
    ({'dtype': 'bfloat16'}, {'rows': 'query'}),
    ({'remat': True}, {'rows': 'query', 'query_weight_power': 0.5}),
  ],
  ids=str,
)
def test_training_steps(exported, model, train):
  config, graph = small_config(**model), small.random_graph()
  config.train.update(train)
  coke = tasks.build_model(config, graph.vocabulary)
  transformation, _ = train_state.build_optimizer(config, 10)
  training_set = train_step.build_training_set(
    config,
    queries_lib.from_triples(graph.train, graph.vocabulary),
    graph.vocabulary.pad_id,
  )
  step = train_step.make_train_step(
    coke, transformation, target_mass=0.8, steps_per_call=2
  )
  state = parallel.replicate(train_state.init_state(coke, transformation, 0))
  run = list(training_set.epoch(0))[:2]
  _, metrics = step(state, run, encoder.dropout_key(0))
  assert metrics['loss'].shape == (2,)
  check(exported, ['dot_general', 'while', 'all_reduce'])


def test_ranking(exported):
  config, graph = small_config(), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  params = parallel.replicate(encoder.init_params(coke, 0))
  queries = queries_lib.from_triples(graph.test, graph.vocabulary)
  ranker = ranker_lib.Ranker(coke, 4)
  ranker.filtered(params, queries, queries.known_answers(queries))
  check(exported, ['dot_general'])
  before = len(exported)
  ranker.among(
    params,
    queries,
    lambda rows: np.ones((len(rows), coke.num_entities), bool),
  )
  assert len(exported) > before
  check(exported, ['dot_general'])


def test_ranking_by_chunks_of_the_vocabulary(exported, monkeypatch):
  monkeypatch.setattr(ranker_lib, '_ROWS_OF_CHUNKS', 4)
  monkeypatch.setattr(ranker_lib, '_SCORE_BYTES', 4 * 4 * 7)  # 7 entities
  config, graph = small_config(), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  params = parallel.replicate(encoder.init_params(coke, 0))
  queries = queries_lib.from_triples(graph.test, graph.vocabulary)
  ranker = ranker_lib.Ranker(coke)
  ranker.filtered(params, queries, queries.known_answers(queries))
  check(exported, ['dot_general', 'while'])


def test_asking(exported):
  config, graph = small_config(), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  model = model_lib.Model(coke, encoder.init_params(coke, 0), graph, 1)
  model.predict([('e01', 'likes', '?')], top=2)
  model.score([('e01', 'likes', 'e02')])
  check(exported, ['dot_general'])
