"""Makes tasks from FB15k-237, or from random data if FB15k-237 is missing."""

import ml_collections
import numpy as np

from coke_jax import tasks
from coke_jax.data import benchmarks, graph, text_files
from coke_jax.data import vocabulary as vocabulary_lib
from experiments.benchmarks import plan
from experiments.paper import settings as paper_settings

COUNTS = {
  plan.DATASET: benchmarks.BENCHMARKS[plan.DATASET],
  plan.TINY: benchmarks.Benchmark(50, 4, (300, 20, 20)),
}
_TINY_MODEL = {
  'model.dropout': 0.0,  # The program compiles faster without dropout.
  'model.hidden_size': 16,
  'model.num_heads': 2,
  'model.feed_forward_size': 32,
}


def why_random() -> str:
  """Returns why random data are needed, or '' if FB15k-237 is available."""
  try:
    benchmarks.locate(plan.DATASET, download=False)
  except text_files.DataError as error:
    return str(error)
  return ''


def make_config(setting: plan.Setting) -> ml_collections.ConfigDict:
  """Returns the paper's settings with the changes of a `plan.Setting`."""
  config = paper_settings.load_config('fb15k237')
  if setting.dataset == plan.TINY:
    config.update_from_flattened_dict(_TINY_MODEL)
  config.model.num_layers = setting.num_layers
  config.model.dtype = setting.dtype
  config.train.batch_size = setting.batch_size
  config.train.rows = setting.rows
  return config


def make_task(
  setting: plan.Setting, config: ml_collections.ConfigDict
) -> tasks.Task:
  """Returns the task of a setting, for training and ranking."""
  if setting.random:
    return tasks.make_task(config, random_graph(COUNTS[setting.dataset]))
  return tasks.make_task(config, tasks.read_data(config))


def random_graph(counts: benchmarks.Benchmark) -> graph.KnowledgeGraph:
  """Returns a graph of random triples. Few queries have several answers."""
  generator = np.random.default_rng(0)

  def triples(lines: int) -> np.ndarray:  # int32 [lines, 3]
    highest = [counts.entities, counts.relations, counts.entities]
    return generator.integers(0, highest, (lines, 3), dtype=np.int32)

  vocabulary = vocabulary_lib.Vocabulary(
    tuple(f'e{number:09d}' for number in range(counts.entities)),
    tuple(f'r{number:09d}' for number in range(counts.relations)),
  )
  train, valid, test = map(triples, counts.lines)
  return graph.KnowledgeGraph('random', vocabulary, train, valid, test)
