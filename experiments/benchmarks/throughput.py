"""How long the paper's settings would take on the devices at hand.

    python -m experiments.benchmarks.throughput

Trains each model of the paper's tables for some steps, without keeping it, and
multiplies the mean time of a step by the steps of the whole training. Compiling
and validating are not in it. Writes
experiments/results/throughput/<device>.json; the table is in
docs/reproduction.md.
"""

import argparse
import pathlib
import re
import sys
import time
from collections.abc import Sequence
from typing import Any

from coke_jax import parallel, tasks
from coke_jax.cli import commands
from coke_jax.data import batches
from coke_jax.storage import json_files
from experiments.benchmarks import coke_steps
from experiments.paper import (
  document,
  provenance,
  runs,
  settings,
  throughput_table,
)
from experiments.paper import options as options_lib


def measure(run: settings.Run, num_steps: int) -> dict[str, Any]:
  """Times the first steps of a training.

  Args:
    run: the model.
    num_steps: steps to time, or some more. Besides them, each shape of a batch
      has one call during which it is compiled.
  """
  runs.prepare_jax(run)
  config = run.config
  task = tasks.make_task(config, tasks.read_data(config))
  steps = coke_steps.Steps(config, task)
  compiled: set[tuple[int, ...]] = set()
  seconds, count = 0.0, 0
  for together in batches.chunks(
    steps.training_set.epoch(0), steps.steps_per_call, lambda _: False
  ):
    started = time.perf_counter()
    steps.run(together)
    shape = together[0]['tokens'].shape
    if shape in compiled:
      seconds += time.perf_counter() - started
      count += len(together)
    compiled.add(shape)
    if count >= num_steps:
      break
  return {
    'model': run.key,
    'batch_size': config.train.batch_size,
    'timed_steps': count,
    'seconds_per_step': seconds / count,
    'steps': steps.num_steps,
    **provenance.describe(),
  }


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures what the flags ask for."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--steps',
    type=options_lib.positive,
    default=50,
    metavar='N',
    help='steps to time, of each model; default: 50',
  )
  parser.add_argument(
    '--budget',
    choices=settings.BUDGETS,
    default='paper',
    help="whose settings; default: paper. Only the paper's are written to "
    'experiments/results unless --out says otherwise',
  )
  options_lib.add_datasets(parser)
  parser.add_argument(
    '--out',
    type=pathlib.Path,
    help='folder for the measurements; default: experiments/results/throughput',
  )
  given = parser.parse_args(arguments)
  if given.budget != 'paper' and not given.out:
    parser.error(f'--budget={given.budget} needs --out')
  out = given.out or document.RESULTS / 'throughput'
  longest = max(settings.path_lengths(given.budget))
  options = options_lib.Options(given.budget, out, datasets=given.datasets)
  needed = [
    *options.runs(settings.TRIPLES),
    *options.runs(settings.PATHS, longest),
  ]
  with options_lib.stoppable():
    try:
      measured = [measure(run, given.steps) for run in needed]
    except commands.EXPECTED_ERRORS as error:
      sys.exit(f'error: {error}')
  path = out / f'{_slug(parallel.describe_devices())}.json'
  out.mkdir(parents=True, exist_ok=True)
  json_files.write_json(path, {'measurements': _merged(path, measured)})
  print(throughput_table.render(out))
  print(f'written to {path}')
  if not given.out:
    document.write()


def _merged(
  path: pathlib.Path, measured: list[dict[str, Any]]
) -> list[dict[str, Any]]:
  """Earlier measurements of other models there, and these."""
  models = {one['model']: one for one in measured}
  if path.is_file():
    earlier = json_files.read_json(path)['measurements']
    models = {one['model']: one for one in earlier} | models
  return list(models.values())


def _slug(device: str) -> str:
  return re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')


if __name__ == '__main__':
  main()
