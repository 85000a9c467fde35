"""Atomic writing: a file is written completely or not at all.

`whole_file` writes to a temporary file in the folder of the target and renames
it. `remove_unfinished` deletes the temporary files of killed processes.
`writing` adds the name of the file to error messages.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import uuid
from collections.abc import Iterator

from coke_jax import errors

# Matches the names of the temporary files of `whole_file`.
_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')


class WriteError(errors.CokeError, OSError):
  """A file cannot be written. The message states the file and the reason."""


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Replaces an OSError in a `with` block by an error with the file name.

  Args:
    path: the file or folder that the block writes.

  Raises:
    WriteError: the block raised an OSError, for example because the disk is
      full.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(f'{path}: cannot be written: {error}') from error


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary file that replaces `path` at the end of the block.

  If the block raises an error, the temporary file is deleted and `path` is not
  changed. Several processes can write the same file at once, because the
  temporary names are unique. If the process is killed, the temporary file
  remains until `remove_unfinished` deletes it.

  Args:
    path: the file to write. It need not exist.

  Yields:
    The path of the empty temporary file, in the folder of `path`.

  Raises:
    WriteError: the block raised an OSError, or the file cannot be created or
      renamed.
  """
  unfinished = path.with_name(f'.{path.name}.{uuid.uuid4().hex}')
  try:
    with writing(path), unfinished.open('xb') as held:
      with contextlib.suppress(OSError):  # Some file systems have no locks.
        fcntl.flock(held, fcntl.LOCK_EX)
      yield unfinished
      os.fsync(held.fileno())
      unfinished.replace(path)
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
