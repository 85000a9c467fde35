"""Imports the libraries that only some formats need."""

import importlib
import pathlib
from typing import Any

from coke_jax.data import text_files


def load(module: str, path: pathlib.Path) -> Any:
  """Imports a module of the extra `formats`.

  Args:
    module: the full name of the module.
    path: the file to read, for the error message.

  Raises:
    text_files.DataError: the library is not installed.
  """
  try:
    return importlib.import_module(module)
  except ImportError as error:
    library = module.partition('.')[0]
    raise text_files.DataError(
      f'{path}: {library} is not installed: expected the packages of '
      "pip install 'coke_jax[formats]'"
    ) from error
