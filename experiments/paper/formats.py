"""Formats numbers and tables as text."""

import math
from collections.abc import Iterable, Sequence


def decimal(value: float | None) -> str:
  """Formats a metric as the paper does, such as `.364`, and None as `-`."""
  if value is None:
    return '-'
  text = f'{value:.3f}'
  return text.removeprefix('0') if value < 1 else text


def plus_minus(mean: float | None, deviation: float | None) -> str:
  """Formats a mean, and its standard deviation if there is one."""
  if deviation is None:
    return decimal(mean)
  return f'{decimal(mean)} ± {decimal(deviation)}'


def signed(value: float | None) -> str:
  """Formats a difference with its sign, and None as `-`."""
  if value is None:
    return '-'
  if round(value, 3) == 0:
    return '.000'
  return ('+' if value > 0 else '-') + decimal(abs(value))


def duration(seconds: float | None) -> str:
  """Formats a duration in hours and minutes, or in minutes and seconds."""
  if seconds is None:
    return '-'
  if seconds >= 3600:
    minutes = round(seconds / 60)
    return f'{minutes // 60} h {minutes % 60:02d} min'
  whole = math.ceil(seconds)
  return f'{whole // 60} min {whole % 60:02d} s'


def markdown_table(
  header: Sequence[str], lines: Iterable[Sequence[str]]
) -> str:
  """Formats a table in Markdown."""
  rows = [header, ['---'] * len(header), *lines]
  return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows) + '\n'
