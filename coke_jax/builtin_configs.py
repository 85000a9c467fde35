"""Finds the config files that ship with the package.

In a clone, these are the files of `configs/`. An installed package contains
copies of them in its folder `configs`; see `setup.py`.
"""

import ast
import pathlib

from coke_jax.data import vocabulary

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


def closest(name: str) -> list[str]:
  """Returns the names of the built-in configs that are similar to a name.

  Args:
    name: a name, or the path of a file, whose name without suffix is compared.

  Returns:
    At most two names, the most similar name first.
  """
  return vocabulary.closest(pathlib.PurePath(name).stem, names(), 2)


def summary(name: str) -> str:
  """Returns the first docstring line of a built-in config.

  The line names the data set.
  """
  text = (folder() / f'{name}.py').read_text(encoding='utf-8')
  return (ast.get_docstring(ast.parse(text)) or '').partition('\n')[0]
