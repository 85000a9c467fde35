"""Creates progress bars on standard error."""

import sys
from typing import Any

import tqdm


class _Bars:
  hidden = False


def hide() -> None:
  """Hides all progress bars that are created later."""
  _Bars.hidden = True


def create(description: str, **options: Any) -> tqdm.tqdm:
  """Creates a progress bar, which is used as a context manager.

  Args:
    description: the label of the bar. If it is empty, no bar is shown.
    **options: arguments of `tqdm.tqdm`.

  Returns:
    The bar. Nothing is shown if the process has no standard error, or after
    `hide`.
  """
  if not description or sys.stderr is None or _Bars.hidden:
    options['disable'] = True
  return tqdm.tqdm(desc=description, **options)


def say(text: str, stream: Any) -> None:
  """Prints a line above all progress bars.

  Args:
    text: the line.
    stream: `sys.stdout` or `sys.stderr`. If it is None, nothing is printed.
  """
  if stream is not None:
    tqdm.tqdm.write(text, file=stream)
