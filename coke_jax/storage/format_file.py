"""Writes and checks format.json, the format number of a work folder."""

import pathlib

from coke_jax import version
from coke_jax.storage import json_files

FORMAT = 2  # No other format can be read.
_NAME = 'format.json'


def write(folder: pathlib.Path) -> None:
  """Writes format.json to a work folder.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  content = {'format': FORMAT, 'coke_jax': version.__version__}
  json_files.write_json(folder / _NAME, content)


def check(folder: pathlib.Path) -> None:
  """Checks that a work folder has the format that this version reads.

  Raises:
    json_files.WorkdirError: format.json is missing or cannot be read, or states
      another format than FORMAT.
  """
  path = folder / _NAME
  if not path.exists():
    raise json_files.WorkdirError(
      f'{path}: is missing: the folder is incomplete, or was written by '
      f'coke_jax before 0.2.0: expected a work folder of format {FORMAT}; '
      'restore the file, or train again in another folder'
    )
  found = json_files.read_json(path)
  written = found if isinstance(found, dict) else {'format': found}
  if written.get('format') != FORMAT:
    raise json_files.WorkdirError(
      f'{folder}: is a work folder of format {written.get("format")!r} '
      f'(coke_jax {written.get("coke_jax", "unknown")}): expected format '
      f'{FORMAT} of coke_jax {version.__version__}; train again in another '
      'folder'
    )
