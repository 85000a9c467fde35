"""Sections about metrics: headline numbers, tables and the hardest queries."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from coke_jax.report import content, markup, metric_tables, parts, tables

_Results = dict[str, Any]  # the results of a split, as in results.json


def headline(report: content.Report) -> parts.Section:
  """Returns the most important metrics in large type."""
  results = _by_split(report)
  first = 'test' if 'test' in results else next(iter(results), '')
  tiles = []
  for name, kind, keys in _tiles(report.about_paths):
    values = {split: _find(one, keys) for split, one in results.items()}
    below = ', '.join(
      f'{split} {tables.number(value, kind)}'
      for split, value in values.items()
      if split != first
    )
    tiles.append(parts.tile(name, values.get(first), kind, below))
  return parts.section(
    'results',
    'Results',
    parts.paragraph(
      f'Metrics of the best checkpoint on the {first} split.'
      if first
      else 'There are no metrics yet.',
      kind='lead',
    ),
    markup.element('dl', *tiles, class_='tiles') if first else None,
    *(
      parts.missing(part)
      for part in (report.test, report.ranking)
      if isinstance(part, content.Missing)
    ),
  )


def metrics(report: content.Report) -> parts.Section:
  """Returns the metrics by side and category, or by path length."""
  results = _by_split(report)
  if not results:
    return parts.section('metrics', 'Metrics', *_not_ranked(report))
  if not report.about_paths:
    lead = (
      f'Heads and tails are ranked among all {report.entities:,} entities '
      'except other known answers (filtered ranks). Entities with equal scores '
      'get the mean of their ranks.'
    )
    found = _of_triples(results)
  else:
    lead = (
      'The target of each path is ranked among its negatives: the tails of the '
      'last relation that are not answers. The quantile is the share of '
      'negatives with a lower score. An equal score counts as half.'
    )
    found = _of_paths(results)
  return parts.section(
    'metrics', 'Metrics', parts.paragraph(lead, kind='lead'), *found
  )


def relations(report: content.Report) -> parts.Section:
  """Returns the metrics of each relation."""
  anchor, title = 'relations', 'Metrics by relation'
  ranking = report.ranking
  if isinstance(ranking, content.Missing):
    return parts.section(anchor, title, *_not_ranked(report))
  results, about = ranking.results, 'Triples'
  if report.about_paths:
    results, about = results['single_edges'], 'Paths with a single relation'
  if not results:
    missing = content.Missing(
      f'No path of the {ranking.split} split has a single relation, so there '
      'are no metrics by relation.'
    )
    return parts.section(anchor, title, parts.missing(missing))
  count, most = len(results['by_relation']), metric_tables.MOST_RELATIONS
  lead = f'{about} of the {ranking.split} split.'
  if count > most:
    lead += (
      f' The table has the {most:,} of {count:,} relations with the most '
      'queries.'
    )
  return parts.section(
    anchor,
    title,
    parts.paragraph(lead, kind='lead'),
    metric_tables.by_relation(results, report.names),
  )


def hardest(report: content.Report) -> parts.Section:
  """Returns the relations or paths with the lowest metrics, with examples."""
  what = 'paths' if report.about_paths else 'relations'
  anchor, title = 'hardest', f'Hardest {what}'
  ranking = report.ranking
  if isinstance(ranking, content.Missing):
    return parts.section(anchor, title, *_not_ranked(report))
  if not ranking.hardest:
    missing = content.Missing('No query has candidates besides its answer.')
    return parts.section(anchor, title, parts.missing(missing))
  measure = 'mean quantile' if report.about_paths else 'MRR'
  lead = (
    f'The {what} with the lowest {measure} in the {ranking.split} split, among '
    f'those with {ranking.fewest:,} or more queries. The examples are the '
    'queries with the worst ranks. The last column leaves out known answers.'
  )
  return parts.section(
    anchor,
    title,
    parts.paragraph(lead, kind='lead'),
    *(_hard(one, report.names) for one in ranking.hardest),
  )


def _hard(one: content.HardQueries, names: Mapping[str, str]) -> markup.Markup:
  """Returns a relation or path with its metrics and examples."""
  facts = [one.category] if one.category else []
  facts.append(f'{one.queries:,} queries')
  facts += [f'{name} {value:.3f}' for name, value in one.metrics.items()]
  found = parts.paragraph(
    'The correct answers of all queries are ranked first.'
  )
  if one.examples:
    found = tables.table(
      [
        tables.Column('query'),
        tables.Column('correct answer'),
        tables.Column('rank', 'rank'),
        tables.Column('ranked before it'),
      ],
      [_example(example, names) for example in one.examples],
      caption='Queries with the worst ranks',
      stacked=True,
    )
  return markup.element(
    'article',
    markup.element('h3', parts.labels(one.relations, names)),
    parts.paragraph(' \u00b7 '.join(facts), kind='facts'),
    found,
    class_='hard',
  )


def _example(
  example: content.Example, names: Mapping[str, str]
) -> tuple[tables.Value, ...]:
  """Returns the row of a query."""
  head, *middle, tail = example.fact
  answer, asked = tail, (head, *middle, '?')
  if example.side == 'head':
    answer, asked = head, ('?', *middle, tail)
  before = (markup.label(label, names) for label in example.before)
  return (
    parts.labels(asked, names),
    markup.label(answer, names),
    example.rank,
    markup.join(before, ', '),
  )


def _of_triples(results: dict[str, _Results]) -> Iterator[markup.Markup]:
  yield metric_tables.by_side(results)
  for split, one in results.items():
    yield metric_tables.by_category(one, split)
  yield parts.paragraph(
    'In a category such as 1-N, the first part is N if a tail has 1.5 or more '
    'heads on average. The second part is N if a head has 1.5 or more tails on '
    'average.',
    kind='note',
  )


def _of_paths(results: dict[str, _Results]) -> Iterator[markup.Markup]:
  for split, one in results.items():
    yield metric_tables.by_length(one, split)
  single = {
    split: one['single_edges']
    for split, one in results.items()
    if one.get('single_edges')
  }
  if single:
    yield markup.element('h3', 'Paths with a single relation')
    yield parts.paragraph(
      'These paths are also evaluated as triples: heads and tails are ranked '
      'among all entities except other known answers.',
      kind='note',
    )
    yield from _of_triples(single)


def _not_ranked(report: content.Report) -> Iterator[markup.Markup]:
  if isinstance(report.ranking, content.Missing):
    yield parts.missing(report.ranking)


def _by_split(report: content.Report) -> dict[str, _Results]:
  """Returns the results of the ranked split and of the test split."""
  found = {}
  if isinstance(report.ranking, content.Ranking):
    found[report.ranking.split] = report.ranking.results
  if not isinstance(report.test, content.Missing):
    found['test'] = report.test
  return found


def _tiles(about_paths: bool) -> Iterator[tuple[str, str, tuple[str, ...]]]:
  """Yields the name, kind and result keys of each headline number."""
  if not about_paths:
    for key, column in metric_tables.METRICS.items():
      yield column.title, column.kind, ('both', key)
    return
  for key, column in metric_tables.PATH_METRICS.items():
    yield column.title, column.kind, (key,)
  for key in ('mrr', 'hits@10'):
    column = metric_tables.METRICS[key]
    name = f'{column.title} of single relations'
    yield name, column.kind, ('single_edges', 'both', key)


def _find(results: Any, keys: Sequence[str]) -> float | None:
  """Returns a number from nested dicts, or None if it is missing."""
  for key in keys:
    results = results.get(key, {})
  return None if isinstance(results, dict) else results
