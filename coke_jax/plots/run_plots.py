"""Draws figures of a run: training curves and bar charts of metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.plots import plot_style

_MARKERS = 'os^'
_DARK = '#444444'
_GRID = '#E5E5E5'
# Total width of the bars of a group. The distance between two groups is 1.
_BARS_WIDTH = 0.8

# These dicts map keys of the results to labels in the pictures.
_TRIPLE_METRICS = {'mrr': 'MRR', 'hits@1': 'hits@1', 'hits@10': 'hits@10'}
_PATH_METRICS = {'mean_quantile': 'mean quantile', 'hits@10': 'hits@10'}
_SIDES = {'head': 'head (? r o)', 'tail': 'tail (s r ?)'}


def curves(dataset: str, lines: Sequence[dict[str, Any]]) -> dict[str, Any]:
  """Collects the loss, the learning rate and the validation metrics.

  Args:
    dataset: the name of the data set.
    lines: the lines of metrics.jsonl.

  Returns:
    A dict with the keys `dataset`, `train` and `valid`. `train` is a dict of
    three lists of equal length: `epoch`, `loss` and `learning_rate`. `valid` is
    a dict of lists of equal length: `epoch`, and one list for each metric.
  """
  train = [line for line in lines if line['kind'] == 'train']
  valid = [line for line in lines if line['kind'] == 'valid']
  results = [line.get('both', line) for line in valid]
  metrics = _TRIPLE_METRICS if valid and 'both' in valid[0] else _PATH_METRICS
  return {
    'dataset': dataset,
    'train': {
      field: [line[field] for line in train]
      for field in ('epoch', 'loss', 'learning_rate')
    },
    'valid': {
      'epoch': [line['epoch'] for line in valid],
      **{
        title: [result.get(metric) for result in results]
        for metric, title in metrics.items()
      },
    },
  }


def bars(results: dict[str, Any]) -> dict[str, dict[str, Any]]:
  """Collects the metrics that bar charts show.

  Args:
    results: the content of results.json. Results of triples contain
      `by_category`. Results of paths contain `by_length`, and may contain the
      results of triples as `single_edges`.

  Returns:
    A dict from the file name of each picture to its numbers. The numbers are a
    dict with these keys:
    `dataset`, `split` and `title`: three texts;
    `groups`: the number of queries of each group;
    `metrics`: for each metric, a dict from the label of each series of bars to
      its values, one for each group.
  """
  found: dict[str, dict[str, Any]] = {}
  about = {'dataset': results['dataset'], 'split': results['split']}
  if 'by_length' in results:
    found['ranks_by_length'] = about | {
      'title': 'Ranks among type-matching negatives by path length',
      'groups': {
        f'{length} relation{"" if length == "1" else "s"}': part['queries']
        for length, part in results['by_length'].items()
      },
      'metrics': {
        title: {
          'targets': [
            part.get(metric) for part in results['by_length'].values()
          ]
        }
        for metric, title in _PATH_METRICS.items()
      },
    }
  categories = (results.get('single_edges') or results).get('by_category')
  if categories:
    found['ranks_by_category'] = about | {
      'title': 'Filtered ranks by relation category',
      'groups': {name: part['queries'] for name, part in categories.items()},
      'metrics': {
        title: {
          side: [part[key].get(metric) for part in categories.values()]
          for key, side in _SIDES.items()
        }
        for metric, title in _TRIPLE_METRICS.items()
      },
    }
  return found


def draw_curves(numbers: dict[str, Any]) -> Any:
  """Returns a matplotlib figure of the result of `curves`.

  The figure has a panel for the loss and a panel for the learning rate. If
  there are validation metrics, a panel between the two shows them.
  """
  train, valid = numbers['train'], numbers['valid']
  panels = [('loss', 'training loss\n(nats per answer)')]
  metrics = [name for name in valid if name != 'epoch']
  if valid['epoch']:
    panels.append(('valid', 'validation'))
  panels.append(('learning_rate', 'learning rate'))
  figure = plot_style.new_figure(8, 1 + 2.1 * len(panels))
  all_axes = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
  for axes, (name, label) in zip(all_axes, panels, strict=True):
    axes.set_ylabel(label)
    axes.grid(color=_GRID)
    axes.set_axisbelow(True)
    if name != 'valid':
      axes.plot(train['epoch'], train[name], color=plot_style.COLORS[0])
      continue
    for metric, color, marker in zip(
      metrics, plot_style.COLORS, _MARKERS, strict=False
    ):
      values = np.array(valid[metric], dtype=float)  # None becomes NaN.
      axes.plot(
        valid['epoch'], values, color=color, marker=marker, label=metric
      )
    axes.set_ylim(0, 1)
    axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))
    _mark_best(axes, valid, metrics[0])
  all_axes[-1].set_xlabel('epoch')
  all_axes[0].set_title(
    plot_style.plain(f'Training on {numbers["dataset"]}'),
    loc='left',
    fontweight='bold',
  )
  return figure


def _mark_best(axes: Any, valid: dict[str, list[Any]], metric: str) -> None:
  """Marks the epoch with the best value of a validation metric."""
  values = np.array(valid[metric], dtype=float)
  if np.isnan(values).all():
    return
  best = int(np.nanargmax(values))
  epoch = valid['epoch'][best]
  axes.axvline(epoch, color=_DARK, linestyle=':', linewidth=1, zorder=0)
  axes.set_title(
    f'best {metric}: {values[best]:.3f}, after {epoch:.4g} epochs',
    loc='right',
    fontsize=9,
  )


def draw_bars(numbers: dict[str, Any]) -> Any:
  """Returns a matplotlib figure with one panel for each metric.

  Args:
    numbers: the numbers of one picture, as `bars` returns them.
  """
  groups, metrics = numbers['groups'], numbers['metrics']
  figure = plot_style.new_figure(
    1 + len(metrics) * max(2.8, 0.95 * len(groups)), 4.5
  )
  panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
  for axes, (metric, series) in zip(panels, metrics.items(), strict=True):
    width = _BARS_WIDTH / len(series)
    for place, (name, some) in enumerate(series.items()):
      values = np.array(some, dtype=float)  # None becomes NaN and gives no bar.
      x = np.arange(len(values)) + (place - (len(series) - 1) / 2) * width
      drawn = axes.bar(
        x,
        values,
        0.92 * width,
        label=name,
        color=plot_style.COLORS[place],
        hatch='///' if place else None,
        edgecolor='white',
      )
      axes.bar_label(
        drawn,
        ['' if np.isnan(value) else _short(value) for value in values],
        padding=2,
        fontsize=8,
      )
    axes.set_title(metric, loc='left')
    axes.set_xticks(
      np.arange(len(groups)),
      [f'{name}\n{count:,}' for name, count in groups.items()],
      fontsize=8,
    )
    axes.set_ylim(0, 1.08)
    axes.grid(axis='y', color=_GRID)
    axes.set_axisbelow(True)
  sided = len(next(iter(metrics.values()))) > 1
  below = 'number of queries' + (' of both sides' if sided else '')
  panels[0].set_xlabel(f'below each: {below}', loc='left', fontsize=8)
  if sided:
    figure.legend(
      *panels[0].get_legend_handles_labels(),
      loc='outside right center',
      title='masked entity',
    )
  figure.suptitle(
    plot_style.plain(
      f'{numbers["title"]}\n{numbers["dataset"]}, {numbers["split"]} split'
    ),
    x=0.01,
    ha='left',
    fontsize=12,
    fontweight='bold',
  )
  return figure


def _short(value: float) -> str:
  """Formats 0.25 as .25."""
  return f'{value:.2f}'.removeprefix('0')
