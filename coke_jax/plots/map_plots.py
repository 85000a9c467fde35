"""Draws a contextual map: one point for each triple, and a legend."""

import textwrap
from typing import Any

import numpy as np

from coke_jax.plots import plot_style

# Only the first 12 groups have a style each, because more styles are hard to
# distinguish. All other groups are grey.
MAX_GROUPS = 12
# Size of the box around a group's number, as a fraction of the map's width.
NUMBER_SIZE = 0.04

_MARKERS = 'os^Dv*Xp<P>h'
_RELATION_MARKERS = 'o^'
_POINT_SIZE = 40
# Sizes of the markers that would look too small with _POINT_SIZE.
_SIZES = {'*': 80, 'X': 50, 'P': 50}
_NEUTRAL = '#666666'  # the colour of relation markers in the legend
_LEGEND_WIDTH = 46  # maximum number of characters in a line
_LEGEND_LINES = 2  # maximum number of lines of a name
_MAX_COMPARED = 500  # maximum number of points per group for the density
_NEIGHBORHOOD = 0.05  # radius for the density, as a fraction of the width
# Candidate offsets of a number from the densest point of its group: zero, and
# points on circles of growing radius.
_OFFSETS = np.array(
  [
    [radius * np.cos(angle), radius * np.sin(angle)]
    for radius in NUMBER_SIZE * np.arange(0, 5, 0.5)
    for angle in np.arange(12) * np.pi / 6
  ]
)


def draw(numbers: dict[str, Any]) -> Any:
  """Draws a map as a matplotlib figure.

  In the map of one entity or relation, each group has a colour and a marker.
  The inverse of a relation has the same colour and a hollow marker of the same
  shape. In the map of two relations, the colour shows the entity and the marker
  shows the relation. If a colour is used for a second entity, the markers of
  this entity are hollow. The numbers of the first MAX_GROUPS groups are in the
  legend and near the densest point of each group.

  Args:
    numbers: the document that `contextual_maps.to_json` returned.

  Raises:
    config.ConfigError: matplotlib is not installed.
  """
  figure = plot_style.new_figure(11, 6.6)
  axes = figure.add_subplot()
  axes.set(xticks=[], yticks=[])
  axes.spines[:].set(visible=True, color=plot_style.GREY)
  points = numbers['points']
  places = np.array([[point['x'], point['y']] for point in points])  # [N, 2]
  groups = np.array([point['group'] for point in points])  # [N]
  relations = np.array(
    [
      numbers['labels'].index(point['triple'][1]) if _is_pair(numbers) else 0
      for point in points
    ]
  )
  styles = group_styles(numbers)
  # Draw the first groups last, so that no other group hides them.
  for group in reversed(range(len(numbers['groups']))):
    for relation in np.unique(relations):
      rows = (groups == group) & (relations == relation)
      axes.scatter(
        *places[rows].T, **_with_marker(numbers, styles[group], relation)
      )
  shown = min(len(numbers['groups']), MAX_GROUPS)
  for group, where in number_positions(places, groups, shown).items():
    axes.annotate(
      str(group + 1),
      where,
      ha='center',
      va='center',
      fontsize=8,
      fontweight='bold',
      bbox={'boxstyle': 'round,pad=0.2', 'fc': 'white', 'lw': 0.6},
    )
  _legend(figure, axes, numbers, styles)
  subtitle = _subtitle(numbers)
  axes.annotate(
    plot_style.plain(subtitle),
    (0, 1),
    xycoords='axes fraction',
    xytext=(0, 6),
    textcoords='offset points',
    fontsize=9,
    linespacing=1.4,
  )
  axes.set_title(
    plot_style.plain(_title(numbers)),
    loc='left',
    fontweight='bold',
    pad=10 + 12 * len(subtitle.splitlines()),
  )
  return figure


def _is_pair(numbers: dict[str, Any]) -> bool:
  return len(numbers['labels']) > 1


def group_styles(numbers: dict[str, Any]) -> list[dict[str, Any]]:
  """Returns the arguments of `scatter` for the points of each group.

  Args:
    numbers: the document that `contextual_maps.to_json` returned.
  """
  styles: list[dict[str, Any]] = []
  kinds = 0  # number of combinations of colour and marker so far
  for place, group in enumerate(numbers['groups']):
    if place >= MAX_GROUPS:
      styles.append(_style(plot_style.GREY, 'o', _POINT_SIZE / 3))
      continue
    inverse = group['inverse']
    hollow = inverse is not None and inverse < place
    kind = kinds - 1 if hollow else kinds
    kinds = kind + 1
    if _is_pair(numbers):
      hollow = kind >= len(plot_style.COLORS)
    color = plot_style.COLORS[kind % len(plot_style.COLORS)]
    marker = 's' if _is_pair(numbers) else _MARKERS[kind]
    size = _SIZES.get(marker, _POINT_SIZE)
    styles.append(_style(color, marker, size, hollow=hollow))
  return styles


def _style(
  color: str, marker: str, size: float, *, hollow: bool = False
) -> dict[str, Any]:
  return {
    's': size,
    'marker': marker,
    'facecolor': 'none' if hollow else color,
    'edgecolor': color if hollow else 'white',
    'linewidth': 1.5 if hollow else 0.5,
  }


