"""Prepares the standard streams, which can be missing, closed or full."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from typing import Any

from coke_jax.cli import flags
from coke_jax.data import atomic_files


class _StandardOutput(io.FileIO):
  """Writes to standard output, and names the stream in error messages."""

  def write(self, data: Any) -> int:
    """Writes bytes and returns their number."""
    with naming('standard output'):
      return super().write(data) or 0


class _StandardError(io.FileIO):
  """Writes to standard error.

  Drops text that cannot be written, for example because a disk is full.
  """

  def write(self, data: Any) -> int:
    """Writes bytes and returns their number."""
    try:
      return super().write(data) or 0
    except BrokenPipeError:
      raise
    except OSError:
      return len(data)


@contextlib.contextmanager
def naming(name: str) -> Iterator[None]:
  """Turns an OSError of a `with` block into a WriteError that states a name.

  Args:
    name: the name of the stream or file that the block writes.

  Raises:
    BrokenPipeError: the reader of the stream has ended.
    atomic_files.WriteError: the block raised another OSError.
  """
  try:
    yield
  except (BrokenPipeError, atomic_files.WriteError):
    raise
  except OSError as error:
    raise atomic_files.WriteError(
      f'{name}: cannot be written: {error}'
    ) from error


def on_terminal(output: str) -> bool:
  """Returns whether a terminal shows both the output and messages.

  Args:
    output: the value of --output.
  """
  if output != flags.STANDARD:
    return False
  return all(
    stream is not None and stream.isatty()
    for stream in (sys.stdout, sys.stderr)
  )


def prepare() -> None:
  """Replaces `sys.stdout` and `sys.stderr`, and opens missing descriptors.

  Characters that a stream cannot encode are written as backslash escapes. If
  standard error is closed or its disk is full, messages are dropped and the
  program continues. If the disk of standard output is full, the error message
  names standard output. If standard output is closed, `sys.stdout` stays None.
  """
  for descriptor in (0, 1, 2):
    try:
      os.fstat(descriptor)
    except OSError:
      # Otherwise the next opened file would get this descriptor. For example,
      # libraries that write to standard error would write into the file.
      os.open(os.devnull, os.O_RDWR)
  if sys.stdout is not None:
    sys.stdout.flush()
    sys.stdout = io.TextIOWrapper(
      io.BufferedWriter(_StandardOutput(1, 'w', closefd=False)),
      encoding=sys.stdout.encoding,
      errors='backslashreplace',
      line_buffering=sys.stdout.isatty(),
    )
  sys.stderr = io.TextIOWrapper(
    _StandardError(2, 'w', closefd=False),
    encoding=sys.stderr.encoding if sys.stderr else 'utf-8',
    errors='backslashreplace',
    line_buffering=True,
    write_through=True,
  )
