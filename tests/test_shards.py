"""Compares a vocabulary in shards with replicas, on eight devices."""

import itertools
import sys

import jax
import numpy as np
import pytest
import small

import coke_jax
from coke_jax import parallel, tasks
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import parameters
from coke_jax.predict import model as model_lib
from coke_jax.training import run
from coke_jax.training import setup as setup_lib

DEVICES = 8
# Each of the first 6 devices has 3 of the 20 entities. The next one has 2, and
# the last one has none.
GRAPH = small.random_graph()
VARIANTS = {
  'paper': {},  # with clipping and weight decay
  'options': {
    'model': {
      'composition': 'complex',
      'relation_directions': True,
      'prediction_head': False,
      'output_dropout': 0.1,
    },
    'train': {
      'rows': 'query',
      'embedding_learning_rate_factor': 10.0,
      'target_mass': 0.9,
      'vocabulary_chunk': 2,
    },
  },
  'candidates': {
    'model': {'num_layers': 0, 'composition': 'complex', 'input_norm': False},
    'train': {
      'batch_size': 8,
      'rows': 'query',
      'candidates': 19,
      'max_answers_per_row': 1,
      'n3_penalty': 0.1,
      'optimizer': 'adagrad',
      'weight_decay': 0.0,
    },
  },
}


def compare(results, tolerance=0.0):
  """Compares two trees of arrays."""
  jax.tree.map(
    lambda one, other: np.testing.assert_allclose(
      one, other, rtol=tolerance, atol=tolerance
    ),
    *results,
  )


def make_setup(name, *, cut):
  config = small.config(**VARIANTS[name])
  config.shard_vocabulary = cut
  return setup_lib.Setup(config, tasks.make_task(config, GRAPH))


def check_training(name):
  """Compares losses, gradient norms and the state after three steps."""
  results = []
  for cut in (False, True):
    setup = make_setup(name, cut=cut)
    assert setup.placement.is_cut == cut
    state = setup.placement.place(setup.init_state())
    steps = list(itertools.islice(setup.training_set.epoch(0), 3))
    key = parameters.dropout_key(0)
    state, metrics = setup.train_step(state, steps, key)
    results.append(jax.device_get((setup.placement.fetch(state), metrics)))
  compare(results, 2e-5)


def check_memory():
  """Checks that a device has an eighth of the entities and their moments."""
  setup = make_setup('paper', cut=True)
  state = setup.placement.place(setup.init_state())
  shapes = [
    shard.data.shape
    for path, leaf in jax.tree_util.tree_leaves_with_path(state)
    if path[-1] == jax.tree_util.DictKey('entity_embedding')
    for shard in leaf.addressable_shards
  ]
  assert shapes == [(1, 3, 8)] * (3 * DEVICES)


def check_use():
  """Compares ranks, predictions and embeddings."""
  model = small.coke(20, 2)
  params = small.random_params(model, scale=1.0)
  queries = queries_lib.from_triples(GRAPH.test, GRAPH.vocabulary)
  candidates = np.random.default_rng(0).random((len(queries), 20)) < 0.5
  config = small.config()
  found = []
  for cut in (False, True):
    config.shard_vocabulary = cut
    placement = tasks.build_placement(config, model)
    placed = placement.place(params)
    # A limit of 600 bytes gives several chunks on each device.
    ranker = ranker_lib.Ranker(
      model, 0 if cut else 8, score_bytes=600, placement=placement
    )
    ranks = tasks.make_task(config, GRAPH).rank(ranker, placed, 'test')
    among = ranker.rank_among(placed, queries, lambda rows: candidates[rows])
    used = model_lib.Model(
      model, placed, GRAPH, 1, batch_size=64, placement=placement
    )
    scorer = used.predictor.scorer
    found.append(
      [
        [one.better, one.equal, one.candidates]
        for one in (ranks, among, scorer.rank(queries, candidates)[0])
      ]
      + [
        scorer.top_k(queries, 20),
        scorer.top_k(queries, 7, candidates),
        scorer.rank(queries, candidates)[1],
        scorer.log_probabilities(queries),
        scorer.answer_log_probabilities(queries, queries.indices[:, None]),
        scorer.encode(queries.tokens, 1),
        used.embed_elements().vectors,
      ]
    )
  compare([one[:3] for one in found])
  compare([one[3:] for one in found], 1e-5)


def check_ties():
  """Checks that equal scores on different devices are ordered by entity."""
  model = small.coke(20, 2)
  params = jax.tree.map(np.zeros_like, small.random_params(model))
  config = small.config()
  config.shard_vocabulary = True
  placement = tasks.build_placement(config, model)
  used = model_lib.Model(
    model, placement.place(params), GRAPH, 1, placement=placement
  )
  queries = queries_lib.from_triples(GRAPH.test, GRAPH.vocabulary)
  entities, _ = used.predictor.scorer.top_k(queries, 20)
  np.testing.assert_array_equal(
    entities, np.broadcast_to(np.arange(20), entities.shape)
  )


def train(workdir, epochs):
  config = small.config(model={'dropout': 0.0}, train={'num_epochs': epochs})
  config.shard_vocabulary = True
  return run.train_and_evaluate(config, workdir, data=GRAPH)


if __name__ == '__main__':
  assert parallel.num_devices() == DEVICES
  for variant in VARIANTS:
    check_training(variant)
  check_memory()
  check_use()
  check_ties()
  train(sys.argv[1], 3.0)


def test_shards_equal_replicas(tmp_path):
  """Also loads a checkpoint of eight devices with the devices of this test."""
  small.run_script(__file__, tmp_path / 'run', devices=DEVICES)
  loaded = coke_jax.load(tmp_path / 'run')
  assert loaded.predictor.scorer.placement.is_cut == (
    parallel.num_devices() > 1
  )
  alone = train(tmp_path / 'alone', 3.0)
  assert loaded.evaluate('test')['both']['mrr'] == pytest.approx(
    alone['both']['mrr'], abs=1e-3
  )
