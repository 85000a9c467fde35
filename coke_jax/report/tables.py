"""Tables whose columns have a fixed number of decimals."""

import dataclasses
from collections.abc import Sequence

from coke_jax.report import markup

_FEW_COLUMNS = 4  # a table with more columns has the width of the page
_FEW_ROWS = 15  # in print, a table with more rows can continue on the next page
_NOTHING = '\u2013'  # shown in cells without a value

Value = str | float | None

# The format of the numbers in each kind of column.
_FORMATS = {
  'count': '{:,}',
  'metric': '{:.3f}',
  'rank': '{:,.1f}',
  'share': '{:.1%}',
  'score': '{:.2f}',
}


@dataclasses.dataclass(frozen=True)
class Column:
  """A column of a table.

  Attributes:
    title: the text of the header.
    kind: `text`, or the kind of numbers: `count`, `metric` (3 decimals), `rank`
      (1 decimal), `share` (per cent) or `score` (2 decimals).
    bar: whether a bar shows the size of each number, from 0 to 1.
  """

  title: str
  kind: str = 'text'
  bar: bool = False


def table(
  columns: Sequence[Column],
  rows: Sequence[Sequence[Value]],
  *,
  caption: str,
  sortable: bool = False,
  stacked: bool = False,
  sorted_by: tuple[int, str] | None = None,
  filter_label: str = '',
) -> markup.Markup:
  """Returns a table in a region that scrolls if the table is too wide.

  Args:
    columns: the columns. The first one contains the names of the rows.
    rows: each row has a value per column. None is a missing number.
    caption: the name of the table.
    sortable: whether a click on a header sorts the rows.
    stacked: whether the cells of a row are below each other on narrow screens.
    sorted_by: the index of the column by which the rows are sorted, and
      `ascending` or `descending`. Default: by no column.
    filter_label: the label of a field that filters the rows. Default: no field.
  """
  head = [
    _header(
      column,
      sortable,
      sorted_by[1] if sorted_by and sorted_by[0] == index else None,
    )
    for index, column in enumerate(columns)
  ]
  body = [
    markup.element(
      'tr',
      *(
        _cell(column, value, index, stacked)
        for index, (column, value) in enumerate(zip(columns, row, strict=True))
      ),
    )
    for row in rows
  ]
  classes = {
    'sortable': sortable,
    'stacked': stacked,
    'small': len(columns) <= _FEW_COLUMNS,
    'short': len(rows) <= _FEW_ROWS,
  }
  made = markup.element(
    'table',
    markup.element('caption', markup.element('span', caption)),
    markup.element('thead', markup.element('tr', *head)),
    markup.element('tbody', *body),
    class_=' '.join(name for name, holds in classes.items() if holds) or None,
  )
  region = markup.element(
    'div',
    made,
    class_='scroll',
    role='region',
    tabindex=0,
    aria_label=caption,
  )
  if not filter_label:
    return region
  field = markup.element(
    'label',
    f'{filter_label} ',
    markup.element('input', type='search', autocomplete='off'),
    ' ',
    markup.element('output'),
    class_='filter',
    hidden=True,  # The script that filters the rows also shows the field.
  )
  return markup.element('div', field, region, class_='filtered')


def number(value: float | None, kind: str) -> str:
  """Formats a number for a column of this kind. None becomes a dash."""
  if value is None:
    return _NOTHING
  return _FORMATS[kind].format(value).replace('-', '\u2212')


def _header(column: Column, sortable: bool, order: str | None) -> markup.Markup:
  text: markup.Content = column.title
  if sortable:
    text = markup.element('button', column.title, type='button')
  return markup.element(
    'th',
    text,
    scope='col',
    class_='text' if column.kind == 'text' else 'number',
    aria_sort=(order or 'none') if sortable else None,
  )


def _cell(
  column: Column, value: Value, index: int, stacked: bool
) -> markup.Markup:
  """Returns a cell. A stacked cell also contains the title of its column."""
  text = value if isinstance(value, str) else number(value, column.kind)
  classes = ['text' if column.kind == 'text' else 'number']
  share, sort_key = None, None
  if value is not None and not isinstance(value, str):
    sort_key = f'{value:.9g}'
    if column.bar:
      classes.append('bar')
      share = f'--share:{value:.3f}'
  return markup.element(
    'th' if index == 0 else 'td',
    text,
    scope='row' if index == 0 else None,
    class_=' '.join(classes),
    data_value=sort_key,
    data_label=column.title if stacked else None,
    style=share,
  )
