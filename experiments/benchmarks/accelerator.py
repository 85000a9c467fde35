"""Trains the paper's model of FB15k-237 within `--minutes` (default: 8).

    python -m experiments.benchmarks.accelerator --out=DIR --work=DIR

1. Prints versions and devices. Without a GPU or TPU, exits with an error.
2. Times training steps with several batch sizes, values of `train.rows` and
   dtypes, and writes throughput.json.
3. Trains with `train.rows='query'` and bfloat16 products. The number of epochs
   is the largest that fits into the time, at most the paper's 500. The learning
   rate falls to 0 within these epochs.
4. Ranks the test split and writes results.json, metrics.jsonl and the training
   curves.

With `--settings=recipe`, the script trains configs/fb15k237_cpu.py instead of
points 2 and 3. The numbers of epochs and members fit the time.
"""

import argparse
import json
import math
import pathlib
import shutil
import sys
import time
from collections.abc import Sequence
from typing import Any

import jax
import ml_collections

from coke_jax import tasks
from coke_jax.plots import draw
from coke_jax.storage import json_files
from coke_jax.training import run
from experiments.benchmarks import stopwatch
from experiments.paper import options as options_lib
from experiments.paper import provenance, settings

ROWS_IN_TRAINING = 1024
# The learning rate is higher than in the paper, whose batches have only 512
# instances.
LEARNING_RATE = 1e-3
# Each setting consists of `train.rows`, `model.dtype` and the batch size. After
# the measurement, a model is trained with the first setting.
MEASURED = (
  ('query', 'bfloat16', ROWS_IN_TRAINING),
  ('query', 'bfloat16', 4096),
  ('instance', 'bfloat16', 512),
  ('instance', 'float32', 512),
)
# Time that is kept for compilation, the last ranking and the pictures.
RESERVE_SECONDS = 60


def make_config(smoke: bool) -> ml_collections.ConfigDict:
  """Returns the paper's settings with the first setting in `MEASURED`.

  Args:
    smoke: whether to return the settings of a tiny model instead.
  """
  if smoke:
    config = settings.load_config('budgets/smoke')
    config.train.batch_size = 128
    config.train.num_epochs = 0.1
  else:
    config = settings.load_config('fb15k237')
    config.train.batch_size = ROWS_IN_TRAINING
  config.model.dtype = 'bfloat16'
  config.train.rows = 'query'
  config.train.learning_rate = LEARNING_RATE
  config.train.steps_per_call = 4 if smoke else 32
  config.train.log_every_steps = 64
  config.train.checkpoint_every_minutes = 0.0
  return config


def train_paper(
  given: argparse.Namespace, found: dict[str, Any], started: float
) -> None:
  """Times the settings of `MEASURED`, then trains with the first setting.

  Args:
    given: the flags.
    found: the versions and devices, for throughput.json.
    started: the value of `time.monotonic()` at the start of the script.
  """
  config = make_config(given.smoke)
  task = tasks.make_task(config, tasks.read_data(config))
  measured = measure_all(config, task, given.smoke)
  json_files.write_json(
    given.out / 'throughput.json', {**found, 'measured': measured}
  )
  left = 60 * given.minutes - (time.monotonic() - started) - RESERVE_SECONDS
  fit = math.floor(left / (1.1 * measured[0]['seconds_per_epoch']))
  config.train.num_epochs = min(config.train.num_epochs, float(max(1, fit)))
  config.train.validate_every_epochs = max(1.0, config.train.num_epochs // 15)
  print(f'training {config.train.num_epochs:g} epochs')
  run.train_and_evaluate(config, given.work)


def train_recipe(given: argparse.Namespace) -> None:
  """Trains the recipe for the given minutes, minus the reserve."""
  config = settings.load_config('fb15k237_cpu')
  if given.smoke:
    config.data.name = 'countries'
    config.train.num_epochs = 1.0
  minutes = given.minutes - RESERVE_SECONDS / 60
  run.train_and_evaluate(config, given.work, minutes=minutes)


def measure_all(
  config: ml_collections.ConfigDict, task: tasks.Task, smoke: bool
) -> list[dict[str, Any]]:
  """Times the settings of `MEASURED`, or only the first one with `smoke`.

  Returns:
    One entry for each setting, in the same order.
  """
  measured = []
  for rows, dtype, batch_size in MEASURED[:1] if smoke else MEASURED:
    variant = ml_collections.ConfigDict(config.to_dict())
    variant.train.rows, variant.model.dtype = rows, dtype
    # With `smoke`, the batch size is that of the later training, so the step
    # function is compiled only once.
    variant.train.batch_size = config.train.batch_size if smoke else batch_size
    timed = stopwatch.time_training(
      variant, task, seconds=0.1 if smoke else 5.0
    )
    size = variant.train.batch_size
    measured.append({'rows': rows, 'dtype': dtype, 'batch_size': size, **timed})
    print(json.dumps(measured[-1]))
  return measured


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures, trains and writes the results."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--out', type=pathlib.Path, required=True)
  parser.add_argument(
    '--work', type=pathlib.Path, required=True, help='the new work folder'
  )
  parser.add_argument(
    '--minutes',
    type=float,
    default=8.0,
    help='minutes for points 1 to 4; default: 8',
  )
  parser.add_argument(
    '--settings',
    choices=('paper', 'recipe'),
    default='paper',
    help='what to train; default: paper',
  )
  parser.add_argument(
    '--smoke', action='store_true', help='train a tiny model, on any device'
  )
  given = parser.parse_args(arguments)
  started = time.monotonic()
  found = {**provenance.describe(), 'platform': jax.default_backend()}
  print(json.dumps(found))
  if found['platform'] == 'cpu' and not given.smoke:
    sys.exit(
      'error: no GPU or TPU found: expected one. --smoke tests the script on '
      'any device'
    )
  given.out.mkdir(parents=True, exist_ok=True)
  with options_lib.reported_errors():
    if given.settings == 'paper':
      train_paper(given, found, started)
    else:
      train_recipe(given)
    pictures = given.work / 'pictures'
    draw.draw(given.work, pictures)
  for path in (
    given.work / 'results.json',
    given.work / 'metrics.jsonl',
    pictures / 'training_curves.png',
  ):
    shutil.copyfile(path, given.out / path.name)
  print(f'{time.monotonic() - started:.0f} s in all')


if __name__ == '__main__':
  main()
