"""Checks the paths that users give."""

import os
import pathlib

from coke_jax import errors
from coke_jax.data import text_files


def expand(path: str | os.PathLike[str], name: str = '') -> pathlib.Path:
  """Replaces `~` and `~user` at the start of a path by the home folder.

  Args:
    path: the path.
    name: the name of the argument in error messages. Default: none.

  Raises:
    errors.PathError: the path contains NUL or a character that no file name can
      contain, or the home folder is unknown.
    TypeError: the argument is not a path.
  """
  before = f'{name} is ' if name else ''
  if not isinstance(path, str | os.PathLike) or isinstance(
    os.fspath(path), bytes
  ):
    raise TypeError(
      f'{before}{text_files.show_value(path)}: expected a path, which is a str '
      'or an os.PathLike'
    )
  shown = before + text_files.show_line(os.fspath(path))
  if '\0' in os.fspath(path):
    raise errors.PathError(f'{shown} contains NUL: expected a path')
  try:
    os.fsencode(path)
  except UnicodeEncodeError as error:
    character = ascii(error.object[error.start])
    raise errors.PathError(
      f'{shown} contains {character}, which is half of a character: expected a '
      'path'
    ) from None
  try:
    return pathlib.Path(path).expanduser()
  except RuntimeError:
    raise errors.PathError(
      f'{shown}: no such user: expected a path, or ~ and the name of a user'
    ) from None


def is_file(path: pathlib.Path) -> bool:
  """Returns whether a path is an existing file.

  Raises:
    errors.PathError: the path cannot be checked, for example because it is too
      long.
  """
  try:
    return path.is_file()
  except OSError as error:
    raise errors.PathError(
      f'{text_files.show_line(str(path))}: cannot be read: {error.strerror}'
    ) from error
