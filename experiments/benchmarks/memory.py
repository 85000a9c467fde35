"""Measures the memory of processes, in bytes.

On systems other than Linux, `peak` returns the peak since the start of the
process.
"""

import contextlib
import pathlib
import resource
import sys

_RESET = pathlib.Path('/proc/self/clear_refs')


class Growth:
  """Measures the growth of resident memory since this object was created."""

  def __init__(self) -> None:
    self.restart()
    self._before = resident('self')

  def restart(self) -> None:
    """Sets the peak to the current memory."""
    with contextlib.suppress(OSError):  # The file only exists on Linux.
      _RESET.write_text('5')

  def peak(self) -> int:
    """Returns the peak since `restart`, minus the memory before `__init__`."""
    if most := resident('self', 'VmHWM'):
      return most - self._before
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most * (1 if sys.platform == 'darwin' else 1024)


def resident(process: int | str, field: str = 'VmRSS') -> int:
  """Returns the memory of a process, or 0 if it is not in /proc.

  Args:
    process: the id of the process, or `self`.
    field: the name of the number in /proc.
  """
  try:
    text = pathlib.Path(f'/proc/{process}/status').read_text(encoding='utf-8')
  except OSError:
    return 0
  return 1024 * int(text.partition(f'{field}:')[2].split()[0])  # from KiB
