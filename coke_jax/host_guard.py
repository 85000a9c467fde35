"""A small process that prints why its parent process was aborted.

If process 0 of several is killed, JAX aborts all other processes at once,
without a chance to print a message. So each of them has a guard process, which
survives.
"""

import contextlib
import subprocess
import sys

# Before a normal end, the parent sends a byte. If no byte arrives, the guard
# tests whether the coordinator in process 0 still exists.
_PROGRAM = """
import socket, sys
if not sys.stdin.buffer.read(1):
  host, port = sys.argv[1].rsplit(':', 1)
  try:
    socket.create_connection((host.strip('[]'), int(port)), 10).close()
  except OSError:
    sys.stderr.write(sys.argv[2] + chr(10))
"""


class Guard:
  """The guard process of this process."""

  def __init__(self, coordinator: str, message: str):
    """Starts the guard process.

    Args:
      coordinator: address and port of the coordinator in process 0.
      message: what to print if this process ends without `dismiss` and the
        coordinator no longer exists.
    """
    self._process = subprocess.Popen(
      [sys.executable, '-E', '-S', '-c', _PROGRAM, coordinator, message],
      stdin=subprocess.PIPE,
      start_new_session=True,
    )

  def dismiss(self) -> None:
    """Ends the guard process. It prints nothing."""
    with contextlib.suppress(OSError, ValueError):
      assert self._process.stdin is not None
      self._process.stdin.write(b'.')
      self._process.stdin.close()
