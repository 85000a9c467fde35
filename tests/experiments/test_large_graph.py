"""Tests the scripts for large graphs, but with small graphs."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from coke_jax import config as config_lib
from coke_jax import recipes, tasks
from coke_jax.data import triple_files, vocabulary
from coke_jax.model import parameters
from experiments.benchmarks import large_graph, large_graph_parts, scaling

ENTITIES = 2_000


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  made = tmp_path_factory.mktemp('large') / str(ENTITIES)
  large_graph.make_graph(made, ENTITIES)
  return made


def test_the_graph_has_a_hub_and_all_entities(folder):
  graph = triple_files.read_graph(folder, 'x', triple_files.TripleFormat())
  triples = graph.triples('train', 'valid', 'test')
  assert graph.vocabulary.num_entities == ENTITIES
  assert len(triples) == 4 * ENTITIES
  assert set(triples[:, 0]) == set(range(ENTITIES))
  hub = triples[triples[:, 1] == graph.vocabulary.relation_id('P31')]
  assert len(np.unique(hub, axis=0)) == len(hub) == 0.4 * ENTITIES
  assert len(set(hub[:, 2])) == 1


def test_parts_without_training(folder):
  results = {}
  for part in ('parse', 'load', 'filter'):
    results[part] = large_graph_parts.run(part, folder)
  # About 780 of the 800 facts of the hub are in train. A separate list of 800
  # answers for each of the 780 facts would take 780 x 800 x 4 bytes, twice the
  # limit.
  (size,) = results['filter']['bytes'].values()
  assert size < 2 * 800 * 780
  table = large_graph.table({str(ENTITIES): results})
  assert 'filter: known answers of' in table
  assert 'load: peak memory' in table


@pytest.mark.parametrize('layers', [0, 3])
def test_estimated_parameters(layers):
  """Compares the estimate with the number of parameters of a model."""
  config = (
    recipes.factorization() if not layers else config_lib.default_config()
  )
  config.model.num_layers = layers
  config.model.hidden_size = 64
  config.model.feed_forward_size = 128
  labels = vocabulary.Vocabulary(('e',) * 30_000, ('r',) * 100)
  model = tasks.build_model(config, labels)
  shapes = jax.eval_shape(lambda: parameters.init_params(model, 0))
  expected = parameters.count_parameters(shapes)
  shape = scaling.Shape(30_000, 64, 512, layers, relations=100)
  (machine, *_) = scaling.MACHINES
  assert shape.parameters(machine) == pytest.approx(expected, rel=0.02)


def test_larger_models_take_more_memory_and_time():
  for small, large in itertools.pairwise([10_000, 400_000, 600_000, 5_000_000]):
    for machine in scaling.MACHINES:
      one, other = (scaling.Shape(v, 64, 512) for v in (small, large))
      assert (
        scaling.seconds(one, machine)['step']
        < (scaling.seconds(other, machine)['step'])
      )
  machine, several = scaling.MACHINES[:2]
  one = scaling.Shape(5_000_000, 64, 512)
  assert one.in_chunks(machine)
  # Two chunks of 64 MiB are in memory instead of two copies of the logits.
  state = 20 * one.parameters(machine)
  assert scaling.memory(one, machine) == state + 2**27
  few = dataclasses.replace(one, candidates=1000, adagrad=True)
  # A parameter and its sum of squared gradients take 8 bytes together. The
  # gradient and the logits of the candidates take less than 2 %.
  assert scaling.memory(few, machine) == pytest.approx(
    8 * one.parameters(machine), rel=0.02
  )
  cut = dataclasses.replace(one, shards=True)
  assert scaling.memory(cut, several) == pytest.approx(
    state / several.devices + 2**27, rel=0.02
  )
