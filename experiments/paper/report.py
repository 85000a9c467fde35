"""Writes measured numbers beside the paper's, as Markdown and JSON.

Each table is written to <out>/<name>.json and <out>/<name>.md. Both files state
the budget and list the trained models.
"""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from coke_jax.storage import json_files
from experiments.paper import document, formats, runs, settings
from experiments.paper import options as options_lib


class Table:
  """Collects the rows of a table and writes them.

  Attributes:
    rows: the rows of the JSON file, as `add` returns them.
    lines: the cells of each line of the Markdown table.
  """

  def __init__(
    self,
    options: options_lib.Options,
    name: str,
    *,
    title: str,
    header: Sequence[str],
  ):
    self.rows: list[dict[str, Any]] = []
    self.lines: list[list[str]] = []
    self._options = options
    self._name = name
    self._title = title
    self._header = header
    self._records: dict[str, runs.Record] = {}

  def records(self, run: settings.Run) -> list[runs.Record]:
    """Reads the records of a model, one for each seed trained so far."""
    return runs.load_records(run, self._options.out)

  def add(
    self,
    run: settings.Run,
    records: Sequence[runs.Record],
    numbers: dict[str, Any],
    **more: Any,
  ) -> dict[str, Any]:
    """Adds a row to the JSON file and returns it; does not change `lines`.

    Args:
      run: the model.
      records: its records.
      numbers: the numbers of the row, by metric.
      **more: further entries of the row.
    """
    paths = run.dataset in settings.PATHS
    row = {
      'dataset': run.dataset,
      **({'max_path_length': run.max_path_length} if paths else {}),
      **more,
      'budget': run.budget,
      'stand_in': run.stand_in,
      'full_length': bool(records)
      and all(record['full_length'] for record in records),
      'seeds': [record['seed'] for record in records],
      'numbers': numbers,
      'runs': [record['name'] for record in records],
    }
    self.rows.append(row)
    self._records |= {record['name']: record for record in records}
    return row

  def write(self, *, notes: str = '', **more: Any) -> dict[str, Any]:
    """Writes <out>/<name>.json and <out>/<name>.md, and prints the Markdown.

    Args:
      notes: Markdown below the table.
      **more: further entries of the JSON file.

    Returns:
      The content of the JSON file.
    """
    options, budget = self._options, self._options.budget
    about = settings.BUDGETS[budget]
    text = f'**{self._title}.** Budget **{budget}**: {about}.\n\n'
    text += formats.markdown_table(self._header, self.lines)
    for part in (notes, run_table(self._records.values())):
      if part:
        text += f'\n{part}'
    content = {
      'title': self._title,
      'budget': budget,
      'budget_is': about,
      'rows': self.rows,
      **more,
      'runs': self._records,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    json_files.write_json(options.out / f'{self._name}.json', content)
    page = options.out / f'{self._name}.md'
    page.write_text(text, encoding='utf-8')
    document.update(options.out)
    print(f'\n{text}\nwritten to {options.out / self._name}.json and .md')
    return content


def write_comparison(
  table: Table,
  models: Iterable[settings.Run],
  metrics: Sequence[str],
  printed: Iterable[Sequence[float]],
  side: str = '',
) -> None:
  """Writes a table with three lines for each model: ours, paper, difference.

  Args:
    table: the empty table.
    models: the models.
    metrics: the names of the metrics.
    printed: for each model, the numbers of the paper in the order of `metrics`.
    side: the entry of the results that contains the metrics; empty if the
      results themselves contain them.
  """
  for run, paper in zip(models, printed, strict=True):
    records = table.records(run)
    ours = [record['results'] for record in records]
    if side:
      ours = [results[side] for results in ours]
    row = table.add(run, records, compare(metrics, ours, paper))
    table.lines += comparison_lines(run.title, row, metrics)
  table.write()


def measured(values: Sequence[float]) -> dict[str, float | None]:
  """Returns mean and standard deviation of a metric over several seeds.

  Returns:
    `ours`: the mean; None if there are no seeds.
    `deviation`: the sample standard deviation; None if there are fewer than two
      seeds.
    `paper`: None.
  """
  return {
    'ours': statistics.fmean(values) if values else None,
    'deviation': statistics.stdev(values) if len(values) > 1 else None,
    'paper': None,
  }


def compare(
  metrics: Sequence[str],
  ours: Sequence[dict[str, Any]],
  paper: Sequence[float],
) -> dict[str, dict[str, float | None]]:
  """Compares measured metrics with those of the paper.

  Args:
    metrics: the names of the metrics.
    ours: the metrics of each seed, by name; empty if not run yet.
    paper: the numbers of the paper, in the order of `metrics`.

  Returns:
    A dictionary for each metric: `ours` (mean over the seeds), `deviation`
    (standard deviation), `paper` (published number) and `difference` (`ours`
    minus `paper`).
  """
  compared = {}
  for metric, printed in zip(metrics, paper, strict=True):
    number = measured([seed[metric] for seed in ours if metric in seed])
    mean = number['ours']
    compared[metric] = {
      **number,
      'paper': printed,
      'difference': None if mean is None else mean - printed,
    }
  return compared


def label(row: dict[str, Any]) -> str:
  """Returns the budget of a row.

  A note is added if the run is missing, short or on a stand-in graph.
  """
  if not row['runs']:
    return f'{row["budget"]}: not run yet'
  if row['stand_in']:
    return f'smoke: stand-in graph {row["stand_in"]}'
  if row['budget'] == 'paper' and not row['full_length']:
    return 'paper, cut short'
  return str(row['budget'])


def cells(row: dict[str, Any], metrics: Sequence[str]) -> list[str]:
  """Returns the measured metrics of a row, as mean and deviation."""
  numbers = [row['numbers'][metric] for metric in metrics]
  return [formats.plus_minus(n['ours'], n['deviation']) for n in numbers]


def comparison_lines(
  name: str, row: dict[str, Any], metrics: Sequence[str]
) -> list[list[str]]:
  """Returns three lines of a table: ours, the paper's, the difference."""
  numbers = [row['numbers'][metric] for metric in metrics]
  difference = 'difference'
  if row['stand_in']:
    difference += ' (means nothing: stand-in)'
  count = len(row['seeds'])
  ours = f'ours ({count} seed{"s" * (count > 1)})' if count else 'ours'
  return [
    [name, label(row), ours, *cells(row, metrics)],
    ['', '', 'paper', *(formats.decimal(n['paper']) for n in numbers)],
    ['', '', difference, *(formats.signed(n['difference']) for n in numbers)],
  ]


def run_table(records: Iterable[runs.Record]) -> str:
  """Returns a Markdown table of the models; empty if there are no records."""
  records = list(records)
  if not records:
    return ''
  header = ['model', 'size', 'epochs', 'full length', 'parameters']
  header += ['device', 'wall time', 'commit']
  note = (
    '\nFull length: whether the training has all epochs of the paper. Wall '
    'time: the sum over all processes of the training. Other programs may have '
    'run at the same time.\n'
  )
  if any(' of ' in epochs(record) for record in records):
    note += (
      '\nEpochs `n of m`: the training has m epochs. The best validation was '
      'after n epochs. The metrics are those of the checkpoint after n '
      'epochs.\n'
    )
  if any(record.get('dirty') for record in records):
    note += '\nA `+` after a commit: some changes were not committed.\n'
  if any(record['wall_seconds'] is None for record in records):
    note += (
      '\nSteps alone: these scripts did not start the training, so only the '
      'time of its steps is known. The commit and the device are those at its '
      'end.\n'
    )
  return formats.markdown_table(header, map(_run_line, records)) + note


def _run_line(record: runs.Record) -> list[str]:
  config = record['config']
  wall = formats.duration(record['wall_seconds'])
  if record['wall_seconds'] is None:
    wall = f'steps alone {formats.duration(record["training_seconds"])}'
  return [
    record['name'],
    f'{config["model.num_layers"]} block(s), width '
    f'{config["model.hidden_size"]}',
    epochs(record),
    'yes' if record['full_length'] else 'no',
    f'{record["parameters"] / 1e6:.2f} M',
    f'{record["device"]} ({record["processor"]})',
    wall,
    record.get('commit', 'not in git')[:10] + '+' * bool(record.get('dirty')),
  ]


def epochs(record: runs.Record) -> str:
  """Returns `16`, or `12 of 16` if epoch 12 had the best validation."""
  whole = f'{record["epochs"]:.4g}'
  best = f'{record["epochs"] * record["best_step"] / record["steps"]:.4g}'
  return whole if best == whole else f'{best} of {whole}'
