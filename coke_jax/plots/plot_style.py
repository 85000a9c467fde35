"""Imports the plotting libraries, sets the style, and saves pictures."""

import contextlib
import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

from coke_jax import config as config_lib
from coke_jax.data import atomic_files
from coke_jax.storage import json_files

# Palette of Okabe and Ito (2008), which is also suitable for colour-blind
# readers. Yellow is left out, because it is faint on white.
COLORS = (
  '#0072B2',  # blue
  '#D55E00',  # vermilion
  '#009E73',  # bluish green
  '#CC79A7',  # reddish purple
  '#E69F00',  # orange
  '#56B4E9',  # sky blue
  '#000000',  # black
)
GREY = '#BBBBBB'

_DOTS_PER_INCH = 160
_SETTINGS = {
  'font.size': 10,
  'axes.titlesize': 12,
  'axes.spines.top': False,
  'axes.spines.right': False,
  'legend.frameon': False,
  'savefig.facecolor': 'white',
  'svg.fonttype': 'path',  # Letters are shapes, which need no fonts.
  'svg.hashsalt': 'coke_jax',  # Equal figures have equal ids.
}


def import_extra(module: str) -> Any:
  """Imports a module of the optional dependencies `plots`.

  Args:
    module: the full name of the module, such as `matplotlib.figure`.

  Raises:
    config.ConfigError: the module is not installed.
  """
  try:
    return importlib.import_module(module)
  except ImportError:
    raise config_lib.ConfigError(
      f"pictures need {module.partition('.')[0]}: pip install '.[plots]'"
    ) from None


@contextlib.contextmanager
def style() -> Iterator[None]:
  """Applies the package's matplotlib settings within a `with` block.

  Raises:
    config.ConfigError: matplotlib is not installed.
  """
  with import_extra('matplotlib.style').context(['default', _SETTINGS]):
    yield


def new_figure(width: float, height: float) -> Any:
  """Returns an empty matplotlib figure, without pyplot.

  Args:
    width: the width in inches.
    height: the height in inches.

  Raises:
    config.ConfigError: matplotlib is not installed.
  """
  return import_extra('matplotlib.figure').Figure(
    figsize=(width, height), layout='constrained'
  )


def save(
  figure: Any, numbers: dict[str, Any], folder: pathlib.Path, name: str
) -> list[pathlib.Path]:
  """Writes a figure as PNG and SVG, and its numbers as JSON.

  Args:
    figure: the matplotlib figure.
    numbers: the numbers that the figure shows.
    folder: the folder of the files; created if it is missing.
    name: the file name without a suffix.

  Returns:
    The three files `<folder>/<name>.png`, `.svg` and `.json`.

  Raises:
    atomic_files.WriteError: a file cannot be written.
  """
  with atomic_files.writing(folder):
    folder.mkdir(parents=True, exist_ok=True)
  picture, vector, data = (
    folder / f'{name}{suffix}' for suffix in ('.png', '.svg', '.json')
  )
  with atomic_files.whole_file(picture) as path:
    figure.savefig(path, format='png', dpi=_DOTS_PER_INCH)
  with atomic_files.whole_file(vector) as path:
    # Leave out the date, so that the same figure is always the same file.
    figure.savefig(path, format='svg', metadata={'Date': None})
  json_files.write_json(data, numbers)
  return [picture, vector, data]


def plain(text: str) -> str:
  """Escapes text so that matplotlib does not parse it as a formula."""
  return text.replace('$', r'\$')
