"""Sections about data, leaks, settings, versions and times."""

from collections.abc import Iterator

from coke_jax.data import leak_table, leaks
from coke_jax.report import content, markup, parts, tables

_MOST_LEAKS = 20  # maximum number of rows in the table of relations


def data(report: content.Report) -> parts.Section:
  """Returns the counts of each split, and the leaks."""
  lengths = sorted({k for one in report.counts for k in one.by_length})
  has_deduction = any(one.deduction is not None for one in report.counts)
  what = 'paths' if report.about_paths else 'triples'
  table = tables.table(
    [
      tables.Column('split'),
      tables.Column(what, 'count'),
      tables.Column('duplicates', 'count'),
      tables.Column('with unseen entity', 'count'),
      *(tables.Column(f'length {length}', 'count') for length in lengths),
      *([tables.Column('by deduction', 'count')] if has_deduction else []),
    ],
    [
      (
        one.split,
        one.lines,
        one.duplicates,
        one.unseen,
        *(one.by_length.get(length, 0) for length in lengths),
        *([one.deduction] if has_deduction else []),
      )
      for one in report.counts
    ],
    caption='Counts by split',
  )
  return parts.section(
    'data',
    'Data and leaks',
    parts.paragraph(
      f'{report.entities:,} entities and {report.relations:,} relations'
      + (', including inverse relations.' if report.about_paths else '.'),
      kind='lead',
    ),
    table,
    *(
      [parts.missing(report.leaks)]
      if isinstance(report.leaks, content.Missing)
      else _leaks(report.leaks, report)
    ),
  )


def settings(report: content.Report) -> parts.Section:
  """Returns the settings that differ from the defaults, then all settings."""
  changed = [one for one in report.settings if one.value != one.default]
  columns = [
    tables.Column('field'),
    tables.Column('value'),
    tables.Column('default'),
  ]

  def row(one: content.Setting) -> tuple[markup.Markup, ...]:
    return (
      markup.element('code', one.field),
      markup.element('code', markup.label(one.value)),
      markup.element('code', one.default),
    )

  return parts.section(
    'settings',
    'Settings',
    tables.table(
      columns, list(map(row, changed)), caption='Changed fields of the config'
    )
    if changed
    else parts.paragraph('All settings have their default values.'),
    markup.element(
      'details',
      markup.element('summary', f'All {len(report.settings)} fields'),
      tables.table(
        [*columns, tables.Column('meaning')],
        [(*row(one), one.description) for one in report.settings],
        caption='All fields of the config',
      ),
    ),
  )


def versions(report: content.Report) -> parts.Section:
  """Returns versions and times."""
  return parts.section(
    'versions',
    'Versions and time',
    markup.element(
      'div',
      parts.pairs(report.versions),
      markup.element('div', parts.pairs(report.times), class_='times'),
      class_='two-columns',
    ),
    parts.paragraph(
      'A run stores the version of coke_jax, but not the versions of other '
      'libraries.'
      + (
        ''
        if report.exported
        else ' The time of the training steps does not include compilations, '
        'validations and checkpoints.'
      ),
      kind='note',
    ),
  )


def _leaks(
  report: leaks.LeakReport, whole: content.Report
) -> Iterator[markup.Markup]:
  _, *counts = leak_table.rows(report)
  splits = [split for split in leaks.EVALUATED if report.triples[split]]

  def share(count: int | float, split: str) -> float:
    return count / report.triples[split]

  rows: list[list[tables.Value]] = [
    [name, *(x for s in splits for x in (some[s], share(some[s], s)))]
    for name, some in counts
  ]
  rows.append(
    [
      f'with one of the {report.hubs:,} largest hubs',
      *(x for s in splits for x in (None, report.hub_share[s])),
    ]
  )
  if splits:
    yield tables.table(
      [
        tables.Column('triples'),
        *(
          column
          for split in splits
          for column in (
            tables.Column(split, 'count'),
            tables.Column(f'share of {split}', 'share'),
          )
        ),
      ],
      rows,
      caption='What train gives away',
    )
  yield parts.paragraph(
    'A triple is given away if train has the same pair of entities in an '
    'inverse, duplicate or symmetric relation. A model can then copy the '
    'answer.'
    + (' Only paths with a single relation are compared.' * whole.about_paths),
    kind='note',
  )
  if report.relations:
    yield _leak_relations(report, whole)
  else:
    yield parts.paragraph(
      'There are no inverse, duplicate or symmetric relations with an overlap '
      f'of at least {report.threshold:g}.'
    )
  yield from _label_lists(report, whole)


def _leak_relations(
  report: leaks.LeakReport, whole: content.Report
) -> markup.Markup:
  shown = report.relations[:_MOST_LEAKS]
  caption = (
    'Inverse, duplicate and symmetric relations with an overlap of at least '
    f'{report.threshold:g}'
  )
  if len(report.relations) > len(shown):
    caption += f', the first {len(shown)} of {len(report.relations):,}'
  return tables.table(
    [
      tables.Column('relation'),
      tables.Column('kind'),
      tables.Column('other relation'),
      tables.Column('overlap', 'metric', bar=True),
      tables.Column('valid given away', 'count'),
      tables.Column('test given away', 'count'),
    ],
    [
      (
        markup.label(one.relation, whole.names),
        one.kind,
        None
        if one.other == one.relation
        else markup.label(one.other, whole.names),
        one.overlap,
        one.given_away['valid'],
        one.given_away['test'],
      )
      for one in shown
    ],
    caption=caption,
    sortable=True,
  )


def _label_lists(
  report: leaks.LeakReport, whole: content.Report
) -> Iterator[markup.Markup]:
  """Yields the largest hubs and some labels that are not in train."""
  hubs = [
    markup.join([markup.label(label, whole.names), f' ({degree:,})'])
    for label, degree in report.hub_examples.items()
  ]
  if hubs:
    yield parts.paragraph(
      'Largest hubs, with their occurrences in train: ', markup.join(hubs, ', ')
    )
  if report.unseen_examples:
    total = sum(report.unseen_labels[s] for s in leaks.EVALUATED)
    yield parts.paragraph(
      f'Labels that are not in train ({total:,}), such as ',
      markup.join(
        (markup.label(one, whole.names) for one in report.unseen_examples), ', '
      ),
    )
