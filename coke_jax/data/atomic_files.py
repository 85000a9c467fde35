"""Files written whole or not at all."""

import contextlib
import fcntl
import os
import pathlib
import re
import uuid
from collections.abc import Iterator

from coke_jax import errors

_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')  # see `whole_file`


class WriteError(errors.CokeError, OSError):
  """A file that cannot be written, with its name and the reason."""


@contextlib.contextmanager
def writing(path: pathlib.Path) -> Iterator[None]:
  """Names the file that is written in a `with` statement if that fails.

  Raises:
    WriteError: for any OSError, such as of a full disk.
  """
  try:
    yield
  except OSError as error:
    raise WriteError(f'{path}: cannot be written: {error}') from error


@contextlib.contextmanager
def whole_file(path: pathlib.Path) -> Iterator[pathlib.Path]:
  """A file to write beside `path`, which takes its place when all is well.

  Its name is its own, so that several processes can do the same at once. What
  was at `path` before stays until then, and stays if the block fails. A kill
  leaves the unfinished file behind, for `remove_unfinished`.

  Raises:
    WriteError: it cannot be written.
  """
  unfinished = path.with_name(f'.{path.name}.{uuid.uuid4().hex}')
  try:
    with writing(path), unfinished.open('xb') as held:
      with contextlib.suppress(OSError):  # some network file systems have none
        fcntl.flock(held, fcntl.LOCK_EX)
      yield unfinished
      os.fsync(held.fileno())
      unfinished.replace(path)
  finally:
    with contextlib.suppress(OSError):  # it may never have been there
      unfinished.unlink()


def remove_unfinished(folder: pathlib.Path) -> None:
  """Deletes what kills have left of `whole_file`, in one folder.

  A process that is still writing holds a lock, and keeps its file.
  """
  for path in list(folder.iterdir()):
    if _UNFINISHED.fullmatch(path.name):
      with contextlib.suppress(OSError), path.open('rb') as left:
        fcntl.flock(left, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
