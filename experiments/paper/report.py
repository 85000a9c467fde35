"""Our numbers beside the paper's: statistics, Markdown and JSON.

Each table goes to <out>/<name>.json and <out>/<name>.md. The Markdown says the
budget in its caption and in every row, and lists the models behind the rows.
"""

import dataclasses
import pathlib
import statistics
from collections.abc import Sequence
from typing import Any

from coke_jax.storage import json_files
from experiments.paper import document, formats, runs, settings

Cell = str | None  # None: nothing to show


@dataclasses.dataclass(frozen=True)
class Spread:
  """One number over several seeds.

  Attributes:
    mean: over the seeds.
    deviation: the sample standard deviation; None for a single seed.
    count: of the seeds.
  """

  mean: float
  deviation: float | None
  count: int


def spread(values: Sequence[float]) -> Spread:
  """Mean and spread of at least one value."""
  return Spread(
    mean=statistics.fmean(values),
    deviation=statistics.stdev(values) if len(values) > 1 else None,
    count=len(values),
  )


def compare(
  metrics: Sequence[str],
  ours: Sequence[dict[str, Any]],
  paper: Sequence[float],
) -> dict[str, dict[str, float | None]]:
  """Our metrics, the paper's, and the difference.

  Args:
    metrics: their names.
    ours: the metrics of each seed, by name; empty: not run yet.
    paper: what the paper prints, in the order of `metrics`.

  Returns:
    By metric: `ours` (the mean), `deviation`, `paper`, `difference`.
  """
  compared = {}
  for metric, printed in zip(metrics, paper, strict=True):
    values = [seed[metric] for seed in ours if metric in seed]
    ours_spread = spread(values) if values else None
    compared[metric] = {
      'ours': ours_spread.mean if ours_spread else None,
      'deviation': ours_spread.deviation if ours_spread else None,
      'paper': printed,
      'difference': ours_spread.mean - printed if ours_spread else None,
    }
  return compared


def make_row(
  run: settings.Run,
  records: Sequence[runs.Record],
  numbers: dict[str, Any],
  **more: Any,
) -> dict[str, Any]:
  """A row of a table for programs: what it is, its numbers, its models."""
  return {
    'dataset': run.dataset,
    **more,
    'budget': run.budget,
    'stand_in': run.stand_in,
    'full_length': bool(records)
    and all(record['full_length'] for record in records),
    'seeds': [record['seed'] for record in records],
    'numbers': numbers,
    'runs': [record['name'] for record in records],
  }


def label(row: dict[str, Any]) -> str:
  """How far a row can be trusted, in the words of every table."""
  if not row['runs']:
    return f'{row["budget"]}: not run yet'
  if row['stand_in']:
    return f'smoke: stand-in graph {row["stand_in"]}'
  if row['budget'] == 'paper' and not row['full_length']:
    return 'paper, cut short'
  return str(row['budget'])


def comparison_lines(
  name: str, row: dict[str, Any], metrics: Sequence[str]
) -> list[list[str]]:
  """Three lines of a table: ours, the paper's, the difference."""
  numbers = [row['numbers'][metric] for metric in metrics]
  difference = 'difference'
  if row['stand_in']:
    difference += ' (means nothing: stand-in)'
  return [
    [
      name,
      label(row),
      f'ours ({_seeds(row)})' if row['runs'] else 'ours',
      *(formats.plus_minus(n['ours'], n['deviation']) for n in numbers),
    ],
    ['', '', 'paper', *(formats.decimal(n['paper']) for n in numbers)],
    ['', '', difference, *(formats.signed(n['difference']) for n in numbers)],
  ]


def _seeds(row: dict[str, Any]) -> str:
  count = len(row['seeds'])
  return '1 seed' if count == 1 else f'{count} seeds'


def caption(title: str, budget: str) -> str:
  """What a table is and at which budget, above it."""
  return f'**{title}.** Budget **{budget}**: {settings.BUDGETS[budget]}.\n'


def run_table(records: Sequence[runs.Record]) -> str:
  """The models behind a table, a line each; empty without one."""
  if not records:
    return ''
  lines = []
  for record in {record['name']: record for record in records}.values():
    settings_of = record['config']
    wall = formats.duration(record['wall_seconds'])
    if record['wall_seconds'] is None:
      wall = f'steps alone {formats.duration(record["training_seconds"])}'
    commit = record.get('commit', 'not in git')[:10]
    lines.append(
      [
        record['name'],
        f'{settings_of["model.num_layers"]} block(s), width '
        f'{settings_of["model.hidden_size"]}',
        _epochs(record),
        'yes' if record['full_length'] else 'no',
        f'{record["parameters"] / 1e6:.2f} M',
        f'{record["device"]} ({record["processor"]})',
        wall,
        commit + ('+' if record.get('dirty') else ''),
      ]
    )
  header = ['model', 'size', 'epochs', "the paper's length", 'parameters']
  header += ['device', 'wall time', 'commit']
  note = '\nWall time: of all sittings, whatever else ran meanwhile.\n'
  if any(' of ' in _epochs(record) for record in records):
    note += (
      '\nEpochs `n of m`: the best validation, whose checkpoint is behind the '
      'numbers, was after n.\n'
    )
  if any(record.get('dirty') for record in records):
    note += '\nA `+` behind a commit: with changes that were not committed.\n'
  if any(record['wall_seconds'] is None for record in records):
    note += (
      '\nSteps alone: begun by another program, so that only the time of the '
      'steps is known; commit and device are those at the end.\n'
    )
  return formats.markdown_table(header, lines) + note


def _epochs(record: runs.Record) -> str:
  """Epochs until the checkpoint that was ranked, of all."""
  whole = f'{record["epochs"]:.4g}'
  best = f'{record["epochs"] * record["best_step"] / record["steps"]:.4g}'
  return whole if best == whole else f'{best} of {whole}'


def write(
  out: pathlib.Path,
  name: str,
  *,
  title: str,
  budget: str,
  rows: Sequence[dict[str, Any]],
  records: Sequence[runs.Record],
  table: str,
  notes: str = '',
  more: dict[str, Any] | None = None,
) -> dict[str, Any]:
  """Writes <out>/<name>.json and .md, and prints the latter.

  Args:
    out: where results go.
    name: of the table.
    title: what it shows.
    budget: of settings.BUDGETS.
    rows: of `make_row`.
    records: of the models behind them.
    table: the rows in Markdown.
    notes: Markdown below the table.
    more: for programs, beside the rows.

  Returns:
    What the JSON holds.
  """
  text = f'{caption(title, budget)}\n{table}'
  for part in (notes, run_table(records)):
    if part:
      text += f'\n{part}'
  out.mkdir(parents=True, exist_ok=True)
  numbers = {
    'title': title,
    'budget': budget,
    'budget_is': settings.BUDGETS[budget],
    'rows': list(rows),
    **(more or {}),
    'runs': {record['name']: record for record in records},
  }
  json_files.write_json(out / f'{name}.json', numbers)
  (out / f'{name}.md').write_text(text, encoding='utf-8')
  document.update(out)
  print(f'\n{text}\nwritten to {out / name}.json and .md')
  return numbers
