"""Trains a config with every combination of the given field values.

    python -m experiments.search --config=configs/fb15k237_cpu.py --out=search \
      --set model.dropout=0.2,0.3 --set train.target_mass=0.9,0.5

Sorts the combinations by their best validation and writes search.json and
search.md. Each combination has its own work folder in `--out`. The same command
continues an interrupted search. The test split is not used.
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from coke_jax.storage import json_files, workdir
from experiments.paper import formats
from experiments.paper import options as options_lib

# Metrics of the valid split. Combinations are sorted by the first metric in
# this list that their task has.
METRICS = ('mrr', 'mean_quantile', 'hits@10')
# Several trainings can share a GPU.
_ENVIRONMENT = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}


def combinations(grid: Sequence[str]) -> list[dict[str, str]]:
  """Returns every combination of one value per field.

  Args:
    grid: texts like 'model.dropout=0.2,0.3'.

  Raises:
    ValueError: a text does not have this form, or a field is given twice.
  """
  fields: dict[str, list[str]] = {}
  for text in grid:
    field, equals, values = text.partition('=')
    if not (field and equals and all(values.split(','))) or field in fields:
      raise ValueError(
        f'--set {text}: expected <group>.<field>=<value>,<value>,..., and each '
        'field once'
      )
    fields[field] = values.split(',')
  return [
    dict(zip(fields, chosen, strict=True))
    for chosen in itertools.product(*fields.values())
  ]


def train(config: str, chosen: dict[str, str], out: pathlib.Path) -> bool:
  """Trains one combination in a process; returns whether it succeeded."""
  folder = out / _name(chosen)
  out.mkdir(parents=True, exist_ok=True)
  with (out / f'{folder.name}.log').open('w', encoding='utf-8') as log:
    done = subprocess.run(
      [
        sys.executable,
        '-m',
        'coke_jax.main',
        f'--config={config}',
        f'--workdir={folder}',
        '--split=valid',
        *(f'--config.{field}={value}' for field, value in chosen.items()),
      ],
      stdout=log,
      stderr=subprocess.STDOUT,
      env={**_ENVIRONMENT, **os.environ},
      check=False,
    )
  return done.returncode == 0


def best_validation(folder: pathlib.Path) -> dict[str, Any]:
  """Reads the metrics of the best checkpoint from the log.

  Returns:
    The `step`, the `epoch`, `hits@10`, and the metric that selects the best
    checkpoint: `mrr` for triples, `mean_quantile` for paths.
  """
  kept = json_files.read_json(folder / 'results_valid.json')['step']
  line = next(
    line
    for line in workdir.Workdir(folder).metrics().read()
    if line['kind'] == 'valid' and line['step'] == kept
  )
  measured = line.get('both', line)  # metrics of heads and tails, for triples
  return {
    'step': kept,
    'epoch': line['epoch'],
    **{name: measured[name] for name in METRICS if name in measured},
  }


def report(tried: list[dict[str, Any]], out: pathlib.Path) -> str:
  """Writes search.json and search.md; returns the table, sorted best first."""
  metrics = [name for name in METRICS if name in tried[0]]
  tried = sorted(tried, key=lambda one: -one[metrics[0]])
  json_files.write_json(out / 'search.json', {'tried': tried})
  table = formats.markdown_table(
    ['settings', 'epoch', *metrics],
    [
      [
        ', '.join(f'{field}={value}' for field, value in one['set'].items()),
        f'{one["epoch"]:.4g}',
        *(f'{one[name]:.4f}' for name in metrics),
      ]
      for one in tried
    ],
  )
  (out / 'search.md').write_text(table + '\n', encoding='utf-8')
  return table


def main(arguments: Sequence[str] | None = None) -> None:
  """Trains all combinations and prints the table."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--config', required=True, help='a file of configs/')
  parser.add_argument(
    '--set',
    action='append',
    default=[],
    metavar='FIELD=VALUE,VALUE',
    help='values to try for a field; may be repeated',
  )
  parser.add_argument(
    '--parallel',
    type=options_lib.positive,
    default=1,
    metavar='N',
    help='simultaneous trainings; default: 1',
  )
  parser.add_argument(
    '--out', type=pathlib.Path, required=True, help='folder for all results'
  )
  given = parser.parse_args(arguments)
  try:
    chosen = combinations(given.set)
  except ValueError as error:
    parser.error(str(error))
  failed, tried = [], []
  with concurrent.futures.ThreadPoolExecutor(given.parallel) as pool:
    outcomes = pool.map(lambda one: train(given.config, one, given.out), chosen)
    for one, worked in zip(chosen, outcomes, strict=True):
      if not worked:
        failed.append(given.out / f'{_name(one)}.log')
        continue
      line = best_validation(given.out / _name(one))
      tried.append({'set': one, **line})
      print(json.dumps(tried[-1]), flush=True)
  if tried:
    print(report(tried, given.out))
  if failed:
    sys.exit(
      'error: not trained, see ' + ', '.join(str(path) for path in failed)
    )


def _name(chosen: dict[str, str]) -> str:
  name = ','.join(f'{field}={value}' for field, value in chosen.items())
  return re.sub(r'[^\w.,=+-]', '_', name) or 'as_it_is'


if __name__ == '__main__':
  main()
