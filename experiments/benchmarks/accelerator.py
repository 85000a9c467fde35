"""Trains the paper's model of FB15k-237 as long as the given minutes allow.

    python -m experiments.benchmarks.accelerator --out=DIR --work=DIR

1. Says versions and devices; without a GPU or TPU it goes no further.
2. Times steps at several batch sizes, in float32 and bfloat16, both kinds of
   rows: throughput.json.
3. Trains with rows of whole queries and bfloat16 products: as many epochs as
   fit, at most the paper's 500, so that the learning rate falls to 0 in time.
4. Ranks the test split and writes results.json, metrics.jsonl and the learning
   curve as a picture.
"""

import argparse
import importlib.metadata
import itertools
import json
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import jax
import ml_collections

from coke_jax import parallel, tasks
from coke_jax.cli import commands
from coke_jax.data import batches as batches_lib
from coke_jax.plots import draw
from coke_jax.storage import json_files
from coke_jax.training import run
from experiments.benchmarks import coke_steps
from experiments.paper import settings

PACKAGES = ('jax', 'jaxlib', 'flax', 'optax', 'orbax-checkpoint', 'numpy')
ROWS_IN_TRAINING = 1024
LEARNING_RATE = 1e-3  # of the larger batches; the paper's is of 512 instances
# Rows, operands, rows of a batch. The first is the one that is trained.
MEASURED = (
  ('query', 'bfloat16', ROWS_IN_TRAINING),
  ('query', 'bfloat16', 4096),
  ('instance', 'bfloat16', 512),
  ('instance', 'float32', 512),
)
RESERVE_SECONDS = 60  # for compiling, the last ranking, and pictures


def describe() -> dict[str, Any]:
  """Versions and devices."""
  return {
    'python': sys.version.split()[0],
    **{name: importlib.metadata.version(name) for name in PACKAGES},
    'devices': parallel.describe_devices(),
    'platform': jax.default_backend(),
  }


def make_config(smoke: bool) -> ml_collections.ConfigDict:
  """The paper's setting, at a batch size that fills a device."""
  config = settings.load_config('countries' if smoke else 'fb15k237')
  config.model.dtype = 'bfloat16'
  config.train.rows = 'query'
  config.train.batch_size = ROWS_IN_TRAINING
  config.train.learning_rate = LEARNING_RATE
  config.train.steps_per_call = 32
  config.train.log_every_steps = 64
  config.train.checkpoint_every_minutes = 0.0
  if smoke:
    config.model.num_layers = 1
    config.model.hidden_size = 32
    config.model.feed_forward_size = 64
    config.model.dropout = 0.0  # compiles faster
    config.train.batch_size = 128
  return config


def measure(
  config: ml_collections.ConfigDict, task: tasks.Task, seconds: float
) -> dict[str, Any]:
  """Times steps of a training, without compiling.

  Args:
    config: what to train.
    task: on what.
    seconds: for how long at least.

  Returns:
    Among others `seconds_per_epoch` and `instances_per_second`.
  """
  started = time.perf_counter()
  steps = coke_steps.Steps(config, task)
  training_set = steps.training_set
  batches = itertools.chain.from_iterable(
    map(training_set.epoch, itertools.count())
  )
  steps.run(itertools.islice(batches, steps.steps_per_call))
  compile_seconds = time.perf_counter() - started
  count = 0

  def while_time_is_left() -> Iterator[batches_lib.Batch]:
    nonlocal count
    while not count or time.perf_counter() - started < seconds:
      count += 1
      yield next(batches)

  started = time.perf_counter()
  steps.run(while_time_is_left())
  step_seconds = (time.perf_counter() - started) / count
  epoch_seconds = step_seconds * training_set.steps_per_epoch
  return {
    'rows': config.train.rows,
    'dtype': config.model.dtype,
    'batch_size': config.train.batch_size,
    'steps': count,
    'seconds_per_step': step_seconds,
    'seconds_per_epoch': epoch_seconds,
    'epochs_per_hour': 3600 / epoch_seconds,
    'rows_per_second': len(training_set.queries) / epoch_seconds,
    'instances_per_second': training_set.num_instances / epoch_seconds,
    'compile_seconds': compile_seconds,
  }


def measure_all(
  config: ml_collections.ConfigDict, task: tasks.Task, smoke: bool
) -> list[dict[str, Any]]:
  """Times what `MEASURED` lists; the first is what will be trained."""
  made = []
  for rows, dtype, batch_size in MEASURED[:1] if smoke else MEASURED:
    variant = ml_collections.ConfigDict(config.to_dict())
    variant.train.rows, variant.model.dtype = rows, dtype
    variant.train.batch_size = min(batch_size, 4 * config.train.batch_size)
    made.append(measure(variant, task, 0.1 if smoke else 5.0))
    print(json.dumps(made[-1]))
  return made


def main(arguments: Sequence[str] | None = None) -> None:
  """Does what the module's text says."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--out', type=pathlib.Path, required=True)
  parser.add_argument(
    '--work', type=pathlib.Path, required=True, help='the work folder to make'
  )
  parser.add_argument(
    '--minutes', type=float, default=8.0, help='for all together; default: 8'
  )
  parser.add_argument(
    '--smoke', action='store_true', help='a tiny model, on any device'
  )
  parser.add_argument(
    '--only-measure', action='store_true', help='stop after timing'
  )
  given = parser.parse_args(arguments)
  started = time.monotonic()
  found = describe()
  print(json.dumps(found))
  if found['platform'] == 'cpu' and not given.smoke:
    sys.exit('error: no GPU or TPU found: expected one, or --smoke')
  given.out.mkdir(parents=True, exist_ok=True)
  config = make_config(given.smoke)
  try:
    task = tasks.make_task(config, tasks.read_data(config))
    measured = measure_all(config, task, given.smoke)
    json_files.write_json(
      given.out / 'throughput.json', {**found, 'measured': measured}
    )
    if given.only_measure:
      return
    left = 60 * given.minutes - (time.monotonic() - started) - RESERVE_SECONDS
    fit = math.floor(left / (1.1 * measured[0]['seconds_per_epoch']))
    config.train.num_epochs = (
      2.0 if given.smoke else float(max(1, min(config.train.num_epochs, fit)))
    )
    config.train.validate_every_epochs = max(1.0, config.train.num_epochs // 15)
    print(f'training {config.train.num_epochs:.0f} epochs')
    run.train_and_evaluate(config, given.work)
  except commands.EXPECTED_ERRORS as error:
    sys.exit(f'error: {error}')
  for name in ('results.json', 'metrics.jsonl'):
    shutil.copyfile(given.work / name, given.out / name)
  pictures = given.work / 'pictures'
  draw.draw(given.work, pictures)
  shutil.copyfile(
    pictures / 'training_curves.png', given.out / 'training_curves.png'
  )
  print(f'{time.monotonic() - started:.0f} s in all')


if __name__ == '__main__':
  main()
