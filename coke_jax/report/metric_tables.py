"""Tables of metrics by side, category, relation and path length."""

from collections.abc import Mapping
from typing import Any

from coke_jax.report import markup, tables

MOST_RELATIONS = 1000  # maximum number of rows of `by_relation`
_FILTERED_ROWS = 15  # minimum number of rows of a table that can be filtered

METRICS = {
  'mrr': tables.Column('MRR', 'metric', bar=True),
  'hits@1': tables.Column('hits@1', 'metric'),
  'hits@3': tables.Column('hits@3', 'metric'),
  'hits@10': tables.Column('hits@10', 'metric'),
  'mean_rank': tables.Column('mean rank', 'rank'),
}
PATH_METRICS = {
  'mean_quantile': tables.Column('mean quantile', 'metric', bar=True),
  'hits@10': tables.Column('hits@10', 'metric'),
}
_SIDES = {
  'both': 'head and tail',
  'head': 'head (?\u00a0r\u00a0o)',
  'tail': 'tail (s\u00a0r\u00a0?)',
}
# `_cells` returns the values of these columns.
_COLUMNS = (
  tables.Column('queries', 'count'),
  METRICS['mrr'],
  tables.Column('head MRR', 'metric'),
  tables.Column('tail MRR', 'metric'),
  METRICS['hits@1'],
  METRICS['hits@10'],
  METRICS['mean_rank'],
)


def by_side(results: Mapping[str, dict[str, Any]]) -> markup.Markup:
  """Returns the metrics of heads, tails and both.

  Args:
    results: a dict from splits to their results, as in `results.json`.
  """
  return tables.table(
    [
      tables.Column('side'),
      tables.Column('split'),
      tables.Column('queries', 'count'),
      *METRICS.values(),
    ],
    [
      (
        name,
        split,
        one['queries'] // (1 if side == 'both' else 2),
        *(one[side].get(key) for key in METRICS),
      )
      for split, one in results.items()
      for side, name in _SIDES.items()
    ],
    caption='By side',
    sortable=True,
  )


def by_category(results: dict[str, Any], split: str) -> markup.Markup:
  """Returns the metrics of each category of relations.

  Args:
    results: the results of a split, as in `results.json`.
    split: the split.
  """
  return tables.table(
    [tables.Column('category'), *_COLUMNS],
    [(name, *_cells(part)) for name, part in results['by_category'].items()],
    caption=f'By category, {split} split',
    sortable=True,
  )


def by_relation(
  results: dict[str, Any], names: Mapping[str, str]
) -> markup.Markup:
  """Returns the metrics of the relations with the most queries.

  Args:
    results: the results of a split, as in `results.json`.
    names: a dict from some of the labels to names.
  """
  found = sorted(
    results['by_relation'].items(), key=lambda item: -item[1]['queries']
  )[:MOST_RELATIONS]
  return tables.table(
    [tables.Column('relation'), tables.Column('category'), *_COLUMNS],
    [
      (markup.label(label, names), part['category'], *_cells(part))
      for label, part in found
    ],
    caption=f'{len(found):,} relations',
    sortable=True,
    sorted_by=(2, 'descending'),
    filter_label='Filter relations' if len(found) >= _FILTERED_ROWS else '',
  )


def by_length(results: dict[str, Any], split: str) -> markup.Markup:
  """Returns the metrics of paths: all, by length, and by kind of reasoning.

  Args:
    results: the results of a split of paths, as in `results.json`.
    split: the split.
  """
  rows = [('all', results)]
  rows += [
    (f'{length} relation' + ('' if length == '1' else 's'), part)
    for length, part in results['by_length'].items()
  ]
  rows += [
    (name, results[name])
    for name in ('deduction', 'induction')
    if name in results
  ]
  return tables.table(
    [
      tables.Column('paths'),
      tables.Column('queries', 'count'),
      *PATH_METRICS.values(),
    ],
    [
      (name, part['queries'], *(part.get(key) for key in PATH_METRICS))
      for name, part in rows
    ],
    caption=f'By path length, {split} split',
    sortable=True,
  )


def _cells(part: dict[str, Any]) -> list[tables.Value]:
  """Returns the number of queries of a part and its metrics."""
  return [
    part['queries'],
    *(part[side].get('mrr') for side in _SIDES),
    *(part['both'].get(key) for key in ('hits@1', 'hits@10', 'mean_rank')),
  ]
