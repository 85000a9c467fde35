"""Reads and writes the metadata of a checkpoint, including their checksum.

The metadata are a JSON object in the file `metadata/metadata`, where orbax
expects them.
"""

import json
import pathlib
from typing import Any

from coke_jax import errors
from coke_jax.data import atomic_files
from coke_jax.storage import checksums


class MetadataError(errors.CokeError, RuntimeError):
  """The metadata of a checkpoint are damaged."""


def path_in(folder: pathlib.Path) -> pathlib.Path:
  """Returns the path of the metadata of the checkpoint in a folder."""
  return folder / 'metadata' / 'metadata'


def signed(metadata: dict[str, Any]) -> dict[str, Any]:
  """Returns a copy of metadata with their checksum."""
  return {**metadata, 'sha256': checksums.of_json(metadata)}


def write(folder: pathlib.Path, metadata: dict[str, Any]) -> None:
  """Writes or replaces the metadata of the checkpoint in a folder.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  with atomic_files.whole_file(path_in(folder)) as unfinished:
    text = json.dumps(signed(metadata))
    unfinished.write_text(text, encoding='utf-8')


def read(folder: pathlib.Path) -> dict[str, Any]:
  """Reads and verifies the metadata, and returns them without their checksum.

  Raises:
    MetadataError: the checksum does not match.
    OSError: the file cannot be read.
    ValueError: the file is not JSON.
  """
  path = path_in(folder)
  metadata = dict(json.loads(path.read_text(encoding='utf-8')))
  if metadata.pop('sha256', None) != checksums.of_json(metadata):
    raise MetadataError(f'{path}: is damaged: its checksum does not match')
  return metadata
