"""Link prediction on the test paths of one relation (paper, section 4.2).

    python -m experiments.paper.single_hop_from_paths --budget=cpu

Do longer training paths help with single hops? The models of
path_queries.py, PATHS <= k for k = 1 to 5, rank both ends of the
test paths of length 1 in the filtered setting. The paper draws bars and prints
no numbers; what its text says of them is checked.
"""

import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.plots import plot_style
from experiments.paper import formats, published, report, runs, settings
from experiments.paper import options as options_lib

NAME = 'single_hop_from_paths'
TITLE = 'Link prediction on test paths of one relation, filtered'
_METRICS = published.LINK_PREDICTION_METRICS
_METRIC_NAMES = ('MRR', 'hits@1', 'hits@3', 'hits@10')


def needed_runs(options: options_lib.Options) -> list[settings.Run]:
  """The models that this figure needs."""
  return options.path_runs()


def make(options: options_lib.Options) -> None:
  """Trains what is missing, writes the table and draws the bars."""
  runs.ensure_all(needed_runs(options), options.out)
  rows, lines, all_records = [], [], []
  for dataset in settings.PATHS:
    for length in settings.path_lengths(options.budget):
      run = options.run(dataset, length)
      records = runs.load_records(run, options.out)
      numbers = {metric: _numbers(metric, records) for metric in _METRICS}
      row = report.make_row(run, records, numbers, max_path_length=length)
      rows.append(row)
      cells = [
        formats.plus_minus(
          numbers[metric]['ours'], numbers[metric]['deviation']
        )
        for metric in _METRICS
      ]
      seeds = str(len(records) or '-')
      name = f'{dataset}, PATHS <= {length}'
      lines.append([name, report.label(row), seeds, *cells])
      all_records += records
  document = report.write(
    options.out,
    NAME,
    title=TITLE,
    budget=options.budget,
    rows=rows,
    records=all_records,
    table=formats.markdown_table(
      ['trained on', 'budget', 'seeds', *_METRIC_NAMES], lines
    ),
    notes=f'![The same as bars]({NAME}.png)\n\n{_findings(rows)}',
    more={'paper': 'a figure without numbers'},
  )
  _draw(document, options.out)


def _numbers(
  metric: str, records: Sequence[runs.Record]
) -> dict[str, float | None]:
  """Mean and spread of a metric of both sides of the single edges."""
  values = [r['results']['single_edges']['both'][metric] for r in records]
  if not values:
    return {'ours': None, 'deviation': None, 'paper': None}
  spread = report.spread(values)
  return {'ours': spread.mean, 'deviation': spread.deviation, 'paper': None}


def _findings(rows: Sequence[dict[str, Any]]) -> str:
  """What the paper says of its bars, and how often it holds for ours."""
  lines = []
  for dataset in settings.PATHS:
    own = [row for row in rows if row['dataset'] == dataset and row['runs']]
    means = {
      row['max_path_length']: [row['numbers'][m]['ours'] for m in _METRICS]
      for row in own
    }
    if 1 not in means or len(means) < 2:
      continue
    longer = np.array([means[k] for k in sorted(means) if k > 1])  # [k, 4]
    above = int((longer > np.array(means[1])).sum())
    every = np.array([means[k] for k in sorted(means)])  # [k, 4]
    grown = int((np.diff(every, axis=0) > 0).sum())
    budget = report.label(own[0])
    lines.append(
      f'- {dataset} ({budget}): PATHS <= k with k >= 2 is above k = 1 in '
      f'{above} of {longer.size} numbers; the paper: in almost all. From one '
      f'k to the next, {grown} of {longer.size} grow; the paper: generally.\n'
    )
  return ''.join(lines)


def _draw(document: dict[str, Any], out: pathlib.Path) -> None:
  """Bars by metric and k, a panel for each data set: .png and .svg."""
  rows = document['rows']
  lengths = settings.path_lengths(document['budget'])
  width = 0.8 / len(lengths)
  with plot_style.style():
    figure = plot_style.new_figure(11, 4)
    panels = figure.subplots(1, len(settings.PATHS), sharey=True)
    for panel, dataset in zip(panels, settings.PATHS, strict=True):
      own = [row for row in rows if row['dataset'] == dataset]
      for place, row in enumerate(own):
        if not row['runs']:
          continue
        numbers = [row['numbers'][metric] for metric in _METRICS]
        panel.bar(
          np.arange(len(_METRICS)) + (place - (len(own) - 1) / 2) * width,
          [number['ours'] for number in numbers],
          width * 0.92,
          yerr=[number['deviation'] or 0.0 for number in numbers]
          if len(row['runs']) > 1
          else None,
          color=plot_style.COLORS[place],
          label=f'PATHS ≤ {row["max_path_length"]}',
        )
      trained = [row for row in own if row['runs']]
      title = f'{dataset}\nbudget {report.label((trained or own)[0])}'
      if 0 < len(trained) < len(own):
        done = ', '.join(str(row['max_path_length']) for row in trained)
        title += f' (k = {done})'
      panel.set_title(title, loc='left')
      panel.set_xticks(np.arange(len(_METRICS)), _METRIC_NAMES)
      panel.set_xlim(-0.6, len(_METRICS) - 0.4)
    panels[0].set_ylabel('filtered, test paths of one relation')
    handles, names = max(
      (panel.get_legend_handles_labels() for panel in panels),
      key=lambda both: len(both[1]),
    )
    if handles:
      figure.legend(handles, names, loc='outside right center')
    plot_style.save(figure, document, out, NAME)


def main(arguments: Sequence[str] | None = None) -> None:
  """Makes the figure that the flags ask for."""
  options_lib.run_script(make, __doc__, arguments)


if __name__ == '__main__':
  main()
