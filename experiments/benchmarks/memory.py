"""Measures the memory of this process, in bytes.

Outside Linux, only the peak since the start is known.
"""

import contextlib
import pathlib
import resource
import sys

_STATUS = pathlib.Path('/proc/self/status')
_RESET = pathlib.Path('/proc/self/clear_refs')


def resident() -> int:
  """Returns the current resident memory; 0 if not on Linux."""
  return _status('VmRSS')


def peak() -> int:
  """Returns the peak since `reset_peak`, or since the start of the process."""
  if _STATUS.exists():
    return _status('VmHWM')
  most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return most * (1 if sys.platform == 'darwin' else 1024)


def reset_peak() -> None:
  """Sets the peak to the current memory; does nothing if not on Linux."""
  with contextlib.suppress(OSError):
    _RESET.write_text('5')


def _status(field: str) -> int:
  if not _STATUS.exists():
    return 0
  for line in _STATUS.read_text(encoding='utf-8').splitlines():
    name, _, value = line.partition(':')
    if name == field:
      return int(value.split()[0]) * 1024  # the file counts KiB
  return 0
