"""Turns on JAX's persistent compilation cache."""

import pathlib

import jax

from coke_jax import errors


def use(folder: str) -> None:
  """Stores compiled programs in a folder, unless its name is empty.

  Raises:
    errors.PathError: the folder starts with `~` and the name of no user.
  """
  if folder:
    try:
      path = pathlib.Path(folder).expanduser()
    except RuntimeError as error:
      raise errors.PathError(
        f'config.compilation_cache_dir is {folder!r}: {error}'
      ) from None
    jax.config.update('jax_compilation_cache_dir', str(path))