def _with_marker(
  numbers: dict[str, Any], style: dict[str, Any], relation: int
) -> dict[str, Any]:
  """Returns the style with the marker of the relation.

  In a map of one label, returns the style unchanged.
  """
  if not _is_pair(numbers):
    return style
  return style | {'marker': _RELATION_MARKERS[relation]}


def number_positions(
  places: np.ndarray,
  groups: np.ndarray,
  shown: int,
) -> dict[int, np.ndarray]:
  """Chooses the positions of the numbers of the first groups.

  A number is near the densest point of its group, at a position where it hides
  no other number and few points.

  Args:
    places: float [N, 2], the points.
    groups: integers [N], the group of each point.
    shown: the number of groups that get a number.

  Returns:
    A dict from group to position, float [2]. Groups without points are left
    out.
  """
  low = places.min(axis=0)
  size = np.maximum(np.ptp(places, axis=0), np.finfo(np.float32).tiny)
  scaled = (places - low) / size
  found: dict[int, np.ndarray] = {}
  for group in range(shown):
    members = scaled[groups == group]
    if not len(members):  # The sample has no point of this group.
      continue
    members = members[:: len(members) // _MAX_COMPARED + 1]
    apart = np.linalg.norm(members[:, None] - members[None], axis=-1)
    near = np.exp(-((apart / _NEIGHBORHOOD) ** 2)).sum(axis=1)
    tried = members[near.argmax()] + _OFFSETS  # [T, 2]
    hidden = _close(tried, scaled, 0.6 * NUMBER_SIZE)
    others = np.array(list(found.values())).reshape(-1, 2)
    numbers = _close(tried, others, NUMBER_SIZE)
    farness = np.linalg.norm(_OFFSETS, axis=1) / NUMBER_SIZE
    cost = 100 * numbers + np.minimum(hidden, 4) + farness
    found[group] = tried[cost.argmin()]
  return {group: place * size + low for group, place in found.items()}


def _close(places: np.ndarray, others: np.ndarray, limit: float) -> np.ndarray:
  """Counts the `others` near each place.

  Args:
    places: float [T, 2].
    others: float [M, 2].
    limit: the maximum distance.

  Returns:
    int64 [T].
  """
  apart = np.linalg.norm(places[:, None] - others[None], axis=-1)
  return (apart < limit).sum(axis=1)


def _legend(
  figure: Any,
  axes: Any,
  numbers: dict[str, Any],
  styles: list[dict[str, Any]],
) -> None:
  """Adds a legend of the groups and, for two relations, of the relations."""
  groups = numbers['groups']
  title = f'{numbers["grouped_by"]} (number of triples)'
  entries: list[tuple[dict[str, Any], str]] = []
  if _is_pair(numbers):
    neutral = _style(_NEUTRAL, 'o', _POINT_SIZE)
    entries = [
      (_with_marker(numbers, neutral, relation), _wrap(name))
      for relation, name in enumerate(numbers['names'])
    ]
    entries.append(({'alpha': 0}, f'\n{title}'))
    title = 'relation'
  entries += [
    (style, _wrap(f'{place}  {group["name"]} ({group["points"]})'))
    for place, (group, style) in enumerate(
      zip(groups[:MAX_GROUPS], styles, strict=False), start=1
    )
  ]
  rest = [group['points'] for group in groups[MAX_GROUPS:]]
  if rest:
    entries.append(
      (styles[-1], f'{len(rest)} others ({min(rest)} to {max(rest)} each)')
    )
  handles = [
    axes.scatter([], [], label=plot_style.plain(text), **style)
    for style, text in entries
  ]
  if any(group['inverse'] is not None for group in groups[:MAX_GROUPS]):
    title += '\nhollow: the inverse of the relation above'
  figure.legend(
    handles=handles,
    loc='outside right upper',
    title=title,
    alignment='left',
    fontsize=9,
    labelspacing=0.7,
  )


def _wrap(text: str) -> str:
  lines = textwrap.wrap(text, _LEGEND_WIDTH)
  if len(lines) > _LEGEND_LINES:
    lines = lines[:_LEGEND_LINES]
    lines[-1] += ' ...'
  return '\n'.join(lines)


def _quoted(name: str) -> str:
  return f'\u201c{name}\u201d'


def _title(numbers: dict[str, Any]) -> str:
  names = ' and '.join(map(_quoted, numbers['names']))
  return f'{names} in {numbers["dataset"]}: contextual embeddings'


def _subtitle(numbers: dict[str, Any]) -> str:
  """Describes the points, the colours and the selection of triples."""
  shown, kept = len(numbers['points']), numbers['triples_kept']
  least = numbers['least_triples_of_a_group']
  sample = f' (a sample of {kept:,})' if shown < kept else ''
  text = (
    f'A point is the final hidden state of the {numbers["kind"]} in one of '
    f'{shown:,} training triples{sample}, laid out by t-SNE.\n'
  )
  if numbers['kind'] == 'entity':
    return text + f'Colour: the relation; relations of {least} or more triples.'
  sides = ', '.join(
    f'{side} of {_quoted(name)}' if _is_pair(numbers) else side
    for side, name in zip(numbers['sides'], numbers['names'], strict=True)
  )
  return (
    text + f'Colour: the entity that is {sides}; entities of {least} or more '
    'triples.'
  )
