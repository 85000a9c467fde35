"""Measures the memory of this process, in bytes.

On systems other than Linux, `peak` returns the peak since the start of the
process.
"""

import contextlib
import pathlib
import resource
import sys

_STATUS = pathlib.Path('/proc/self/status')
_RESET = pathlib.Path('/proc/self/clear_refs')


class Growth:
  """Measures the growth of resident memory since this object was created."""

  def __init__(self) -> None:
    self.restart()
    self._before = _status('VmRSS')

  def restart(self) -> None:
    """Sets the peak to the current memory."""
    with contextlib.suppress(OSError):  # The file only exists on Linux.
      _RESET.write_text('5')

  def peak(self) -> int:
    """Returns the peak since `restart`, minus the memory before `__init__`."""
    if _STATUS.exists():
      return _status('VmHWM') - self._before
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == 'darwin' else 1024)


def _status(field: str) -> int:
  if not _STATUS.exists():
    return 0
  for line in _STATUS.read_text(encoding='utf-8').splitlines():
    name, _, value = line.partition(':')
    if name == field:
      return int(value.split()[0]) * 1024  # The file contains KiB.
  return 0
