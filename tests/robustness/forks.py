"""Runs functions in forked processes, optionally with fewer privileges.

A forked process starts at once, because it need not import the modules again.
"""

import ctypes
import os
import pathlib
import resource
import shutil
import struct
import sys
import traceback
from collections.abc import Callable

# A function that returns the exit status of a process, or exits.
Work = Callable[[], int | None]

# Linux uses this number for version 3 of its capabilities.
_CAPABILITY_VERSION = 0x20080522


def fork(work: Work, output: int) -> int:
  """Starts a function in a forked process and returns the process id.

  Args:
    work: the function.
    output: the file descriptor to which the process writes its output.
  """
  sys.stdout.flush()
  child = os.fork()
  if child:
    return child
  status: int | str | None = 99
  try:
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = work()
  except SystemExit as end:
    status = end.code
  except BaseException:
    traceback.print_exc()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status if isinstance(status, int) else int(status is not None))


def forked(work: Work, log: pathlib.Path) -> int:
  """Runs a function in a forked process and returns its exit status.

  Output is passed through a pipe, because limits on file sizes do not apply to
  pipes.
  """
  read, write = os.pipe()
  child = fork(work, write)
  os.close(write)
  with log.open('wb') as out, os.fdopen(read, 'rb') as said:
    shutil.copyfileobj(said, out)
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def unprivileged(work: Work) -> Work:
  """Returns a function that drops the capabilities of root and calls `work`.

  On Linux, root without capabilities cannot write read-only files. The user
  remains root, because another user may have no access to the modules.
  """

  def run() -> int | None:
    if os.getuid() == 0:
      header = struct.pack('=Ii', _CAPABILITY_VERSION, 0)
      # The effective, permitted and inheritable capabilities have 64 bits each.
      none = bytes(24)
      libc = ctypes.CDLL(None, use_errno=True)
      if libc.capset(ctypes.create_string_buffer(header), none):
        raise OSError(ctypes.get_errno(), 'capset failed')
    return work()

  return run


def with_small_files(work: Work, most_bytes: int) -> Work:
  """Returns a function that limits the size of files and calls `work`.

  The limit has the effect of a full disk.
  """

  def run() -> int | None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return work()

  return run
