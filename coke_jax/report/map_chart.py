"""Draws contextual maps in SVG, with legends in HTML."""

from typing import Any

import numpy as np

from coke_jax.plots import map_plots, plot_style
from coke_jax.report import markup

_SIZE = 1000  # width and height of the SVG in its own units
_MARGIN = 0.04  # free space at each side, as a share of the width
_NUM_COLORS = len(plot_style.COLORS)


def draw(numbers: dict[str, Any], title: markup.Markup) -> markup.Markup:
  """Returns a map with its legend.

  Each of the largest `map_plots.MAX_GROUPS` groups has a colour, a shape and a
  number. The number is in the legend and near the densest point of the group.
  All smaller groups are grey.

  Args:
    numbers: the document that `contextual_maps.to_json` returned.
    title: the title.
  """
  points = numbers['points']
  places = np.array([[point['x'], point['y']] for point in points])  # [N, 2]
  groups = np.array([point['group'] for point in points])  # [N]
  low = places.min(axis=0)
  size = np.maximum(np.ptp(places, axis=0).max(), np.finfo(np.float32).tiny)
  center = low + np.ptp(places, axis=0) / 2

  def scaled(where: np.ndarray) -> np.ndarray:
    """Scales positions [..., 2] to the SVG, whose y axis points down."""
    inside = (where - center) / size * (1 - 2 * _MARGIN) + 0.5
    return np.stack([inside[..., 0], 1 - inside[..., 1]], axis=-1)

  styles = _styles(numbers)
  shapes = []
  # Draw the largest groups last, on top of the smaller ones.
  for group in reversed(range(len(numbers['groups']))):
    some = np.round(scaled(places[groups == group]) * _SIZE).astype(int)
    commands = ''.join(f'M{x} {y}h.01' for x, y in some.tolist())
    if commands:
      shapes += [
        markup.element('path', d=commands, class_=f'point {kind}')
        for kind in styles[group]
      ]
  shown = min(len(numbers['groups']), map_plots.MAX_GROUPS)
  labels = [
    markup.element(
      'span', group + 1, style=f'left:{where[0]:.2%};top:{where[1]:.2%}'
    )
    for group, place in map_plots.number_positions(
      places, groups, shown
    ).items()
    for where in [scaled(place)]
  ]
  svg = markup.element(
    'svg',
    *shapes,
    viewBox=f'0 0 {_SIZE} {_SIZE}',
    role='img',
    aria_label=f'{len(points):,} points in {len(numbers["groups"])} groups',
  )
  return markup.element(
    'figure',
    markup.element(
      'figcaption', markup.element('span', title, class_='chart-title')
    ),
    markup.element(
      'div',
      markup.element('div', svg, *labels, class_='canvas'),
      _legend(numbers, styles, shown),
      class_='map-body',
    ),
    class_='map',
  )


def _styles(numbers: dict[str, Any]) -> list[list[str]]:
  """Returns the classes of the SVG elements that draw each group.

  The first groups are circles in the colours of the palette. The next groups
  are squares in the same colours. The inverse of a relation has the shape and
  colour of the relation, but is hollow. A hollow shape is drawn with two
  elements.
  """
  styles: list[list[str]] = []
  kinds = 0
  for place, group in enumerate(numbers['groups']):
    if place >= map_plots.MAX_GROUPS:
      styles.append(['rest'])
      continue
    inverse = group['inverse']
    hollow = inverse is not None and inverse < place
    kind = kinds - 1 if hollow else kinds
    kinds = kind + 1
    name = f'series-{kind % _NUM_COLORS}'
    name += ' square' if kind >= _NUM_COLORS else ''
    styles.append([name, 'hole'] if hollow else [name])
  return styles


def _legend(
  numbers: dict[str, Any], styles: list[list[str]], shown: int
) -> markup.Markup:
  """Returns the list of the groups, with the number of points of each."""
  entries = []
  for place, group in enumerate(numbers['groups'][:shown]):
    hollow = len(styles[place]) > 1
    classes = f'swatch {styles[place][0]}' + ' hollow' * hollow
    entries.append(
      markup.element(
        'li',
        markup.element('i', class_=classes),
        markup.element('b', place + 1),
        markup.element(
          'span',
          markup.label(group['name']),
          ' (inverse of the relation above)' if hollow else None,
        ),
        markup.element('span', f'{group["points"]:,}', class_='number'),
      )
    )
  rest = [group['points'] for group in numbers['groups'][shown:]]
  if rest:
    entries.append(
      markup.element(
        'li',
        markup.element('i', class_='swatch rest'),
        markup.element('b'),
        markup.element('span', f'{len(rest):,} other groups'),
        markup.element('span', f'{sum(rest):,}', class_='number'),
      )
    )
  return markup.element('ol', *entries, class_='map-legend')
