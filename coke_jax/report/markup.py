"""Builds HTML. All text is escaped, because labels can contain any characters.

Only text of the type `Markup` is inserted without escaping.
"""

import html
import re
from collections.abc import Iterable, Mapping

# Characters that HTML does not allow, and halves of surrogate pairs, which
# UTF-8 does not allow.
_FORBIDDEN = re.compile('[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff\ufffe\uffff]')
_REPLACEMENT = '\ufffd'
_VOID = ('br', 'col', 'input', 'meta')  # elements without an end tag
_MAX_LABEL = 160  # maximum number of characters of a label that are shown
_MAX_TITLE = 2000  # maximum number of characters of a label in its tooltip


class Markup(str):
  """Text that is HTML already."""


Content = str | int | None


def escape(text: str) -> Markup:
  """Escapes text for HTML and for attributes in quotes."""
  return Markup(html.escape(_FORBIDDEN.sub(_REPLACEMENT, text)))


def element(
  name: str, /, *children: Content, **attributes: str | float | bool | None
) -> Markup:
  """Returns an element.

  Args:
    name: the name of the element.
    *children: the content. Text that is not of the type `Markup` is escaped.
      None is left out.
    **attributes: the attributes. A trailing underscore is removed from their
      names, and other underscores become dashes. True gives an attribute
      without a value. None and False are left out.
  """
  start = name
  for key, value in attributes.items():
    if value is None or value is False:
      continue
    start += ' ' + key.rstrip('_').replace('_', '-')
    if value is not True:
      start += f'="{escape(str(value))}"'
  if name in _VOID:
    return Markup(f'<{start}>')
  return Markup(f'<{start}>{join(children)}</{name}>')


def join(children: Iterable[Content], separator: str = '') -> Markup:
  """Joins markup and text. Text is escaped, and None is left out."""
  pieces = [
    child if isinstance(child, Markup) else escape(str(child))
    for child in children
    if child is not None
  ]
  return Markup(escape(separator).join(pieces))


def label(text: str, names: Mapping[str, str] | None = None) -> Markup:
  """Returns a label, isolated from the writing direction of the text around it.

  Args:
    text: the label of an entity or relation. If it is longer than 160
      characters, it is cut, and the tooltip contains up to 2,000 characters.
    names: a dict from labels to names. If the label has a name, the name is
      shown instead, and the tooltip contains the label.
  """
  shown = (names or {}).get(text, text)
  title = text if shown != text else None
  if len(shown) > _MAX_LABEL:
    title, shown = text, f'{shown[:_MAX_LABEL]}\u2026'
  if title is not None and len(title) > _MAX_TITLE:
    title = f'{title[:_MAX_TITLE]}\u2026'
  return element('bdi', shown or '\u201c\u201d', title=title)
