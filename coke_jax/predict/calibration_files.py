"""Reads and writes calibration.json, which is stored beside a model."""

import dataclasses
import os
import pathlib
from typing import Any

import jax

from coke_jax import errors
from coke_jax.data import user_paths
from coke_jax.predict.jobs import calibrate
from coke_jax.storage import checksums, json_files

NAME = 'calibration.json'
FORMAT = 1


class CalibrationError(errors.CokeError, ValueError):
  """A file calibration.json that is damaged or has another format."""


def write(
  folder: str | os.PathLike[str],
  calibration: calibrate.Calibration,
  params: Any,
) -> pathlib.Path:
  """Writes a calibration with a checksum of the model's parameters.

  Args:
    folder: an existing folder.
    calibration: the calibration.
    params: the parameters of the model, with all entity embeddings.

  Returns:
    The path of the file.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  path = user_paths.expand(folder) / NAME
  content = {
    'format': FORMAT,
    'parameters_sha256': _checksum(params),
    **dataclasses.asdict(calibration),
  }
  json_files.write_json(path, content)
  return path


def read(
  folder: str | os.PathLike[str], params: Any
) -> calibrate.Calibration | None:
  """Reads the calibration of a model.

  Args:
    folder: the folder of the model.
    params: as in `write`.

  Returns:
    The calibration. None if there is no file, or if the file was written for
    other parameters.

  Raises:
    CalibrationError: the file is damaged or has another format.
  """
  path = user_paths.expand(folder) / NAME
  if not path.is_file():
    return None
  content = json_files.read_json(path)
  try:
    if content['format'] != FORMAT:
      raise ValueError(f'its format is {content["format"]!r}, not {FORMAT}')
    found = calibrate.Calibration(
      str(content['split']),
      tuple(map(float, content['lower'])),
      tuple(map(int, content['correct'])),
      tuple(map(int, content['candidates'])),
    )
    sizes = {len(found.lower), len(found.correct), len(found.candidates)}
    if len(sizes) != 1 or 0 in sizes or min(found.candidates) < 1:
      raise ValueError(
        'its lists are empty, have different lengths, or contain a step with 0 '
        'candidates'
      )
    expected = content['parameters_sha256']
  except (KeyError, TypeError, ValueError) as error:
    raise CalibrationError(
      f'{path}: cannot be used: {error}: expected a file that coke calibrate '
      'wrote'
    ) from error
  return found if expected == _checksum(params) else None


def _checksum(params: Any) -> str:
  return checksums.of_arrays(jax.device_get(params))
