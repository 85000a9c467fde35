"""Link prediction on test paths with a single relation (paper, section 4.2).

    python -m experiments.paper.single_hop_from_paths --budget=cpu

Shows whether longer training paths help with queries of a single relation.
path_queries.py trains one model for each k from 1 to 5, on paths with at most k
relations (PATHS <= k). These models rank the head and the tail of each test
path with a single relation, in the filtered setting. The paper has bars without
numbers. The script counts how many of our numbers are higher than for k = 1,
and how many are higher than for the previous k.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.plots import plot_style
from experiments.paper import options as options_lib
from experiments.paper import published, report, runs, settings

NAME = 'single_hop_from_paths'
_METRICS = published.LINK_PREDICTION_METRICS
_METRIC_NAMES = ('MRR', 'hits@1', 'hits@3', 'hits@10')


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """Returns the runs of this figure that the flags select."""
  return options.selected(options.path_runs())


def make(options: options_lib.Options) -> None:
  """Trains the missing models, writes the table and draws the bars."""
  runs.ensure_all(needed_runs(options), options.out)
  table = report.Table(
    options,
    NAME,
    title='Link prediction on test paths with a single relation, filtered',
    header=['trained on', 'budget', 'seeds', *_METRIC_NAMES],
  )
  for run in options.path_runs():
    records = table.records(run)
    ours = [record['results']['single_edges']['both'] for record in records]
    row = table.add(
      run,
      records,
      {
        metric: report.measured([r[metric] for r in ours])
        for metric in _METRICS
      },
    )
    seeds = str(len(records) or '-')
    table.lines.append(
      [run.title, report.label(row), seeds, *report.cells(row, _METRICS)]
    )
  content = table.write(
    notes=f'![The numbers as bars]({NAME}.png)\n\n{_findings(table.rows)}',
    paper='a figure without numbers',
  )
  _draw(content, options.out)


def _findings(rows: Sequence[dict[str, Any]]) -> str:
  """Counts how often our numbers are higher for a larger k."""
  lines = []
  for dataset in settings.PATHS:
    own = [row for row in rows if row['dataset'] == dataset and row['runs']]
    own.sort(key=lambda row: row['max_path_length'])
    if len(own) < 2 or own[0]['max_path_length'] != 1:
      continue
    # The shape is [models, metrics].
    means = np.array(
      [[row['numbers'][m]['ours'] for m in _METRICS] for row in own]
    )
    above = int((means[1:] > means[0]).sum())
    grown = int((np.diff(means, axis=0) > 0).sum())
    count = means[1:].size
    lines.append(
      f'- {dataset} ({report.label(own[0])}): for k >= 2, {above} of {count} '
      'numbers are higher than for k = 1. In the paper, almost all are higher. '
      f'From one k to the next, {grown} of {count} numbers increase. In the '
      'paper, they generally increase.\n'
    )
  return ''.join(lines)


def _draw(content: dict[str, Any], out: pathlib.Path) -> None:
  """Draws a panel for each data set, with a bar for each metric and k."""
  with plot_style.style():
    figure = plot_style.new_figure(11, 4)
    panels = figure.subplots(1, len(settings.PATHS), sharey=True)
    for panel, dataset in zip(panels, settings.PATHS, strict=True):
      rows = [row for row in content['rows'] if row['dataset'] == dataset]
      _draw_panel(panel, dataset, rows)
    panels[0].set_ylabel('filtered, test paths of one relation')
    handles, names = max(
      (panel.get_legend_handles_labels() for panel in panels),
      key=lambda both: len(both[1]),
    )
    if handles:
      figure.legend(handles, names, loc='outside right center')
    plot_style.save(figure, content, out, NAME)


def _draw_panel(panel: Any, dataset: str, rows: list[dict[str, Any]]) -> None:
  width = 0.8 / len(rows)
  for place, row in enumerate(rows):
    if not row['runs']:
      continue
    numbers = [row['numbers'][metric] for metric in _METRICS]
    deviations = [number['deviation'] or 0.0 for number in numbers]
    panel.bar(
      np.arange(len(_METRICS)) + (place - (len(rows) - 1) / 2) * width,
      [number['ours'] for number in numbers],
      width * 0.92,
      yerr=deviations if len(row['runs']) > 1 else None,
      color=plot_style.COLORS[place],
      label=f'PATHS ≤ {row["max_path_length"]}',
    )
  trained = [row for row in rows if row['runs']]
  title = f'{dataset}\nbudget {report.label((trained or rows)[0])}'
  if 0 < len(trained) < len(rows):
    done = ', '.join(str(row['max_path_length']) for row in trained)
    title += f' (k = {done})'
  panel.set_title(title, loc='left')
  panel.set_xticks(np.arange(len(_METRICS)), _METRIC_NAMES)
  panel.set_xlim(-0.6, len(_METRICS) - 0.4)


if __name__ == '__main__':
  options_lib.run_script(make, __doc__)
