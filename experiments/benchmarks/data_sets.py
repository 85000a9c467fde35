"""Real data where they are, else random ones with the same counts."""

import dataclasses

import ml_collections
import numpy as np

from coke_jax import tasks
from coke_jax.data import arrays, benchmarks, graph, paths, text_files
from coke_jax.data import vocabulary as vocabulary_lib
from experiments.benchmarks import plan
from experiments.paper import settings as paper_settings


@dataclasses.dataclass(frozen=True)
class Counts:
  """What random data have in common with a data set.

  Attributes:
    config: its file in configs/, without `.py`.
    entities: V.
    relations: with their inverses, if it has paths.
    lines: triples or paths of train, valid and test.
    lengths: training paths of 1, 2, ... relations; empty: triples.
  """

  config: str
  entities: int
  relations: int
  lines: tuple[int, int, int]
  lengths: tuple[int, ...] = ()


COUNTS = {
  'FB15k-237': Counts('fb15k237', 14_541, 237, (272_115, 17_535, 20_466)),
  'WN18RR': Counts('wn18rr', 40_943, 11, (86_835, 3_034, 3_134)),
  'PathQueryWN': Counts(
    'pathquery_wn',
    38_551,
    22,
    (2_129_539, 11_277, 46_577),
    (110_361, 411_209, 505_297, 545_669, 557_003),
  ),
  # For a first look and for tests, with small models.
  'tiny': Counts('fb15k237', 50, 4, (300, 20, 20)),
  'tiny-paths': Counts('pathquery_wn', 50, 4, (300, 20, 20), (100, 200)),
}
_TINY_MODEL = {
  'model.dropout': 0.0,  # compiles faster
  'model.hidden_size': 16,
  'model.num_heads': 2,
  'model.feed_forward_size': 32,
}


def why_random(name: str) -> str:
  """Why random data stand in for a data set; empty: they need not."""
  if name in plan.TINY:
    return 'made up'
  try:
    benchmarks.locate(name, download=False)
  except text_files.DataError as error:
    return str(error)
  return ''


def make_config(setting: plan.Setting) -> ml_collections.ConfigDict:
  """The paper's settings for the data set, but for what is varied."""
  counts = COUNTS[setting.dataset]
  config = paper_settings.load_config(counts.config)
  if setting.dataset in plan.TINY:
    config.update_from_flattened_dict(_TINY_MODEL)
  if counts.lengths:
    config.data.max_path_length = len(counts.lengths)
  config.model.num_layers = setting.num_layers
  config.model.dtype = setting.dtype
  config.train.batch_size = setting.batch_size
  config.train.rows = setting.rows
  return config


def make_task(
  setting: plan.Setting, config: ml_collections.ConfigDict
) -> tasks.Task:
  """What is trained and ranked in a setting."""
  data: arrays.DataSet
  if not setting.random:
    return tasks.make_task(config, tasks.read_data(config))
  counts = COUNTS[setting.dataset]
  if setting.num_entities:
    counts = dataclasses.replace(counts, entities=setting.num_entities)
  data = random_paths(counts) if counts.lengths else random_graph(counts)
  return tasks.make_task(config, data)


def random_graph(counts: Counts, seed: int = 0) -> graph.KnowledgeGraph:
  """Triples drawn evenly; so few queries have several answers."""
  generator = np.random.default_rng(seed)

  def triples(lines: int) -> np.ndarray:  # int32 [lines, 3]
    head, tail = _entities(generator, counts, (2, lines))
    relation = generator.integers(0, counts.relations, lines, dtype=np.int32)
    return np.stack([head, relation, tail], axis=1)

  train, valid, test = map(triples, counts.lines)
  return graph.KnowledgeGraph('random', _vocabulary(counts), train, valid, test)


def random_paths(counts: Counts, seed: int = 0) -> paths.PathData:
  """Paths drawn evenly; all splits have the shares of lengths of train."""
  generator = np.random.default_rng(seed)
  longest = len(counts.lengths)
  share = np.cumsum(counts.lengths) / sum(counts.lengths)

  def split(lines: int) -> paths.PathSet:
    source, target = _entities(generator, counts, (2, lines))
    shape = (lines, longest)
    relations = generator.integers(0, counts.relations, shape, dtype=np.int32)
    length = 1 + np.searchsorted(share, (np.arange(lines) + 0.5) / lines)
    relations[np.arange(longest) >= length[:, None]] = (
      vocabulary_lib.NO_RELATION
    )
    return paths.PathSet(source, relations, target)

  train, valid, test = map(split, counts.lines)
  number = np.arange(counts.relations, dtype=np.int32)
  inverse = np.roll(number, counts.relations // 2)
  return paths.PathData(
    'random', _vocabulary(counts), inverse, train, valid, test, {}
  )


def _entities(
  generator: np.random.Generator, counts: Counts, shape: tuple[int, ...]
) -> np.ndarray:  # int32, of this shape
  return generator.integers(0, counts.entities, shape, dtype=np.int32)


def _vocabulary(counts: Counts) -> vocabulary_lib.Vocabulary:
  return vocabulary_lib.Vocabulary(
    tuple(f'e{number:09d}' for number in range(counts.entities)),
    tuple(f'r{number:09d}' for number in range(counts.relations)),
  )
