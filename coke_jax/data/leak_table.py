"""Formats a leak report as a table."""

from coke_jax.data import leaks


def format_table(report: leaks.LeakReport, most: int = 10) -> str:
  """Returns a table of a leak report.

  Args:
    report: the report.
    most: maximum number of entries of `report.relations` to list. Default: 10.
  """
  lines = [
    f'{report.name}: what train gives away',
    f'  {"":<46}{"valid":>16}{"test":>16}',
  ]
  for name, counts in rows(report):
    cells = [
      _cell(counts[split], report.triples[split], name != 'triples')
      for split in leaks.EVALUATED
    ]
    lines.append(f'  {name:<46}' + ''.join(f'{cell:>16}' for cell in cells))
  shares = [f'{report.hub_share[split]:.1%}' for split in leaks.EVALUATED]
  hubs = f'with a hub, one of the {report.hubs:,} largest entities'
  lines.append(f'  {hubs:<46}' + ''.join(f'{share:>16}' for share in shares))
  examples = ', '.join(
    f'{label} ({degree:,})' for label, degree in report.hub_examples.items()
  )
  if examples:
    lines.append(f'  largest hubs (occurrences in train): {examples}')
  if report.unseen_examples:
    unseen = ', '.join(report.unseen_examples)
    counts = report.unseen_labels
    lines.append(
      f'  labels that are not in train: {counts["valid"]:,} of valid, '
      f'{counts["test"]:,} of test, such as {unseen}'
    )
  if not report.relations:
    lines.append(
      '  no inverse, duplicate or symmetric relations with an overlap of at '
      f'least {report.threshold:g}'
    )
    return '\n'.join(lines)
  lines.append(
    f'  {len(report.relations):,} inverse, duplicate or symmetric relations '
    f'with an overlap of at least {report.threshold:g}'
    + (f'; the first {most}:' if len(report.relations) > most else ':')
  )
  lines.append(f'  {"kind":<10}{"overlap":>8}{"test":>8}  relation, other')
  for leak in report.relations[:most]:
    other = '' if leak.other == leak.relation else f', {leak.other}'
    lines.append(
      f'  {leak.kind:<10}{leak.overlap:>8.2f}{leak.given_away["test"]:>8,}'
      f'  {leak.relation}{other}'
    )
  return '\n'.join(lines)


def rows(report: leaks.LeakReport) -> list[tuple[str, dict[str, int]]]:
  """Returns the name of each count, and a dict from split to number of triples.

  The first row counts all triples.
  """
  return [
    ('triples', report.triples),
    ('given away by an inverse relation', report.given_away['inverse']),
    ('given away by a duplicate relation', report.given_away['duplicate']),
    ('given away by a symmetric relation', report.given_away['symmetric']),
    ('given away in all', report.given_away['any']),
    ('entities linked in train, tail to head', report.linked['reverse']),
    ('entities linked in train, head to tail', report.linked['same direction']),
    ('entities linked in train, either way', report.linked['any']),
    ('also in train', report.in_train),
    ('with an entity that is not in train', report.unseen_entities),
    ('with a relation that is not in train', report.unseen_relations),
  ]


def _cell(count: int, total: int, with_share: bool) -> str:
  """Returns a count, with its share of `total` if `with_share` is true."""
  share = f' {count / total:>6.1%}' if with_share and total else ''
  return f'{count:,}{share}'
