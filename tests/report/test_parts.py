"""Tests the parts of a report: markup, tables and charts."""

import pytest

from coke_jax.report import charts, map_chart, markup, tables


@pytest.mark.parametrize(
  ('low', 'high', 'expected'),
  [
    (0, 1, [0, 0.2, 0.4, 0.6, 0.8, 1]),
    (0, 10, [0, 2, 4, 6, 8, 10]),
    (4.2, 8.1, [4, 5, 6, 7, 8, 9]),
    (0, 0.002, [0, 0.0005, 0.001, 0.0015, 0.002]),
    (-3, 3, [-4, -2, 0, 2, 4]),
    (5, 5, [5, 6, 7, 8, 9, 10]),
    (0, 0, [0, 0.2, 0.4, 0.6, 0.8, 1]),
  ],
)
def test_ticks(low, high, expected):
  assert charts.ticks(low, high) == pytest.approx(expected)


@pytest.mark.parametrize(
  ('values', 'expected'),
  [
    ([0, 0.5, 1], ['0.0', '0.5', '1.0']),
    ([0, 2000], ['0', '2,000']),
    ([0, 0.0005, 0.001], ['0.0000', '0.0005', '0.0010']),
    ([0, 0.0002, 0.0004], ['0.0000', '0.0002', '0.0004']),
    ([0, 0.00002], ['0', '2.0e-5']),
  ],
)
def test_texts_of_ticks(values, expected):
  assert [charts.tick_text(one, values) for one in values] == expected


def test_text_is_escaped():
  made = markup.element('b', '<i>', markup.element('u', '&'), title='"\'')
  assert made == '<b title="&quot;&#x27;">&lt;i&gt;<u>&amp;</u></b>'
  assert markup.escape('a\0b\ud800\x1b\t') == 'a\ufffdb\ufffd\ufffd\t'
  assert markup.element('input', hidden=True, value=None) == '<input hidden>'


def test_labels_are_cut():
  made = markup.label('a' * 300)
  assert 'a' * 160 + '\u2026</bdi>' in made
  assert f'title="{"a" * 300}"' in made
  assert markup.label('') == '<bdi>\u201c\u201d</bdi>'
  assert markup.label('a', {'a': '<'}) == '<bdi title="a">&lt;</bdi>'


def test_numbers_have_a_fixed_number_of_decimals():
  assert tables.number(1234, 'count') == '1,234'
  assert tables.number(0.5, 'metric') == '0.500'
  assert tables.number(1234.56, 'rank') == '1,234.6'
  assert tables.number(-0.5, 'score') == '\u22120.50'
  assert tables.number(None, 'metric') == '\u2013'


def test_headers_of_sortable_tables():
  columns = [tables.Column('name'), tables.Column('MRR', 'metric')]
  made = tables.table(
    columns,
    [('a', 0.25), ('b', None)],
    caption='Numbers',
    sortable=True,
    sorted_by=(1, 'descending'),
  )
  assert made.count('aria-sort="none"') == 1
  assert made.count('aria-sort="descending"') == 1
  assert made.count('<button type="button">') == 2
  assert made.count('data-value="0.25"') == 1
  assert 'aria-sort' not in tables.table(columns, [], caption='Numbers')


def test_long_lines_are_thinned():
  line = charts.Line('loss', list(range(1001)), [2.0] * 1001)
  made = charts.line_chart('t', [line], x_label='step', description='d')
  drawn = made.split('class="line series-0"')[0].rpartition('d="')[2]
  assert drawn.count('L') < 400


def test_missing_values_are_gaps():
  line = charts.Line('MRR', [1, 2, 3, 4], [0.1, None, 0.3, 0.4], dots=True)
  made = charts.line_chart(
    't', [line], x_label='epoch', description='d', y_range=(0, 1), mark=4
  )
  drawn = made.split('class="line series-0"')[0].rpartition('d="')[2]
  assert drawn.startswith('M250 900M750 700L1000 600')


def test_a_map_has_the_colours_of_its_groups():
  groups = [
    {'label': f'g{i}', 'name': f'g{i}', 'inverse': None, 'points': 1}
    for i in range(14)
  ]
  groups[1]['inverse'] = 0
  points = [
    {'x': float(i), 'y': float(i % 3), 'group': i, 'triple': ['h', 'r', 't']}
    for i in range(14)
  ]
  numbers = {'groups': groups, 'points': points}
  made = map_chart.draw(numbers, markup.escape('map'))
  # A relation and its inverse share a colour.
  assert made.count('class="point series-0"') == 2
  assert made.count('class="point hole"') == 1
  # Four groups are squares, both in the map and in the legend.
  assert made.count('square"') == 2 * 4
  assert made.count('class="point rest"') == 2
  assert '2 other groups' in made
