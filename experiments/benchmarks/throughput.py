"""Estimates the time of the paper's trainings on the devices of this machine.

    python -m experiments.benchmarks.throughput

Trains each model of the paper's tables for some steps, and multiplies the mean
time of a step by the number of steps of the whole training. Of the models for
path queries, only those with the longest training paths are measured.
Compilation and validations are not included.

Writes experiments/results/throughput/<device>.json and updates the table in
docs/reproduction.md. With --out, writes the file to that folder and leaves the
table unchanged.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

from coke_jax import parallel, tasks
from coke_jax.storage import json_files
from experiments.benchmarks import report, stopwatch
from experiments.paper import document, provenance, runs, settings
from experiments.paper import options as options_lib

_COPIED = ('timed_steps', 'seconds_per_step', 'steps')


def measure(run: settings.Run, num_steps: int) -> dict[str, Any]:
  """Times some steps of a training.

  Args:
    run: the model.
    num_steps: minimum number of steps to time.
  """
  runs.compile_fast(run)
  task = tasks.make_task(run.config, tasks.read_data(run.config))
  timed = stopwatch.time_training(run.config, task, seconds=0, least=num_steps)
  return {
    'model': run.key,
    'batch_size': run.config.train.batch_size,
    **{name: timed[name] for name in _COPIED},
    **provenance.describe(),
  }


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures the selected models and prints the table."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument(
    '--steps',
    type=options_lib.positive,
    default=50,
    metavar='N',
    help='minimum number of steps to time for each model; default: 50',
  )
  parser.add_argument(
    '--budget',
    choices=settings.BUDGETS,
    default='paper',
    help='the settings; default: paper. Other budgets need --out',
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
  options = options_lib.Options(
    given.budget, out, datasets=given.datasets, path_lengths=(longest,)
  )
  needed = options.selected([*options.triple_runs(), *options.path_runs()])
  with options_lib.reported_errors():
    measured = {run.key: measure(run, given.steps) for run in needed}
  path = out / f'{report.file_name(parallel.describe_devices())}.json'
  if path.is_file():  # Earlier measurements of other models are kept.
    earlier = json_files.read_json(path)['measurements']
    measured = {one['model']: one for one in earlier} | measured
  out.mkdir(parents=True, exist_ok=True)
  json_files.write_json(path, {'measurements': list(measured.values())})
  print(document.throughput_table(out))
  print(f'written to {path}')
  if not given.out:
    document.write()


if __name__ == '__main__':
  main()
