"""Parts that several sections of a report share."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from coke_jax.report import content, markup, tables


class Section(NamedTuple):
  """A section of a report.

  Attributes:
    anchor: the id, to which the table of contents links.
    title: the heading.
    body: the content below the heading.
  """

  anchor: str
  title: str
  body: markup.Markup


def section(anchor: str, title: str, *children: markup.Content) -> Section:
  """Returns a section that contains the children."""
  return Section(anchor, title, markup.join(children))


def paragraph(*children: markup.Content, kind: str = '') -> markup.Markup:
  """Returns a paragraph.

  Args:
    *children: the content.
    kind: the class of the paragraph in the style sheet. Default: no class.
  """
  return markup.element('p', *children, class_=kind or None)


def missing(part: content.Missing) -> markup.Markup:
  """Returns the reason why a part is missing, and the command to create it."""
  return markup.element(
    'div',
    paragraph(part.reason),
    markup.element('pre', markup.element('code', part.command))
    if part.command
    else None,
    class_='missing',
  )


def labels(some: Sequence[str], names: Mapping[str, str]) -> markup.Markup:
  """Returns the labels of a path with arrows between them."""
  arrow = markup.element('span', '\u2192', class_='arrow')
  found: list[markup.Content] = []
  for one in some:
    found += [' ', arrow, ' '] if found else []
    found.append(markup.label(one, names))
  return markup.join(found)


def pairs(values: Mapping[str, Any]) -> markup.Markup:
  """Returns a list of names and values."""
  return markup.element(
    'dl',
    *(
      markup.element(
        'div', markup.element('dt', name), markup.element('dd', value)
      )
      for name, value in values.items()
    ),
    class_='pairs',
  )


def tile(
  name: str, value: float | None, kind: str, below: str
) -> markup.Markup:
  """Returns a number in large type, below its name and above another line."""
  return markup.element(
    'div',
    markup.element('dt', name),
    markup.element('dd', tables.number(value, kind), class_='value'),
    markup.element('dd', below, class_='below') if below else None,
    class_='tile',
  )
