"""Compares a vocabulary cut into eight shards with a copy on each device."""

import gc
import itertools
import pathlib
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
from coke_jax.predict import export
from coke_jax.predict import model as model_lib
from coke_jax.shards import placement as placement_lib
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import shard_checkpoints
from coke_jax.training import run, train_state
from coke_jax.training import setup as setup_lib

DEVICES = 8
# The numbers of entities in a large graph, and in a shard of this graph.
LARGE, LARGE_SHARD = 1001, 126
# Each of the first 6 devices has 3 of the 20 entities of this graph. The next
# device has 2, and the last device has none.
GRAPH = small.random_graph()
VARIANTS = {
  'paper': {},  # This variant has gradient clipping and weight decay.
  'weights': {'train': {'rare_answer_weight': 0.2, 'vocabulary_chunk': -1}},
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
      'rare_answer_weight': 0.2,
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
      'dura_penalty': 0.1,
      'rare_answer_weight': 0.2,
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


def assert_placed(state, expected):
  """Checks the values, and that each device has an eighth of the entities."""
  for (path, leaf), wanted in zip(
    jax.tree_util.tree_leaves_with_path(state),
    jax.tree.leaves(expected),
    strict=True,
  ):
    if placement_lib.is_shard(path):
      assert leaf.shape[:2] == (DEVICES, LARGE_SHARD)
      for shard in leaf.addressable_shards:
        assert shard.data.shape == (1, *leaf.shape[1:])
    assert np.asarray(leaf).tobytes() == np.asarray(wanted).tobytes()


def largest_buffer():
  """Returns the number of elements of the largest array on a device."""
  return max(
    shard.data.size
    for array in jax.live_arrays()
    for shard in array.addressable_shards
  )


def check_start_and_checkpoints(folder):
  """Creates, writes and reads a state that is cut into eight shards.

  The values are those of a state without shards. A checkpoint of shards can be
  read as shards or as whole arrays. A checkpoint of whole arrays can be read as
  shards.
  """
  config = small.config()
  config.shard_vocabulary = True
  graph = small.random_graph(entities=LARGE)
  setup = setup_lib.Setup(config, tasks.make_task(config, graph))
  state = setup.init_placed()
  assert largest_buffer() == LARGE_SHARD * 8
  alone = jax.device_get(setup.init_state())
  cut = setup.placement.cut(alone)
  assert_placed(state, cut)
  shapes = train_state.to_items(jax.eval_shape(lambda: alone))
  metadata = {'step': 0, 'best_step': None}

  def opened(name):
    return shard_checkpoints.ShardCheckpoints(
      folder / name, setup.placement, writing=True
    )

  def read(name, template=shapes):
    gc.collect()
    with opened(name) as checkpoints:
      found, read_metadata = checkpoints.latest(template)
    assert read_metadata == metadata
    return found

  with opened('cut') as checkpoints:
    checkpoints.save(0, train_state.to_items(state), metadata)
    checkpoints.save(0, train_state.to_items(state), metadata)
    other = state.replace(step=state.step + 1)
    with pytest.raises(checkpoints_lib.CheckpointError, match='another state'):
      checkpoints.save(0, train_state.to_items(other), metadata)
  del state, other
  placed = read('cut')
  assert largest_buffer() == LARGE_SHARD * 8
  assert_placed(train_state.from_items(placed), cut)
  del placed
  with checkpoints_lib.Checkpoints(folder / 'whole', writing=True) as whole:
    whole.save(0, train_state.to_items(alone), metadata)
  assert_placed(train_state.from_items(read('whole')), cut)
  with checkpoints_lib.Checkpoints(folder / 'cut', writing=True) as whole:
    found, _ = whole.latest(shapes)
    compare([train_state.from_items(found), alone])
    metadata['best_step'] = 0
    whole.save(0, found, metadata)
  only = {'params': shapes['params']}
  assert_placed(read('cut', only), {'params': cut.params})

  # Without a best step, the two newest checkpoints are kept, no matter whether
  # they contain shards or whole arrays.
  def kept():
    return {path.name for path in (folder / 'cut').glob('*')}

  metadata['best_step'] = None
  with checkpoints_lib.Checkpoints(folder / 'cut', writing=True) as whole:
    for step in (1, 2):
      whole.save(step, found, {**metadata, 'step': step})
  assert kept() == {'step_1', 'step_2'}
  with opened('cut') as checkpoints:
    state = setup.placement.place(train_state.from_items(found))
    checkpoints.save(3, train_state.to_items(state), {**metadata, 'step': 3})
    assert kept() == {'step_2', 'step_3'}
    (folder / 'cut' / 'step_4').write_text('in the way')
    with pytest.raises(checkpoints_lib.CheckpointError, match='step 4 cannot'):
      checkpoints.save(4, train_state.to_items(state), {**metadata, 'step': 4})
  assert kept() == {'step_2', 'step_3', 'step_4'}


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
    # With shards, `score_bytes` makes each device score one entity at a time.
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
  """Trains with shards, if there are several devices."""
  config = small.config(model={'dropout': 0.0}, train={'num_epochs': epochs})
  config.shard_vocabulary = True
  return run.train_and_evaluate(config, workdir, data=GRAPH)


if __name__ == '__main__':
  assert parallel.num_devices() == DEVICES
  check_start_and_checkpoints(pathlib.Path(sys.argv[1], 'checkpoints'))
  for variant in VARIANTS:
    check_training(variant)
  check_use()
  check_ties()
  train(pathlib.Path(sys.argv[1], 'run'), 3.0)


@pytest.mark.slow
def test_shards_equal_replicas(tmp_path, caplog):
  """Eight devices write checkpoints. This process reads them."""
  small.run_script(__file__, tmp_path, devices=DEVICES)
  folder = tmp_path / 'run'
  loaded = coke_jax.load(folder)
  assert loaded.predictor.scorer.placement.is_cut == (
    parallel.num_devices() > 1
  )
  alone = train(tmp_path / 'alone', 3.0)
  expected = pytest.approx(alone['both']['mrr'], abs=1e-3)
  assert loaded.evaluate('test')['both']['mrr'] == expected

  # After damage to the newest checkpoint, the training continues from the
  # previous one.
  newest = max(
    (folder / 'checkpoints').iterdir(), key=lambda path: int(path.name[5:])
  )
  shard = newest / 'params' / 'entity_embedding.5.npy'
  changed = bytearray(shard.read_bytes())
  changed[-1] ^= 1
  shard.write_bytes(changed)
  assert train(folder, 3.0)['both']['mrr'] == expected
  assert f'{shard}: is damaged' in caplog.text
  assert (folder / 'damaged_checkpoints' / f'{newest.name}_0').exists()
  export.write(folder, tmp_path / 'exported')
  assert (
    coke_jax.load(tmp_path / 'exported').evaluate('test')['both']['mrr']
    == expected
  )
