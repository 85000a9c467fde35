"""Reads and writes the JSON files of work folders and exported models."""

import json
import pathlib
from typing import Any

import ml_collections

from coke_jax import config as config_lib
from coke_jax import errors
from coke_jax.data import atomic_files
from coke_jax.data import vocabulary as vocabulary_lib


class WorkdirError(errors.CokeError, RuntimeError):
  """A work folder or a file in it is missing, damaged or unsuitable."""


def read_config(path: pathlib.Path) -> ml_collections.ConfigDict:
  """Reads the settings in a config.json.

  Raises:
    WorkdirError: the file is missing or unreadable, or a setting is invalid.
  """
  try:
    return config_lib.from_dict(read_json(path))
  except ValueError as error:
    raise WorkdirError(f'{path}: {error}') from error


def read_vocabulary(path: pathlib.Path) -> vocabulary_lib.Vocabulary:
  """Reads the labels in a vocabulary.json.

  Raises:
    WorkdirError: the file is missing, unreadable or malformed.
  """
  labels = read_json(path)
  for name in ('entities', 'relations'):
    names = labels.get(name) if isinstance(labels, dict) else None
    if not (
      isinstance(names, list)
      and all(isinstance(label, str) for label in names)
      and len(set(names)) == len(names)
    ):
      raise WorkdirError(
        f'{path}: expected "{name}" to be a list of distinct strings'
      )
  return vocabulary_lib.Vocabulary(
    tuple(labels['entities']), tuple(labels['relations'])
  )


def write_vocabulary(
  path: pathlib.Path, vocabulary: vocabulary_lib.Vocabulary
) -> None:
  """Writes the labels of a vocabulary for `read_vocabulary`.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  write_json(
    path,
    {'entities': vocabulary.entities, 'relations': vocabulary.relations},
  )


def read_json(path: pathlib.Path) -> Any:
  """Reads a JSON file.

  Raises:
    WorkdirError: the file is missing or unreadable.
  """
  try:
    return json.loads(path.read_text(encoding='utf-8'))
  except FileNotFoundError:
    raise WorkdirError(
      f'{path.parent}: no {path.name}: expected a folder written by training'
    ) from None
  except (OSError, ValueError, RecursionError) as error:
    raise WorkdirError(f'{path}: cannot be read: {error}') from error


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes an indented JSON file completely or not at all.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
  with atomic_files.whole_file(path) as temporary:
    temporary.write_text(text + '\n', encoding='utf-8')
