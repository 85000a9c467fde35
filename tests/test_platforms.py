"""Checks on a CPU that programs can be lowered for GPUs and TPUs."""

import jax
import jax.export
import numpy as np
import pytest
import small

from coke_jax import parallel, tasks
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import rank_programs
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import parameters
from coke_jax.predict import model as model_lib
from coke_jax.predict import score_programs
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_state, train_step

PLATFORMS = ('cuda', 'tpu')
# The last block computes a single position, and the first block all positions.
TWO_BLOCKS = {'num_layers': 2}


def forget_programs():
  """Clears the caches of the programs that `map_devices` has made."""
  for module in (train_step, rank_programs, score_programs):
    for function in vars(module).values():
      if hasattr(function, 'cache_clear'):
        function.cache_clear()


@pytest.fixture
def exported(monkeypatch):
  """Replaces `map_devices`, and yields the list of lowered programs.

  A call of a mapped function lowers its program and returns zeros. Nothing is
  compiled or run.
  """
  original, found = parallel.map_devices, []

  def map_devices(function, **options):
    mapped = original(function, **options)

    def call(*arguments):
      for platform in PLATFORMS:
        made = jax.export.export(jax.jit(mapped), platforms=[platform])
        found.append(made(*arguments))
      return jax.tree.map(
        lambda leaf: np.zeros(leaf.shape, leaf.dtype),
        jax.tree.unflatten(found[-1].out_tree, found[-1].out_avals),
      )

    return call

  forget_programs()
  monkeypatch.setattr(parallel, 'map_devices', map_devices)
  yield found
  forget_programs()


def check(found, words):
  """Checks the platforms of the lowered programs, and their operations.

  Args:
    found: the lowered programs.
    words: the names of operations that each program must contain.
  """
  assert {program.platforms for program in found} == {
    (platform,) for platform in PLATFORMS
  }
  for program in found:
    text = program.mlir_module()
    for word in words:
      assert f'stablehlo.{word}' in text
    assert 'custom_call @lapack' not in text  # LAPACK runs only on CPUs.


@pytest.mark.parametrize(
  ('model', 'train'),
  [
    ({}, {}),
    ({'dtype': 'bfloat16'}, {'rows': 'query'}),
    (
      {
        'dtype': 'bfloat16',
        'num_layers': 1,
        'num_members': 2,
        'composition': 'rotation',
      },
      {
        'rows': 'query',
        'candidates': 20,
        'n3_penalty': 0.1,
        'dura_penalty': 0.1,
        'rare_answer_weight': 0.2,
        'optimizer': 'adagrad',
      },
    ),
    ({'remat': True}, {'rows': 'query'}),
    (
      {
        'composition': 'complex',
        'relation_directions': True,
        'prediction_head': False,
        'input_dropout': 0.3,
        'output_dropout': 0.2,
      },
      {'rows': 'query'},
    ),
  ],
  ids=str,
)
def test_training_steps(exported, model, train):
  config = small.config(
    model={**TWO_BLOCKS, **model}, train={'batch_size': 8, **train}
  )
  graph = small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  transformation, _ = setup_lib.build_optimizer(config, 10)
  training_set = setup_lib.build_training_set(
    config,
    queries_lib.from_triples(graph.train, graph.vocabulary),
    graph.vocabulary,
  )
  step = train_step.make_train_step(
    coke, transformation, target_mass=0.8, steps_per_call=2
  )
  state = parallel.replicate(train_state.init_state(coke, transformation, 0))
  run = list(training_set.epoch(0))[:2]
  _, metrics = step(state, run, parameters.dropout_key(0))
  assert metrics['loss'].shape == (2,)
  check(exported, ['dot_general', 'while'])


def test_walks_and_inverse_queries(exported):
  data = small.random_paths()
  config = small.config(
    data={'name': 'walks', 'kind': 'walks', 'max_path_length': 3},
    model={'composition': 'complex', 'invert_head_queries': True},
    train={'batch_size': 8, 'rows': 'query', 'walks_per_epoch': 16},
  )
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  setup.train_step(
    parallel.replicate(setup.init_state()),
    list(setup.training_set.epoch(0))[:1],
    parameters.dropout_key(0),
  )
  check(exported, ['dot_general', 'gather'])


def test_ranking(exported):
  config, graph = small.config(model=TWO_BLOCKS), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  params = parallel.replicate(parameters.init_params(coke, 0))
  queries = queries_lib.from_triples(graph.test, graph.vocabulary)
  ranker = ranker_lib.Ranker(coke, 4)
  ranker.rank_filtered(
    params, queries, queries.known_answers(queries, coke.num_entities)
  )
  check(exported, ['dot_general'])
  before = len(exported)
  ranker.rank_among(
    params,
    queries,
    lambda rows: np.ones((len(rows), coke.num_entities), bool),
  )
  assert len(exported) > before
  check(exported, ['dot_general'])


def test_ranking_by_chunks_of_the_vocabulary(exported):
  config, graph = small.config(model=TWO_BLOCKS), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  params = parallel.replicate(parameters.init_params(coke, 0))
  queries = queries_lib.from_triples(graph.test, graph.vocabulary)
  ranker = ranker_lib.Ranker(coke, score_bytes=4 * 256 * 3)
  assert ranker.chunk_size == 3
  ranker.rank_filtered(
    params, queries, queries.known_answers(queries, coke.num_entities)
  )
  check(exported, ['dot_general', 'while'])


def test_predictions_and_scores(exported):
  config, graph = small.config(model=TWO_BLOCKS), small.random_graph()
  coke = tasks.build_model(config, graph.vocabulary)
  model = model_lib.Model(coke, parameters.init_params(coke, 0), graph, 1)
  model.predict([('e01', 'likes', '?')], top=2)
  model.score([('e01', 'likes', 'e02')])
  check(exported, ['dot_general'])
