"""Line charts in SVG, with labels in HTML.

The SVG is stretched to the width of the page. The width of lines and the size
of labels do not change, so a chart is legible on narrow screens.
The colours are variables of the style sheet, which has a dark mode.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence

from coke_jax.report import markup

_SIZE = 1000  # width and height of the SVG in its own units
_MAX_POINTS = 400  # maximum number of points of a line
_TICKS = 5  # approximate number of intervals between ticks


@dataclasses.dataclass(frozen=True)
class Line:
  """A line of a chart.

  Attributes:
    name: the name in the legend.
    x: the positions, not negative. The axis starts at 0.
    y: the values. None leaves a gap.
    dots: whether every point has a dot.
  """

  name: str
  x: Sequence[float]
  y: Sequence[float | None]
  dots: bool = False


def line_chart(
  title: str,
  lines: Sequence[Line],
  *,
  x_label: str,
  description: str,
  y_range: tuple[float, float] | None = None,
  mark: float | None = None,
  note: str = '',
  shape: str = 'wide',
  diagonal: bool = False,
) -> markup.Markup:
  """Returns a chart of one or more lines.

  Args:
    title: the title.
    lines: the lines. At least one of them has a value.
    x_label: the name of the horizontal axis.
    description: a text for readers who do not see the chart.
    y_range: the interval that the vertical axis covers. Default: from the
      lowest to the highest value.
    mark: the position of a dotted vertical line. Default: no line.
    note: a text beside the title.
    shape: a class of the style sheet: `wide`, `half` or `square`.
    diagonal: whether to draw a diagonal. If True, the horizontal axis covers 0
      to 1, and `y_range` must be (0, 1).
  """
  lines = [_thinned(line) for line in lines]
  points = [
    (x, y)
    for line in lines
    for x, y in zip(line.x, line.y, strict=True)
    if y is not None
  ]
  x_low, x_high = (0.0, 1.0) if diagonal else (0.0, max(x for x, _ in points))
  x_high = x_high if x_high > x_low else x_low + 1
  x_ticks = [x for x in ticks(x_low, x_high) if x <= x_high * (1 + 1e-9)]
  y_ticks = ticks(
    *(y_range or (min(y for _, y in points), max(y for _, y in points)))
  )
  y_low, y_high = y_ticks[0], y_ticks[-1]

  def across(x: float) -> float:
    return (x - x_low) / (x_high - x_low)

  def up(y: float) -> float:
    return (y - y_low) / (y_high - y_low)

  shapes = [
    _path(''.join(f'M0 {_place(1 - up(y))}H{_SIZE}' for y in y_ticks), 'grid')
  ]
  if diagonal:
    shapes.append(_path(f'M0 {_SIZE}L{_SIZE} 0', 'diagonal'))
  if mark is not None:
    shapes.append(_path(f'M{_place(across(mark))} 0V{_SIZE}', 'mark'))
  for index, line in enumerate(lines):
    drawn, dots, pen = '', '', 'M'
    for x, y in zip(line.x, line.y, strict=True):
      if y is None:
        pen = 'M'
        continue
      where = f'{_place(across(x))} {_place(1 - up(y))}'
      drawn += f'{pen}{where}'
      dots += f'M{where}h.01'
      pen = 'L'
    shapes.append(_path(drawn, f'line series-{index}'))
    if line.dots or len(line.x) == 1:
      shapes.append(_path(dots, f'dot series-{index}'))
  svg = markup.element(
    'svg',
    *shapes,
    viewBox=f'0 0 {_SIZE} {_SIZE}',
    preserveAspectRatio='none',
    role='img',
    aria_label=description,
  )
  plot = markup.element(
    'div',
    _axis('y', y_ticks, up, 'bottom'),
    markup.element('div', svg, class_='canvas'),
    _axis('x', x_ticks, across, 'left'),
    markup.element('div', x_label, class_='x-label'),
    class_='plot',
  )
  heading = [markup.element('span', title, class_='chart-title')]
  if len(lines) > 1:
    heading.append(legend([line.name for line in lines]))
  if note:
    heading.append(markup.element('span', note, class_='note'))
  return markup.element(
    'figure',
    markup.element('figcaption', *heading),
    plot,
    class_=f'chart {shape}',
  )


def legend(names: Sequence[str]) -> markup.Markup:
  """Returns a legend, in which each name has the colour of its line."""
  return markup.element(
    'span',
    *(
      markup.element(
        'span',
        markup.element('i', class_=f'swatch series-{index}'),
        name,
      )
      for index, name in enumerate(names)
    ),
    class_='legend',
  )


def ticks(low: float, high: float) -> list[float]:
  """Returns round numbers at equal distances that enclose `low` and `high`."""
  if high <= low:
    high = low + (abs(low) or 1.0)
  raw = (high - low) / _TICKS
  power = 10.0 ** math.floor(math.log10(raw))
  step = next(s * power for s in (1, 2, 2.5, 5, 10) if s * power >= raw * 0.999)
  first = math.floor(low / step + 1e-9)
  last = math.ceil(high / step - 1e-9)
  return [round(step * place, 12) for place in range(first, last + 1)]


def _thinned(line: Line) -> Line:
  """Replaces neighbouring points by their mean if there are many points."""
  size = -(-len(line.x) // _MAX_POINTS)
  if size <= 1:
    return line
  x, y = [], []
  for start in range(0, len(line.x), size):
    some = [one for one in line.y[start : start + size] if one is not None]
    part = line.x[start : start + size]
    x.append(sum(part) / len(part))
    y.append(sum(some) / len(some) if some else None)
  return dataclasses.replace(line, x=x, y=y)


def _place(share: float) -> str:
  """Formats a position in the SVG."""
  return f'{_SIZE * share:.1f}'.removesuffix('.0')


def _path(commands: str, kind: str) -> markup.Markup:
  return markup.element('path', d=commands, class_=kind)


def _axis(
  name: str,
  values: Sequence[float],
  position: Callable[[float], float],
  side: str,
) -> markup.Markup:
  """Returns the labels of an axis."""
  texts = [tick_text(value, values) for value in values]
  return markup.element(
    'div',
    *(
      markup.element('span', text, style=f'{side}:{position(value):.2%}')
      for text, value in zip(texts, values, strict=True)
    ),
    class_=f'{name}-ticks',
    aria_hidden='true',
    style=f'min-width:{max(map(len, texts))}ch' if name == 'y' else None,
  )


def tick_text(value: float, values: Sequence[float]) -> str:
  """Formats a tick with as many decimals as all ticks of its axis need."""
  largest = max(map(abs, values))
  if 0 < largest < 1e-4 or largest >= 1e6:
    return '0' if value == 0 else f'{value:.1e}'.replace('e-0', 'e-')
  decimals = next(
    d
    for d in range(8)
    if all(abs(one - round(one, d)) < 1e-9 * largest for one in values)
  )
  return f'{value:,.{decimals}f}'
