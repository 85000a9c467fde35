"""Checks the types of arguments that users pass to functions of the package."""

import math
import numbers
import operator
from typing import Any

from coke_jax.data import text_files


def check_text(name: str, value: Any) -> None:
  """Checks that an argument is a str.

  Raises:
    text_files.DataError: the argument has another type.
  """
  if not isinstance(value, str):
    raise _error(name, value, 'a str')


def check_truth(name: str, value: Any) -> None:
  """Checks that an argument is True or False.

  Raises:
    text_files.DataError: the argument is another value.
  """
  # Also accept NumPy's bool.
  if type(value).__name__ not in ('bool', 'bool_'):
    raise _error(name, value, 'True or False')


def check_number(name: str, value: Any) -> None:
  """Checks that an argument is a number and not NaN.

  Raises:
    text_files.DataError: the argument is another value.
  """
  if not is_number(value) or math.isnan(value):
    raise _error(name, value, 'a number')


def check_whole_number(name: str, value: Any, least: int) -> None:
  """Checks that an argument is an integer of at least `least`.

  Raises:
    text_files.DataError: the argument is another value.
  """
  try:
    whole = operator.index(value)
  except TypeError:
    whole = least - 1
  if whole < least:
    raise _error(name, value, f'a whole number of at least {least}')


def is_number(value: Any) -> bool:
  """Returns whether a value is a real number, and not True or False."""
  return isinstance(value, numbers.Real) and not isinstance(value, bool)


def _error(name: str, value: Any, expected: str) -> text_files.DataError:
  shown = repr(value) if is_number(value) else text_files.show_value(value)
  return text_files.DataError(f'{name} is {shown}: expected {expected}')
