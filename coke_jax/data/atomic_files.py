"""Atomic writing: a file is written completely or not at all.

`whole_file` writes a temporary file and renames this file at the end.
`remove_unfinished` deletes the temporary files of killed processes. `writing`
adds the name of the file to error messages.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import stat
import uuid
from collections.abc import Iterator

from coke_jax import errors

# Matches the names of the temporary files of `whole_file`.
_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')


class WriteError(errors.CokeError, OSError):
  """A file cannot be written. The message states the file and the reason."""


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Adds the name of a file to an OSError in a `with` block.

  Args:
    path: the file or folder that the block writes.

  Raises:
    BrokenPipeError: the file is a pipe whose reader has ended.
    WriteError: the block raised another OSError, for example because the disk
      is full.
  """
  try:
    yield
  except BrokenPipeError:
    raise
  except OSError as error:
    raise WriteError(f'{path}: cannot be written: {error}') from error


def follow_links(path: pathlib.Path) -> pathlib.Path:
  """Returns the path at the end of a chain of symbolic links.

  Links in `/proc` are not followed, because their targets, such as `pipe:[42]`,
  need not be files. `/dev/stdout` leads to such a link.

  Args:
    path: the path. It need not exist.

  Raises:
    OSError: the links form a loop.
  """
  with contextlib.suppress(FileNotFoundError):
    path.stat()
  while path.is_symlink() and not _is_open_file(path):
    path = path.parent / path.readlink()
  return path


def _is_open_file(link: pathlib.Path) -> bool:
  """Returns whether a link is in /proc, such as /proc/self/fd/1."""
  return os.path.realpath(link.parent).startswith('/proc/')


def _can_be_replaced(target: pathlib.Path) -> bool:
  """Returns False for links, devices and pipes, otherwise True."""
  try:
    mode = target.stat().st_mode
  except FileNotFoundError:
    return not target.is_symlink()
  return not target.is_symlink() and (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary file that replaces `path` at the end of the block.

  If the block raises an error, the temporary file is deleted and `path` is not
  changed. Several processes can write the same file at once, because the
  temporary names are unique. If the process is killed, the temporary file
  remains until `remove_unfinished` deletes it.

  If `path` is a symbolic link, its target is replaced, and the link stays. A
  device or pipe is never replaced: the block writes it directly.

  Args:
    path: the file to write. It need not exist.

  Yields:
    The path of the empty temporary file, or of the device or pipe. The block
    may open this path only once.

  Raises:
    BrokenPipeError: the path is a pipe whose reader has ended.
    WriteError: the block raised another OSError, or the file cannot be created
      or renamed.
  """
  with writing(path):
    target = follow_links(path)
    direct = not _can_be_replaced(target)
  if direct:
    with writing(path):
      yield target
    return
  unfinished = target.with_name(f'.{target.name}.{uuid.uuid4().hex}')
  try:
    with writing(path), unfinished.open('xb') as held:
      with contextlib.suppress(OSError):  # Some file systems have no locks.
        fcntl.flock(held, fcntl.LOCK_EX)
      yield unfinished
      os.fsync(held.fileno())
      unfinished.replace(target)
  finally:
    # The file does not exist if it was renamed, or could not be created.
    with contextlib.suppress(OSError):
      unfinished.unlink()


def remove_unfinished(folder: pathlib.Path) -> None:
  """Deletes the temporary files that killed processes left in a folder.

  The temporary files of running processes are locked and not deleted.

  Args:
    folder: the folder; subfolders are not searched.

  Raises:
    OSError: the folder cannot be listed.
  """
  for path in list(folder.iterdir()):
    if _UNFINISHED.fullmatch(path.name):
      with contextlib.suppress(OSError), path.open('rb') as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
