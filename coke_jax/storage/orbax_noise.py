"""Imports orbax, and silences what it logs of errors that it also raises.

A checkpoint that cannot be read or written is one error, which `checkpoints`
reports. Without this module, a dozen tracebacks are printed around it.
"""

import contextlib
import functools
import logging
import sys
from collections.abc import Iterator
from typing import Any


@functools.cache
def import_orbax() -> Any:
  """Imports orbax on first use, so that exported models load without it."""
  import orbax.checkpoint

  _silence_late_errors()
  return orbax.checkpoint


@contextlib.contextmanager
def silenced() -> Iterator[None]:
  """Keeps orbax from logging the errors of each of its threads."""
  logger = logging.getLogger('absl')
  level = logger.level
  logger.setLevel(logging.CRITICAL)
  try:
    yield
  finally:
    logger.setLevel(level)


def reason(error: Exception) -> str:
  """Returns an error of orbax or of a library below it as one line."""
  text = (str(error).splitlines() or [''])[0]
  if len(text) > 400:  # Orbax puts the file first and the reason last.
    text = f'{text[:200]} ... {text[-200:]}'
  return f'{type(error).__name__}: {text}'


def _silence_late_errors() -> None:
  """Hides errors of reads that are still running after the first one failed.

  Orbax reads all arrays concurrently, raises the first error and closes its
  event loop. The remaining errors end in tasks whose result is never fetched,
  which asyncio reports when they are collected, or in the closed event loop.
  """
  hook = sys.unraisablehook

  def without_closed_loops(unraisable: Any) -> None:
    if 'Event loop is closed' not in str(unraisable.exc_value):
      hook(unraisable)

  sys.unraisablehook = without_closed_loops
  logging.getLogger('asyncio').addFilter(_is_not_tensorstore)


def _is_not_tensorstore(record: logging.LogRecord) -> bool:
  """Returns whether a message of asyncio is about another library's task."""
  error = record.exc_info[1] if record.exc_info else None
  about_file = 'local file' in str(error)  # in all errors of tensorstore
  return not (about_file and 'never retrieved' in record.getMessage())
