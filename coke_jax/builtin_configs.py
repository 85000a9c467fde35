"""Finds the config files that ship with the package, and loads config files.

In a clone, the config files are in `configs/`. An installed package contains
copies in `coke_jax/configs/`; see `setup.py`.
"""

import ast
import os
import pathlib
import runpy

import ml_collections

from coke_jax import config as config_lib
from coke_jax import errors
from coke_jax.data import user_paths, vocabulary

_PACKAGE = pathlib.Path(__file__).resolve().parent
_FOLDERS = (_PACKAGE / 'configs', _PACKAGE.parent / 'configs')


def names() -> list[str]:
  """Returns the names of all built-in configs, such as `countries`, sorted."""
  return sorted(path.stem for path in folder().glob('*.py'))


def folder() -> pathlib.Path:
  """Returns the folder of the built-in config files."""
  return next(filter(pathlib.Path.is_dir, _FOLDERS), _FOLDERS[0])


def path(name: str) -> pathlib.Path | None:
  """Returns the file of a built-in config, or None for any other name."""
  return folder() / f'{name}.py' if name in names() else None


def load(given: str | os.PathLike[str]) -> ml_collections.ConfigDict:
  """Returns the settings of a built-in config or of a config file.

  Args:
    given: the name of a built-in config, or the path of a Python file with a
      function `get_config`.

  Raises:
    config.ConfigError: there is no such config or file, or `get_config` fails
      or returns no ConfigDict.
    errors.CokeError: the path is not valid, or the file raised this error.
  """
  file = path(str(given)) or user_paths.expand(given, 'config')
  if not user_paths.is_file(file):
    near = closest(str(given))
    hint = f' (did you mean {" or ".join(map(repr, near))}?)' if near else ''
    raise config_lib.ConfigError(
      f'config is {str(given)!r}: no such file: expected a file with '
      f'get_config(), or the name of a built-in config{hint}: '
      f'{", ".join(names())}'
    )
  try:
    made = runpy.run_path(str(file))['get_config']()
  except errors.CokeError:
    raise
  except Exception as error:  # The file can raise any error.
    raise config_lib.ConfigError(
      f'{file}: cannot be read: {type(error).__name__}: {error}: expected a '
      'Python file with a function get_config() without arguments'
    ) from error
  if not isinstance(made, ml_collections.ConfigDict):
    raise config_lib.ConfigError(
      f'{file}: get_config() returned {type(made).__name__}: expected a '
      'ConfigDict of ml_collections'
    )
  return made


def closest(name: str) -> list[str]:
  """Returns the names of the built-in configs that are similar to a name.

  Args:
    name: a name or a path. The folder and the suffix of a path are ignored.

  Returns:
    At most two names, the most similar name first.
  """
  return vocabulary.closest(pathlib.PurePath(name).stem, names(), 2)


def summary(name: str) -> str:
  """Returns the first docstring line of a built-in config."""
  text = (folder() / f'{name}.py').read_text(encoding='utf-8')
  return (ast.get_docstring(ast.parse(text)) or '').partition('\n')[0]
