"""What each --mode does, for the command line and for other programs."""

import time

import jax
import ml_collections

from coke_jax import (
  checkpoint,
  evaluation,
  model,
  parallel,
  trainer,
  training,
  training_log,
  workdir,
)
from coke_jax import config as config_lib
from coke_jax.data import benchmarks, files
from coke_jax.data import graph as graph_lib

# Errors that a user can cause and mend; their text says all.
EXPECTED_ERRORS = (
  files.DataError,
  workdir.WorkdirError,
  checkpoint.CheckpointError,
  training_log.TrainingError,
  FloatingPointError,
  ValueError,
)


def read_graph(config: ml_collections.ConfigDict) -> graph_lib.KnowledgeGraph:
  """Finds and reads the graph that a config names, and says what was read.

  Raises:
    files.DataError: it cannot be found or read, or a known data set has other
      counts than published.
  """
  settings = config.data
  layout = files.TripleFormat(
    tuple(settings.columns.split()), settings.delimiter, settings.header
  )
  folder = benchmarks.locate(settings.name, settings.dir or None)
  started = time.monotonic()
  graph = graph_lib.read_graph(folder, settings.name, layout)
  benchmarks.check_counts(
    settings.name,
    entities=graph.vocabulary.num_entities,
    relations=graph.vocabulary.num_relations,
    **{split: len(graph.split(split)) for split in graph_lib.SPLITS},
  )
  seconds = time.monotonic() - started
  print(f'read {folder} in {seconds:.1f} s\n{graph.summary()}')
  return graph


def train(
  config: ml_collections.ConfigDict, folder: str, split: str = 'test'
) -> None:
  """Trains in a work folder, or continues, then ranks a split with the best.

  Args:
    config: the settings; must be those of the run that the folder holds.
    folder: the work folder.
    split: what to rank in the end.
  """
  config_lib.validate(config)
  _prepare_jax(config)
  place = workdir.Workdir(folder)
  with place.locked():
    if place.exists:
      place.check_config(config)
      graph = place.graph()
      print(
        f'{place.folder}: continuing with the graph it was begun with\n'
        f'{graph.summary()}'
      )
    else:
      graph = read_graph(config)
      place.create(config, graph)
    worker = trainer.Trainer(config, graph, place)
    shapes = jax.eval_shape(
      lambda: training.init_params(worker.model, config.train.seed)
    )
    print(
      f'{model.count_parameters(shapes) / 1e6:.2f} million parameters on '
      f'{parallel.describe_devices()}; {len(worker.training_set.queries):,} '
      f'rows an epoch, {worker.num_steps:,} steps of '
      f'{config.train.batch_size} rows; work folder {place.folder}'
    )
    worker.run()
    _evaluate(config, graph, place, split, worker.ranker)


def evaluate(
  config: ml_collections.ConfigDict, folder: str, split: str = 'test'
) -> None:
  """Ranks a split with the best checkpoint of a work folder."""
  config_lib.validate(config)
  _prepare_jax(config)
  place = workdir.Workdir(folder)
  if not place.exists:
    raise workdir.WorkdirError(
      f'{place.folder}: no config.json: expected a folder that training wrote'
    )
  place.check_config(config)
  graph = place.graph()
  coke = training.build_model(config, graph.vocabulary)
  ranker = evaluation.Ranker(coke, config.evaluate.batch_size)
  with place.locked():
    _evaluate(config, graph, place, split, ranker)


MODES = {'train': train, 'evaluate': evaluate}


def _evaluate(
  config: ml_collections.ConfigDict,
  graph: graph_lib.KnowledgeGraph,
  place: workdir.Workdir,
  split: str,
  ranker: evaluation.Ranker,
) -> None:
  if not len(graph.split(split)):
    print(f'{graph.name} has no {split} triples: nothing to rank')
    return
  params, step = trainer.load_best_params(config, graph, place)
  started = time.monotonic()
  results, _ = evaluation.link_prediction(
    ranker, params, graph, split, progress=f'ranking {split}'
  )
  seconds = time.monotonic() - started
  results['step'] = step
  path = place.write_results(results)
  print(evaluation.format_table(results))
  print(
    f'checkpoint of step {step:,}; ranked in {seconds:.1f} s; written to {path}'
  )


def _prepare_jax(config: ml_collections.ConfigDict) -> None:
  if config.compilation_cache_dir:
    jax.config.update('jax_compilation_cache_dir', config.compilation_cache_dir)
