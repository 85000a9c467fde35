"""A small process that prints why its parent process was aborted.

If several processes train together and process 0 is killed, JAX aborts all
other processes at once, before they can print a message. So each of the other
processes starts a guard process, which survives and prints the message.
"""

import contextlib
import subprocess
import sys

# Before a normal end, the parent sends a byte. If the parent ends without
# sending a byte, the guard tests whether the coordinator, JAX's service in
# process 0, still exists.
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
  """Starts and ends the guard process of this process."""

  def __init__(self, coordinator: str, message: str):
    """Starts the guard process.

    Args:
      coordinator: address and port of the coordinator in process 0.
      message: the text to print if this process ends without a call of
        `dismiss` and the coordinator no longer exists.
    """
    self._process = subprocess.Popen(
      [sys.executable, '-E', '-S', '-c', _PROGRAM, coordinator, message],
      stdin=subprocess.PIPE,
      start_new_session=True,
    )

  def dismiss(self) -> None:
    """Ends the guard process without a message."""
    with contextlib.suppress(OSError, ValueError):
      assert self._process.stdin is not None
      self._process.stdin.write(b'.')
      self._process.stdin.close()
