"""How pictures look and how they are saved; the libraries that draw them."""

import contextlib
import importlib
import pathlib
from collections.abc import Iterator
from typing import Any

from coke_jax import config as config_lib
from coke_jax.data import atomic_files
from coke_jax.storage import workdir

# Okabe and Ito (2008): colours that people with any colour vision tell apart,
# without their yellow, which is faint on white.
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
_SETTINGS = {
  'font.size': 10,
  'axes.titlesize': 12,
  'axes.spines.top': False,
  'axes.spines.right': False,
  'legend.frameon': False,
  'savefig.facecolor': 'white',
  'svg.fonttype': 'path',  # looks the same without the fonts
  'svg.hashsalt': 'coke_jax',  # instead of random names within the file
}


_DOTS_PER_INCH = 160


def import_extra(module: str) -> Any:
  """A module of the extra `plots`.

  Raises:
    config.ConfigError: it is not installed.
  """
  try:
    return importlib.import_module(module)
  except ImportError:
    raise config_lib.ConfigError(
      f"pictures need {module.partition('.')[0]}: pip install '.[plots]'"
    ) from None


@contextlib.contextmanager
def style() -> Iterator[None]:
  """Our settings instead of the user's, for the figures of a `with` block."""
  with import_extra('matplotlib.style').context(['default', _SETTINGS]):
    yield


def new_figure(width: float, height: float) -> Any:
  """An empty matplotlib figure of that many inches, with no global state."""
  return import_extra('matplotlib.figure').Figure(
    figsize=(width, height), layout='constrained'
  )


def save(
  figure: Any, numbers: dict[str, Any], folder: pathlib.Path, name: str
) -> list[pathlib.Path]:
  """Writes a figure as PNG and SVG, and what it shows as JSON.

  Returns:
    `<folder>/<name>` with .png, .svg and .json.

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
    # Without the date, so that the same picture gives the same file.
    figure.savefig(path, format='svg', metadata={'Date': None})
  workdir.write_json(data, numbers)
  return [picture, vector, data]


def plain(text: str) -> str:
  """Text that matplotlib does not take for a formula."""
  return text.replace('$', r'\$')
