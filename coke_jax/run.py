"""What each --mode does, for the command line and for other programs."""

import os
import pathlib
import time

import jax
import ml_collections

from coke_jax import config as config_lib
from coke_jax import (
  evaluation,
  export,
  model,
  parallel,
  tasks,
  trainer,
  training,
  workdir,
)
from coke_jax import options as options_lib
from coke_jax.data import path_writer, paths


def train(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Trains in a work folder, or continues, then ranks a split with the best.

  Args:
    config: the settings; must be those of the run that the folder holds.
    folder: the work folder.
    options: `split` is ranked in the end.
  """
  config_lib.validate(config)
  _prepare_jax(config)
  place = workdir.Workdir(folder)
  if place.exists:
    with place.locked():
      place.check_config(config)
      data = place.data()
      print(
        f'{place.folder}: continuing with the data it was begun with\n'
        f'{data.summary()}'
      )
      worker = trainer.Trainer(config, tasks.make_task(config, data), place)
      _train(worker, options.split)
  else:
    # All that can be wrong is found before the folder is made.
    data = tasks.read_data(config)
    worker = trainer.Trainer(config, tasks.make_task(config, data), place)
    with place.locked():
      place.create(config, data)
      _train(worker, options.split)


def evaluate(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Ranks a split with the best checkpoint of a work folder."""
  place = trained_folder(config, folder, may_be_exported=False)
  task = tasks.make_task(config, place.data())
  coke = training.build_model(config, task.data.vocabulary, task.max_length)
  ranker = evaluation.Ranker(coke, config.evaluate.batch_size)
  _evaluate(config, task, place, options.split, ranker)


def sample_paths(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: options_lib.Options = options_lib.DEFAULTS,
) -> None:
  """Writes paths sampled from a graph of triples, as path files.

  Args:
    config: its data.kind is 'walks'.
    folder: where the files go; it must not hold path data yet.
    options: not used: all splits are written.

  Raises:
    config.ConfigError: data.kind is another one.
    files.DataError: the folder holds path data.
  """
  del options
  config_lib.validate(config)
  if config.data.kind != 'walks':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'walks', and "
      'config.data.max_path_length of at least 2, to sample paths'
    )
  data = tasks.read_data(config)
  assert isinstance(data, paths.PathData), 'walks make paths'
  path_writer.write_paths(pathlib.Path(folder), data, tasks.path_format(config))
  print(f'written to {folder}')


def trained_folder(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  *,
  may_be_exported: bool = True,
) -> workdir.Workdir:
  """A work folder, or an exported one, that was begun with these settings.

  Raises:
    workdir.WorkdirError: there is none, or one that will not do.
  """
  config_lib.validate(config)
  _prepare_jax(config)
  place = workdir.Workdir(folder)
  if not place.exists:
    raise workdir.WorkdirError(
      f'{place.folder}: no config.json: expected a folder that training wrote'
    )
  if export.is_export(folder) and not may_be_exported:
    raise workdir.WorkdirError(
      f'{place.folder}: an exported model, which stays as it is: expected the '
      'work folder that it came from'
    )
  place.check_config(config)
  return place


def _train(worker: trainer.Trainer, split: str) -> None:
  config, place = worker.config, worker.folder
  shapes = jax.eval_shape(
    lambda: training.init_params(worker.model, config.train.seed)
  )
  print(
    f'{model.count_parameters(shapes) / 1e6:.2f} million parameters on '
    f'{parallel.describe_devices()}; {len(worker.training_set.queries):,} '
    f'rows an epoch, {worker.num_steps:,} steps of {config.train.batch_size} '
    f'rows; work folder {place.folder}'
  )
  worker.run()
  _evaluate(config, worker.task, place, split, worker.ranker)


def _evaluate(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  place: workdir.Workdir,
  split: str,
  ranker: evaluation.Ranker,
) -> None:
  if not len(task.data.split(split)):
    print(f'{task.data.name}: the {split} split is empty: nothing to rank')
    return
  params, step = trainer.load_best_params(config, task, place)
  started = time.monotonic()
  results = task.evaluate(
    ranker, params, split, choosing=False, progress=f'ranking {split}'
  )
  seconds = time.monotonic() - started
  results['step'] = step
  print(task.format_table(results))  # first, lest the disk be full
  path = place.write_results(results)
  print(
    f'checkpoint of step {step:,}; ranked in {seconds:.1f} s; written to {path}'
  )


def _prepare_jax(config: ml_collections.ConfigDict) -> None:
  if config.compilation_cache_dir:
    folder = pathlib.Path(config.compilation_cache_dir).expanduser()
    jax.config.update('jax_compilation_cache_dir', str(folder))
