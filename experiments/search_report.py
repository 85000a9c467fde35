"""Writes the trials of a search as a table, a picture and JSON."""

import pathlib
from typing import Any

import matplotlib.figure
import optuna

from coke_jax.storage import json_files
from experiments.paper import formats

# Metrics of the valid split. Trials are sorted by `mrr` for triples, and by
# `mean_quantile` for paths.
METRICS = ('mrr', 'mean_quantile', 'hits@10')


def summarize(study: optuna.Study) -> list[dict[str, Any]]:
  """Returns the trials, ordered by their highest rung, then by their metric."""
  tried = [
    {'set': trial.params, 'rungs': trial.user_attrs['rungs']}
    for trial in study.get_trials(deepcopy=False)
    if trial.state.is_finished() and trial.user_attrs.get('rungs')
    if trial.state != optuna.trial.TrialState.FAIL
  ]
  for one in tried:
    one |= one['rungs'][-1]
  return sorted(
    tried,
    key=lambda one: (
      -len(one['rungs']),
      -next(one[name] for name in METRICS if name in one),
    ),
  )


def report(tried: list[dict[str, Any]], out: pathlib.Path) -> str:
  """Writes search.json, search.md and search.png. Returns the table.

  Args:
    tried: the trials, from `summarize`.
    out: the folder of the files.
  """
  metrics = [name for name in METRICS if name in tried[0]]
  json_files.write_json(out / 'search.json', {'tried': tried})
  table = formats.markdown_table(
    ['settings', 'rung', 'epoch', *metrics],
    [
      [
        ', '.join(f'{field}={value}' for field, value in one['set'].items()),
        str(len(one['rungs'])),
        f'{one["epoch"]:.4g}',
        *(f'{one[name]:.4f}' for name in metrics),
      ]
      for one in tried
    ],
  )
  (out / 'search.md').write_text(table + '\n', encoding='utf-8')
  figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout='constrained')
  axes = figure.subplots()
  for one in reversed(tried):
    axes.plot(
      [rung['num_epochs'] for rung in one['rungs']],
      [rung[metrics[0]] for rung in one['rungs']],
      marker='o',
      color='tab:blue' if one is tried[0] else 'silver',
    )
  axes.set(
    xlabel='epochs of the schedule',
    ylabel=f'valid {metrics[0]}',
    title='Trials by rung; the best one is blue',
  )
  figure.savefig(out / 'search.png', dpi=150)
  return table
