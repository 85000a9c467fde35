"""What each --mode does, for the command line and for other programs."""

import os
import time

import jax
import ml_collections

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.cli import flags
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import encoder
from coke_jax.storage import workdir
from coke_jax.training import loop


def train_and_evaluate(
  config: ml_collections.ConfigDict,
  folder: str | os.PathLike[str],
  options: flags.Options = flags.DEFAULTS,
) -> None:
  """Trains in a work folder, or continues, then ranks a split with the best.

  Args:
    config: the settings; must be those of the run that the folder holds.
    folder: the work folder.
    options: `split` is ranked in the end.
  """
  config_lib.validate(config)
  parallel.prepare_jax(config)
  place = workdir.Workdir(folder)
  if place.exists:
    with place.locked():
      place.check_config(config)
      data = place.data()
      print(
        f'{place.folder}: continuing with the data it was begun with\n'
        f'{data.summary()}'
      )
      worker = loop.Trainer(config, tasks.make_task(config, data), place)
      _train(worker, options.split)
  else:
    # All that can be wrong is found before the folder is made.
    data = tasks.read_data(config)
    worker = loop.Trainer(config, tasks.make_task(config, data), place)
    with place.locked():
      place.create(config, data)
      _train(worker, options.split)


def _train(worker: loop.Trainer, split: str) -> None:
  config, place = worker.config, worker.folder
  shapes = jax.eval_shape(
    lambda: encoder.init_params(worker.model, config.train.seed)
  )
  print(
    f'{encoder.count_parameters(shapes) / 1e6:.2f} million parameters on '
    f'{parallel.describe_devices()}; {len(worker.training_set.queries):,} '
    f'rows an epoch, {worker.num_steps:,} steps of {config.train.batch_size} '
    f'rows; work folder {place.folder}'
  )
  worker.run()
  evaluate_split(config, worker.task, place, split, worker.ranker)


def evaluate_split(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  place: workdir.Workdir,
  split: str,
  ranker: ranker_lib.Ranker,
) -> None:
  """Ranks a split with the best checkpoint, prints and writes the results."""
  if not len(task.data.split(split)):
    print(f'{task.data.name}: the {split} split is empty: nothing to rank')
    return
  params, step = workdir.load_best_params(config, task, place)
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
