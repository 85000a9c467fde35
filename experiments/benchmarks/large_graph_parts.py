"""The parts of `large_graph`. Each part runs in a process of its own."""

import dataclasses
import itertools
import pathlib
import sys
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.data import graph as graph_lib
from coke_jax.data import graph_cache, queries, triple_files
from coke_jax.evaluate import link_prediction, ranker
from coke_jax.model import parameters
from coke_jax.predict import model as model_lib
from coke_jax.training import setup as setup_lib
from experiments.benchmarks import memory

HUB_LINES = 10_000  # number of triples of the hub in the part `filter`
RANKED = 1_000  # number of triples in the part `rank`
QUESTIONS = 100  # number of questions in the part `answer`
STEPS = 20  # number of training steps that are timed
WIDTH, BATCH = 32, 512


class Stopwatch:
  """Measures the wall seconds and CPU seconds of named sections."""

  def __init__(self) -> None:
    self.seconds: dict[str, tuple[float, float]] = {}
    self.bytes: dict[str, int] = {}
    self.restart()

  def restart(self) -> None:
    """Starts the next section."""
    self._wall, self._cpu = time.monotonic(), time.process_time()

  def stop(self, name: str) -> None:
    """Ends a section and starts the next one."""
    wall = time.monotonic() - self._wall
    cpu = time.process_time() - self._cpu
    self.seconds[name] = (round(wall, 2), round(cpu, 2))
    print(f'  {name}: {wall:.1f} s, {cpu:.1f} CPU s', file=sys.stderr)
    self.restart()


def run(part: str, folder: pathlib.Path) -> dict[str, Any]:
  """Runs one part in this process.

  Args:
    part: a key of PARTS.
    folder: the folder of the graph.

  Returns:
    A dictionary:
    - `seconds`: the wall seconds and the CPU seconds of each section.
    - `bytes`: the peak memory of arrays, only measured in the part `filter`.
    - `peak_bytes`: the largest resident memory of this process.
  """
  watch = Stopwatch()
  if part == 'parse':
    for cached in (folder / 'cache').glob('*'):
      cached.unlink()
  watch.restart()
  graph = graph_cache.read_graph_cached(
    folder,
    'large',
    triple_files.TripleFormat(),
    folder / 'cache',
    min_bytes=0,
  )
  watch.stop('parse' if part == 'parse' else 'load')
  PARTS[part](graph, watch)
  return {
    'seconds': watch.seconds,
    'bytes': watch.bytes,
    'peak_bytes': memory.resident('self', 'VmHWM'),
  }


def _load(graph: graph_lib.KnowledgeGraph, watch: Stopwatch) -> None:
  print(graph.summary(), file=sys.stderr)
  watch.stop('summary')


def _config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.model.num_layers = 1
  config.model.hidden_size = WIDTH
  config.model.num_heads = 1
  config.model.feed_forward_size = 2 * WIDTH
  config.train.batch_size = BATCH
  config.train.steps_per_call = 4
  return config


def _train(graph: graph_lib.KnowledgeGraph, watch: Stopwatch) -> None:
  config = _config()
  setup = setup_lib.Setup(config, tasks.make_task(config, graph))
  watch.stop('training set')
  epoch = setup.training_set.epoch(0)
  state = setup.placement.place(setup.init_state())
  watch.stop('initial state')
  size = config.train.steps_per_call
  key = parameters.dropout_key(0)
  for call in range(1 + STEPS // size):
    batches = [next(epoch) for _ in range(size)]
    state, metrics = setup.train_step(state, batches, key)
    losses = np.asarray(metrics['loss'])
    assert np.isfinite(losses).all()
    if call == 0:
      watch.stop(f'compilation and {size} steps')
  watch.stop(f'{STEPS} steps')


def _params(graph: graph_lib.KnowledgeGraph) -> tuple[Any, Any]:
  model = tasks.build_model(_config(), graph.vocabulary)
  return model, parallel.replicate(parameters.init_params(model, 0))


def _filter(graph: graph_lib.KnowledgeGraph, watch: Stopwatch) -> None:
  hub = graph.vocabulary.relation_id('P31')
  lines = graph.train[graph.train[:, 1] == hub][:HUB_LINES]
  evaluated = queries.from_triples(lines, graph.vocabulary)
  parts = (
    queries.parts_from_triples(graph.split(split), graph.vocabulary)
    for split in ('train', 'valid', 'test')
  )
  watch.restart()
  tracemalloc.start()  # tracemalloc also traces the memory of NumPy arrays.
  known = evaluated.known_answers(
    itertools.chain.from_iterable(parts), graph.vocabulary.num_entities
  )
  name = f'known answers of {len(lines)} lines'
  watch.stop(name)
  watch.bytes[name] = tracemalloc.get_traced_memory()[1]
  pairs = int(known.sizes.sum())
  print(f'  {len(known.indices):,} ids for {pairs:,} pairs', file=sys.stderr)


def _rank(graph: graph_lib.KnowledgeGraph, watch: Stopwatch) -> None:
  graph = dataclasses.replace(graph, test=graph.test[:RANKED])
  model, params = _params(graph)
  watch.stop('parameters')
  task = link_prediction.LinkPrediction(graph)
  ranks = task.rank(ranker.Ranker(model), params, 'test', progress='ranking')
  watch.stop(f'ranks of {RANKED} triples')
  task.summarize(ranks, 'test')
  watch.stop('metrics')


def _answer(graph: graph_lib.KnowledgeGraph, watch: Stopwatch) -> None:
  model, params = _params(graph)
  watch.stop('parameters')
  loaded = model_lib.Model(model, params, graph, 1)
  watch.stop('known facts')
  entities, relations = graph.vocabulary.entities, graph.vocabulary.relations
  questions = [
    (entities[head], relations[relation], '?')
    for head, relation, _ in graph.test[:QUESTIONS].tolist()
  ]
  answers = loaded.predict(questions, new_only=True)
  assert len(answers) == len(questions)
  watch.stop(f'{QUESTIONS} answers')


PARTS: dict[str, Callable[[graph_lib.KnowledgeGraph, Stopwatch], None]] = {
  'parse': lambda graph, watch: None,  # `run` has read the graph.
  'load': _load,
  'train': _train,
  'filter': _filter,
  'rank': _rank,
  'answer': _answer,
}
