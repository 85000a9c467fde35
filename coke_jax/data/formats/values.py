"""Converts the values of a row to labels and weights."""

import math
import re
from typing import Any

import numpy as np

from coke_jax import errors
from coke_jax.data import text_files

# With this limit, a line of three labels is shorter than MAX_LINE_BYTES.
MAX_LABEL_BYTES = text_files.MAX_LINE_BYTES // 4
_UNWRITABLE = re.compile('[\t\n\r]|^\ufeff')
_ESCAPED = {
  '\\': '\\\\',
  '\t': '\\t',
  '\n': '\\n',
  '\r': '\\r',
  '\ufeff': '\\ufeff',
}
_TO_ESCAPE = re.compile('[\\\\\t\n\r]|^\ufeff')


class BadValueError(errors.CokeError, ValueError):
  """An invalid label or weight."""

  def __init__(self, value: Any, reason: str, detail: str):
    super().__init__(reason)
    self.reason = reason
    self.detail = f'{show(value)} {detail}'


def to_label(value: Any, escape: bool) -> str:
  """Returns the label of a value.

  Args:
    value: a text or an integer.
    escape: whether tabs, line breaks and backslashes are escaped.

  Raises:
    BadValueError: the value is missing or has another type, or the label cannot
      be written to a file of triples.
  """
  return _check_label(_to_text(value), escape)


def _to_text(value: Any) -> str:
  """Returns a text or an integer as text."""
  if isinstance(value, str):
    return str(value)  # The type may be a subclass, such as numpy.str_.
  if isinstance(value, int | np.integer) and not isinstance(value, bool):
    return str(int(value))
  if is_missing(value):
    return ''
  raise BadValueError(
    value,
    f'label of type {type(value).__name__}',
    f'is a label of type {type(value).__name__}: expected a text or an integer',
  )


def is_missing(value: Any) -> bool:
  """Returns whether a value is None, NaN, NaT or `pandas.NA`."""
  if value is None or type(value).__name__ in ('NAType', 'NaTType'):
    return True
  return isinstance(value, float | np.floating) and math.isnan(value)


def _check_label(label: str, escape: bool) -> str:
  """Returns a label, escaped if `escape` is true, or raises an error."""
  if not label:
    raise BadValueError(
      label,
      'empty or missing label',
      'is an empty or missing label: expected a label',
    )
  try:
    size = len(label.encode('utf-8'))
  except UnicodeEncodeError:
    raise BadValueError(
      label,
      'label with a lone surrogate',
      'contains a lone surrogate: expected Unicode text',
    ) from None
  if size > MAX_LABEL_BYTES:
    raise BadValueError(
      label,
      'label too long',
      f'is a label of {size:,} bytes: expected at most {MAX_LABEL_BYTES:,}',
    )
  if escape:
    return _TO_ESCAPE.sub(lambda match: _ESCAPED[match[0]], label)
  if _UNWRITABLE.search(label):
    raise BadValueError(
      label,
      'label with a tab, a line break or a byte-order mark',
      'contains a tab or a line break, or starts with a byte-order mark, so it '
      'cannot be written to a file of triples. If tabs separate the columns, '
      "use coke prepare with --column-delimiter='\\t' (in Python: "
      "delimiter='\\t'). Otherwise, replace these characters: use coke prepare "
      'with --escape-labels and --output=FOLDER, and train on that folder (in '
      'Python: escape_labels=True)',
    )
  return label


def to_weight(value: Any) -> float:
  """Returns a weight as a number.

  Raises:
    BadValueError: the value is not a number.
  """
  try:
    number = math.nan if isinstance(value, bool) else float(value)
  except (TypeError, ValueError):
    number = math.nan
  if math.isnan(number):
    raise BadValueError(
      value, 'weight that is no number', 'is the weight: expected a number'
    )
  return number


def show(value: Any) -> str:
  """Returns a line, a row or a value for an error message."""
  if isinstance(value, str | bytes):
    return text_files.show_line(value)
  text = repr(value)
  # The repr of some values, such as arrays, is long.
  return text if len(text) <= 200 else f'{text[:200]}...'
