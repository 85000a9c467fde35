"""What a process takes of the machine's memory, in bytes.

Linux tells all of it; elsewhere only the peak since the start is known.
"""

import contextlib
import pathlib
import resource
import sys

_STATUS = pathlib.Path('/proc/self/status')
_RESET = pathlib.Path('/proc/self/clear_refs')


def resident() -> int:
  """What it takes now; 0 where the system does not tell."""
  return _status('VmRSS')


def peak() -> int:
  """The most it has taken since `reset_peak`, or since it started."""
  if _STATUS.exists():
    return _status('VmHWM')
  most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  return most * (1 if sys.platform == 'darwin' else 1024)


def reset_peak() -> None:
  """Lets `peak` begin anew, where the system can."""
  with contextlib.suppress(OSError):  # not Linux: it stays that of the start
    _RESET.write_text('5')


def _status(field: str) -> int:
  if not _STATUS.exists():
    return 0
  for line in _STATUS.read_text(encoding='utf-8').splitlines():
    name, _, value = line.partition(':')
    if name == field:
      return int(value.split()[0]) * 1024  # the file counts KiB
  return 0
