"""Sections about the model: training curves, calibration and maps."""

from typing import Any

from coke_jax.report import charts, content, map_chart, markup, parts, tables


def curves(report: content.Report) -> parts.Section:
  """Returns the training curves and a table of the validations."""
  anchor, title = 'curves', 'Training curves'
  numbers = report.curves
  if isinstance(numbers, content.Missing):
    return parts.section(anchor, title, parts.missing(numbers))
  train, valid = numbers['train'], numbers['valid']
  made = []
  if valid['epoch']:
    made.append(_validation_chart(valid))
  for name, key in (
    ('Training loss (nats per answer)', 'loss'),
    ('Learning rate', 'learning_rate'),
  ):
    if train['epoch']:
      values = train[key]
      made.append(
        charts.line_chart(
          name,
          [charts.Line(name, train['epoch'], values)],
          x_label='epoch',
          description=f'{name}, from {values[0]:.4g} to {values[-1]:.4g}',
          y_range=(0, max(values)) if key == 'learning_rate' else None,
          shape='half',
        )
      )
  note = parts.paragraph(
    'Validations filter the known answers of train and valid. The metrics '
    'above also filter the known answers of test, so they can be higher for '
    'the same checkpoint.',
    kind='note',
  )
  return parts.section(
    anchor,
    title,
    markup.element('div', *made, class_='charts'),
    note if valid['epoch'] and not report.about_paths else None,
    _validations(valid) if valid['epoch'] else None,
  )


def calibration(report: content.Report) -> parts.Section:
  """Returns the reliability of the calibrated probabilities."""
  anchor, title = 'calibration', 'Calibration'
  found = report.calibration
  if isinstance(found, content.Missing):
    return parts.section(anchor, title, parts.missing(found))
  lead = (
    f'Probabilities were fitted to the {found.fitted_on} split. They are '
    'compared with the shares of correct candidates in the '
    f'{found.measured_on} split. On the diagonal, the probabilities '
    'are correct.'
  )
  thresholds = tables.table(
    [tables.Column('precision'), tables.Column('score', 'score')],
    [(f'{precision:.0%}', score) for precision, score in found.thresholds],
    caption='Lowest score that reaches a precision',
  )
  if not found.bins:
    missing = content.Missing(
      f'The {found.measured_on} split is empty, so the probabilities cannot be '
      'compared with it.'
    )
    return parts.section(anchor, title, parts.missing(missing), thresholds)
  bins = tables.table(
    [
      tables.Column('interval'),
      tables.Column('candidates', 'count'),
      tables.Column('probability', 'metric'),
      tables.Column('correct', 'metric'),
    ],
    [
      (
        f'{one.low:.1f} to {one.high:.1f}',
        one.count,
        one.predicted,
        one.observed,
      )
      for one in found.bins
    ],
    caption='Mean probability and share of correct candidates',
  )
  chart = charts.line_chart(
    f'Reliability on the {found.measured_on} split',
    [
      charts.Line(
        'share of correct candidates',
        [one.predicted for one in found.bins],
        [one.observed for one in found.bins],
        dots=True,
      )
    ],
    x_label='mean probability',
    description='Share of correct candidates by mean probability; the table '
    'has the numbers',
    y_range=(0, 1),
    shape='square',
    diagonal=True,
  )
  return parts.section(
    anchor,
    title,
    parts.paragraph(lead, kind='lead'),
    markup.element(
      'div',
      chart,
      markup.element('div', bins, thresholds, class_='stack'),
      class_='side-by-side',
    ),
  )


def maps(report: content.Report) -> parts.Section:
  """Returns the maps of contextual embeddings."""
  found = list(report.maps.values())
  if all(isinstance(one, content.Missing) for one in found):
    # In most cases, both maps are missing for the same reason.
    found = found[:1]
  return parts.section(
    'maps',
    'Maps of contextual embeddings',
    parts.paragraph(
      'A point is the final hidden state of an entity or relation in one '
      'training triple, laid out by t\u2011SNE. Points that are close in a map '
      'are close in the embedding space. The axes have no meaning. The '
      'silhouette is from \u22121 to 1. It is positive if hidden states are '
      'nearer to their group than to other groups.',
      kind='lead',
    ),
    *(
      parts.missing(one)
      if isinstance(one, content.Missing)
      else _map(one, report)
      for one in found
    ),
  )


def _validation_chart(valid: dict[str, Any]) -> markup.Markup:
  metrics = [name for name in valid if name != 'epoch']
  main = metrics[0]
  known = [
    (value, -epoch)
    for value, epoch in zip(valid[main], valid['epoch'], strict=True)
    if value is not None
  ]
  if not known:
    return parts.missing(content.Missing('The validations have no metrics.'))
  best, epoch = max(known)
  note = f'best {main} {best:.3f} after {-epoch:.3g} epochs'
  return charts.line_chart(
    'Validation',
    [
      charts.Line(name, valid['epoch'], valid[name], dots=True)
      for name in metrics
    ],
    x_label='epoch',
    description=f'Validation metrics by epoch: {note}',
    y_range=(0, 1),
    mark=-epoch,
    note=note,
  )


def _validations(valid: dict[str, Any]) -> markup.Markup:
  metrics = [name for name in valid if name != 'epoch']
  rows = zip(valid['epoch'], *(valid[name] for name in metrics), strict=True)
  table = tables.table(
    [
      tables.Column('epoch', 'score'),
      *(tables.Column(name, 'metric') for name in metrics),
    ],
    list(rows),
    caption='Validations',
  )
  count = len(valid['epoch'])
  return markup.element(
    'details',
    markup.element('summary', f'Numbers of {count:,} validations'),
    table,
  )


def _map(numbers: dict[str, Any], report: content.Report) -> markup.Markup:
  shown = [
    markup.element('b', markup.label(label, report.names))
    for label in numbers['labels']
  ]
  points, kept = len(numbers['points']), numbers['triples_kept']
  sample = f'{points:,} of {kept:,}' if points < kept else f'{points:,}'
  about = f' in {sample} training triples'
  about += f', by {numbers["grouped_by"]}'
  if numbers['silhouette'] is not None:
    about += f'; silhouette {tables.number(numbers["silhouette"], "score")}'
  title = markup.join(
    [f'The {numbers["kind"]} ', markup.join(shown, ' and '), about]
  )
  return map_chart.draw(numbers, title)
