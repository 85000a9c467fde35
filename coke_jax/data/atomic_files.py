"""Atomic writing: a file appears complete or not at all.

`whole_file` writes to a temporary file beside the target and renames it;
`remove_unfinished` deletes the temporary files of killed processes; `writing`
adds the file's name to errors.
"""

import contextlib
import fcntl
import os
import pathlib
import re
import uuid
from collections.abc import Iterator

from coke_jax import errors

# The names of the temporary files of `whole_file`.
_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')


class WriteError(errors.CokeError, OSError):
  """A file cannot be written; the message names it and the reason."""


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Turns any OSError in a `with` block into an error that names the file.

  Args:
    path: the file or folder that the block writes.

  Raises:
    WriteError: the block raised an OSError, for example for a full disk.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(f'{path}: cannot be written: {error}') from error


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """Yields a temporary file that replaces `path` at the end of the block.

  If the block fails, the temporary file is deleted and `path` stays as it was.
  The temporary name is unique, so that several processes can write the same
  file at once. A killed process leaves its temporary file behind;
  `remove_unfinished` deletes it.

  Args:
    path: the file to write; it need not exist.

  Yields:
    The path of the empty temporary file, in the folder of `path`.

  Raises:
    WriteError: the block raised an OSError, or the file cannot be created or
      renamed.
  """
  unfinished = path.with_name(f'.{path.name}.{uuid.uuid4().hex}')
  try:
    with writing(path), unfinished.open('xb') as held:
      with contextlib.suppress(OSError):  # some file systems have no locks
        fcntl.flock(held, fcntl.LOCK_EX)
      yield unfinished
      os.fsync(held.fileno())
      unfinished.replace(path)
  finally:
    with contextlib.suppress(OSError):  # already renamed, or never created
      unfinished.unlink()


def remove_unfinished(folder: pathlib.Path) -> None:
  """Deletes the temporary files that killed processes left in a folder.

  Files of running processes are locked and stay.

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
