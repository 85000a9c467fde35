"""What orbax and tensorstore print of errors that they raise as well.

A checkpoint that cannot be read or written is one error, which `checkpoint`
names. Without this, a dozen tracebacks come before or after it.
"""

import contextlib
import logging
import sys
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def silenced() -> Iterator[None]:
  """Keeps orbax from logging the errors of its threads, one by one."""
  logger = logging.getLogger('absl')
  level = logger.level
  logger.setLevel(logging.CRITICAL)
  try:
    yield
  finally:
    logger.setLevel(level)


def silence_late_errors() -> None:
  """Keeps what comes later from being shown, for as long as Python runs.

  Orbax works on all arrays at the same time, raises the first error and closes
  its event loop. The arrays after it fail into tasks that nobody asks, which
  asyncio reports when they are collected, or report to the closed loop.
  """
  hook = sys.unraisablehook

  def without_closed_loops(unraisable: Any) -> None:
    if 'Event loop is closed' not in str(unraisable.exc_value):
      hook(unraisable)

  sys.unraisablehook = without_closed_loops
  logging.getLogger('asyncio').addFilter(_is_of_others)


def _is_of_others(record: logging.LogRecord) -> bool:
  """Whether asyncio speaks of a task that is not tensorstore's."""
  error = record.exc_info[1] if record.exc_info else None
  of_a_file = 'local file' in str(error)  # as all errors of tensorstore are
  return not (of_a_file and 'never retrieved' in record.getMessage())
