"""Draws a contextual map: a point for each triple, a legend in words."""

import textwrap
from typing import Any

import numpy as np

from coke_jax.plots import plot_style

# Groups beyond these are grey: more cannot be told apart at a glance.
MOST_GROUPS = 12
_MARKERS = 'os^Dv*Xp<P>h'
_RELATION_MARKERS = 'o^'
_SIZES = {'*': 80, 'X': 50, 'P': 50}  # that look as large as the others
_POINT_SIZE = 40
_NEUTRAL = '#666666'  # stands for any colour in the legend
_LEGEND_WIDTH = 46  # characters of a line
_LEGEND_LINES = 2  # of a name
_MOST_COMPARED = 500  # points of a group, to find where it is densest
# Fractions of the map's width.
_NUMBER_SIZE = 0.04  # of the box around a group's number
_NEIGHBOURHOOD = 0.05  # how far points count as near each other


def draw(numbers: dict[str, Any]) -> Any:
  """A matplotlib figure of what `contextual_maps.to_json` gave.

  On the map of an entity each relation has its colour and shape; a relation's
  inverse has the same ones, hollow. On the map of two relations the colours are
  the entities', hollow where they come again, and the shape tells the relations
  apart. A group's number in the legend stands beside its densest place.
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
  looks = _looks(numbers)
  for group in reversed(range(len(numbers['groups']))):  # large ones on top
    for relation in np.unique(relations):
      rows = (groups == group) & (relations == relation)
      axes.scatter(*places[rows].T, **_marked(numbers, looks[group], relation))
  shown = min(len(numbers['groups']), MOST_GROUPS)
  for group, where in _number_places(places, groups, shown).items():
    axes.annotate(
      str(group + 1),
      where,
      ha='center',
      va='center',
      fontsize=8,
      fontweight='bold',
      bbox={'boxstyle': 'round,pad=0.2', 'fc': 'white', 'lw': 0.6},
    )
  _legend(figure, axes, numbers, looks)
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


def _looks(numbers: dict[str, Any]) -> list[dict[str, Any]]:
  """How `scatter` shows the points of each group."""
  looks: list[dict[str, Any]] = []
  kinds = 0  # combinations of colour and shape so far
  for place, group in enumerate(numbers['groups']):
    if place >= MOST_GROUPS:
      looks.append(_look(plot_style.GREY, 'o', _POINT_SIZE / 3))
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
    looks.append(_look(color, marker, size, hollow=hollow))
  return looks


def _look(
  color: str, marker: str, size: float, *, hollow: bool = False
) -> dict[str, Any]:
  return {
    's': size,
    'marker': marker,
    'facecolor': 'none' if hollow else color,
    'edgecolor': color if hollow else 'white',
    'linewidth': 1.5 if hollow else 0.5,
  }


def _marked(
  numbers: dict[str, Any], look: dict[str, Any], relation: int
) -> dict[str, Any]:
  """A look with the shape of one of two relations, if there are two."""
  if not _is_pair(numbers):
    return look
  return look | {'marker': _RELATION_MARKERS[relation]}


def _number_places(
  places: np.ndarray,  # [N, 2]
  groups: np.ndarray,  # [N]
  shown: int,
) -> dict[int, np.ndarray]:
  """Where the number of each of the first groups stands, if it has points.

  Near the point with the most others of its group around it, where a number
  hides no other number and few points.
  """
  low = places.min(axis=0)
  size = np.maximum(np.ptp(places, axis=0), np.finfo(np.float32).tiny)
  scaled = (places - low) / size
  found: dict[int, np.ndarray] = {}
  for group in range(shown):
    members = scaled[groups == group]
    if not len(members):  # none is in the sample
      continue
    members = members[:: len(members) // _MOST_COMPARED + 1]
    apart = np.linalg.norm(members[:, None] - members[None], axis=-1)
    near = np.exp(-((apart / _NEIGHBOURHOOD) ** 2)).sum(axis=1)
    tried = members[near.argmax()] + _OFFSETS  # [T, 2]
    hidden = _close(tried, scaled, 0.6 * _NUMBER_SIZE)
    others = np.array(list(found.values())).reshape(-1, 2)
    numbers = _close(tried, others, _NUMBER_SIZE)
    farness = np.linalg.norm(_OFFSETS, axis=1) / _NUMBER_SIZE
    cost = 100 * numbers + np.minimum(hidden, 4) + farness
    found[group] = tried[cost.argmin()]
  return {group: place * size + low for group, place in found.items()}


def _close(places: np.ndarray, others: np.ndarray, limit: float) -> np.ndarray:
  """How many of others [M, 2] are near each of places [T, 2]: int64 [T]."""
  apart = np.linalg.norm(places[:, None] - others[None], axis=-1)
  return (apart < limit).sum(axis=1)


# Tried for a number: on the spot, then around it, ever farther.
_OFFSETS = np.array(
  [
    [radius * np.cos(angle), radius * np.sin(angle)]
    for radius in _NUMBER_SIZE * np.arange(0, 5, 0.5)
    for angle in np.arange(12) * np.pi / 6
  ]
)


def _legend(
  figure: Any,
  axes: Any,
  numbers: dict[str, Any],
  looks: list[dict[str, Any]],
) -> None:
  """Names of groups, and of relations if there are two, beside the map."""
  groups = numbers['groups']
  title = f'{numbers["grouped_by"]} (number of triples)'
  entries: list[tuple[dict[str, Any], str]] = []
  if _is_pair(numbers):
    neutral = _look(_NEUTRAL, 'o', _POINT_SIZE)
    entries = [
      (_marked(numbers, neutral, relation), _wrap(name))
      for relation, name in enumerate(numbers['names'])
    ]
    entries.append(({'alpha': 0}, f'\n{title}'))
    title = 'relation'
  entries += [
    (look, _wrap(f'{place}  {group["name"]} ({group["points"]})'))
    for place, (group, look) in enumerate(
      zip(groups[:MOST_GROUPS], looks, strict=False), start=1
    )
  ]
  rest = [group['points'] for group in groups[MOST_GROUPS:]]
  if rest:
    entries.append(
      (looks[-1], f'{len(rest)} others ({min(rest)} to {max(rest)} each)')
    )
  handles = [
    axes.scatter([], [], label=plot_style.plain(text), **look)
    for look, text in entries
  ]
  if any(group['inverse'] is not None for group in groups[:MOST_GROUPS]):
    title += '\nhollow: the inverse of the one above'
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
  """What a point is, what its colour is, which rule left triples out."""
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
