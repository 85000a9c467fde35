"""Imports orbax, and hides log messages about errors that orbax also raises.

If a checkpoint cannot be read or written, `checkpoints` raises one error.
Without this module, orbax would also print a dozen tracebacks.
"""

import contextlib
import functools
import logging
import sys
from collections.abc import Iterator
from typing import Any


@functools.cache
def import_orbax() -> Any:
  """Imports orbax on first use. Loading an exported model needs no orbax."""
  import orbax.checkpoint

  _silence_late_errors()
  return orbax.checkpoint


def process_options(num_processes: int) -> dict[str, Any]:
  """Returns options for a `CheckpointManager` that only process 0 creates.

  If there are several processes, orbax would otherwise wait for all of them.
  """
  if num_processes == 1:
    return {}
  options = import_orbax().options
  only = options.MultiprocessingOptions(primary_host=0, active_processes={0})
  return {'multiprocessing_options': only}


@contextlib.contextmanager
def silenced() -> Iterator[None]:
  """Hides the log messages of orbax. Every thread of orbax logs its error."""
  logger = logging.getLogger('absl')
  level = logger.level
  logger.setLevel(logging.CRITICAL)
  try:
    yield
  finally:
    logger.setLevel(level)


def reason(error: Exception) -> str:
  """Shortens an error of orbax, or of a library below it, to one line."""
  text = (str(error).splitlines() or [''])[0]
  # The start of a long text names the file, and the end states the reason.
  if len(text) > 400:
    text = f'{text[:200]} ... {text[-200:]}'
  return f'{type(error).__name__}: {text}'


def _silence_late_errors() -> None:
  """Hides errors of reads that fail after the first error was raised.

  Orbax reads all arrays concurrently, raises the first error and closes its
  event loop. If a later read fails, asyncio logs 'exception was never
  retrieved', or Python prints 'Event loop is closed'.
  """
  hook = sys.unraisablehook

  def without_closed_loops(unraisable: Any) -> None:
    if 'Event loop is closed' not in str(unraisable.exc_value):
      hook(unraisable)

  sys.unraisablehook = without_closed_loops
  logging.getLogger('absl').addFilter(_is_not_of_thread)
  logging.getLogger('asyncio').addFilter(_is_not_tensorstore)


def _is_not_of_thread(record: logging.LogRecord) -> bool:
  """Returns False for orbax's messages about errors in its threads.

  A thread can log its error after `silenced` has ended.
  """
  return '_SignalingThread' not in str(record.msg)


def _is_not_tensorstore(record: logging.LogRecord) -> bool:
  """Returns False for asyncio's messages about failed reads of tensorstore."""
  error = record.exc_info[1] if record.exc_info else None
  # All errors of tensorstore about files contain these words.
  about_file = 'local file' in str(error)
  return not (about_file and 'never retrieved' in record.getMessage())
