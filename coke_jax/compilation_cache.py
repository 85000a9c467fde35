"""Turns on JAX's persistent compilation cache."""

import pathlib

import jax

from coke_jax import errors


def use(folder: str) -> None:
  """Makes JAX store compiled programs in a folder.

  Args:
    folder: the path of the folder. If it is empty, no program is stored.

  Raises:
    errors.PathError: the path starts with `~`, and the home folder is unknown.
  """
  if folder:
    try:
      path = pathlib.Path(folder).expanduser()
    except RuntimeError as error:
      raise errors.PathError(
        f'config.compilation_cache_dir is {folder!r}: {error}'
      ) from None
    jax.config.update('jax_compilation_cache_dir', str(path))
