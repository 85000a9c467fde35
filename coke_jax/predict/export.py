"""Exports trained models to folders of plain files, and reads such folders.

model.safetensors  the parameters of the best checkpoint
data.safetensors   train, valid and test as ids
config.json        the settings
vocabulary.json    entity and relation labels, in the order of their ids
results.json       test metrics of this checkpoint, if they were computed
calibration.json   the calibration of this checkpoint, if there is one
SHA256SUMS         the checksums of the other files

None of these formats can contain code, and reading them does not need orbax.
The names of parameters are paths in the tree of parameters, such as
`blocks_0/attention/query_key_value/kernel`.
"""

import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Mapping
from typing import Any

import flax.traverse_util
import jax
import ml_collections
import numpy as np
import safetensors
import safetensors.numpy

from coke_jax import errors, tasks, version
from coke_jax.data import arrays, atomic_files, user_paths
from coke_jax.model import parameters
from coke_jax.predict import calibration_files
from coke_jax.storage import checksums, json_files
from coke_jax.storage import results as results_lib
from coke_jax.storage import workdir as workdir_lib

FORMAT = 1  # Format of the folder. `read` accepts no other format.

_MODEL = 'model.safetensors'
_DATA = 'data.safetensors'
_CONFIG = 'config.json'
_VOCABULARY = 'vocabulary.json'
_RESULTS = 'results.json'
# All metadata is stored under one key, because safetensors writes several keys
# in random order, and all exports of a model should have identical files.
_METADATA = 'coke_jax'
_MAX_NAMES_SHOWN = 3  # maximum number of names in an error message

Exported = tuple[ml_collections.ConfigDict, arrays.DataSet, Any, int]


class ExportError(errors.CokeError, RuntimeError):
  """A folder that is not a complete exported model, or a target with files."""


def is_export(folder: str | os.PathLike[str]) -> bool:
  """Returns whether a folder is an exported model, possibly a damaged one."""
  root = user_paths.expand(folder)
  names = (_MODEL, checksums.NAME)
  return any(user_paths.is_file(root / name) for name in names)


def write(
  folder: str | os.PathLike[str], target: str | os.PathLike[str]
) -> int:
  """Exports the best checkpoint of a work folder.

  The target is written completely or not at all. The files are first written to
  a temporary folder next to the target and read as a check. Then the temporary
  folder is renamed.

  Args:
    folder: a work folder.
    target: a folder that is empty or does not exist.

  Returns:
    The step of the checkpoint.

  Raises:
    ExportError: the target is not empty.
    atomic_files.WriteError: the target cannot be written.
    workdir.WorkdirError: the work folder contains no run, or a damaged run.
    checkpoints.CheckpointError: there is no usable checkpoint.
    calibration_files.CalibrationError: calibration.json is damaged.
  """
  goal = user_paths.expand(target).absolute()
  if goal.exists() and not (goal.is_dir() and not any(goal.iterdir())):
    raise ExportError(
      f'{goal}: exists already: expected an empty folder or a new name. '
      'Nothing was changed'
    )
  workdir = workdir_lib.Workdir(folder)
  config, data = workdir.config(), workdir.data()
  task = tasks.make_task(config, data)
  model = tasks.build_model(config, data.vocabulary, task.max_length)
  params, step = workdir.best_params(parameters.param_shapes(model))
  results = results_lib.read(folder, 'test', step)
  calibration = calibration_files.read(workdir.folder, params)
  with atomic_files.writing(goal):
    goal = atomic_files.follow_links(goal)
  unfinished = goal.with_name(f'.{goal.name}.{uuid.uuid4().hex}')
  try:
    with atomic_files.writing(goal):
      unfinished.mkdir(parents=True)
      write_params(unfinished / _MODEL, params, step)
      write_arrays(unfinished / _DATA, arrays.to_arrays(data))
      json_files.write_json(unfinished / _CONFIG, config.to_dict())
      json_files.write_vocabulary(unfinished / _VOCABULARY, data.vocabulary)
      if results is not None:
        json_files.write_json(unfinished / _RESULTS, results)
      if calibration is not None:
        calibration_files.write(unfinished, calibration, params)
      checksums.write(unfinished)
      read(unfinished)
      unfinished.rename(goal)
  finally:
    shutil.rmtree(unfinished, ignore_errors=True)
  return step


def read(folder: str | os.PathLike[str]) -> Exported:
  """Reads and checks an exported model.

  Every file is checked against its checksum before it is used. The parameters
  have a second checksum, and must fit the model that config.json and
  vocabulary.json describe.

  Args:
    folder: an exported model.

  Returns:
    The config.
    The data set.
    The parameters, NumPy arrays.
    The step of the checkpoint.

  Raises:
    ExportError: a file is missing, damaged, of another format, or not part of
      an exported model.
  """
  root = user_paths.expand(folder)
  try:
    checksums.check(root)
    metadata = _read_metadata(root / _MODEL)
    for name in (_CONFIG, _VOCABULARY, _DATA):
      if not (root / name).is_file():
        raise ExportError(f'{root}: no {name}: expected an exported model')
    config = json_files.read_config(root / _CONFIG)
    vocabulary = json_files.read_vocabulary(root / _VOCABULARY)
  except (checksums.ChecksumError, workdir_lib.WorkdirError) as error:
    raise ExportError(str(error)) from error
  saved = read_arrays(root / _DATA)
  try:
    data = arrays.from_arrays(config.data.name, vocabulary, saved)
  except (KeyError, TypeError, ValueError) as error:
    raise ExportError(f'{root / _DATA}: cannot be used: {error}') from error
  task = tasks.make_task(config, data)
  shapes = parameters.param_shapes(
    tasks.build_model(config, vocabulary, task.max_length)
  )
  params = _read_params(root / _MODEL, metadata, shapes)
  return config, data, params, metadata['step']


def written_by(folder: str | os.PathLike[str]) -> str:
  """Returns the version of coke_jax that wrote an exported model.

  Raises:
    ExportError: the file of the parameters is missing, damaged or of another
      format.
  """
  metadata = _read_metadata(user_paths.expand(folder) / _MODEL)
  return str(metadata.get('version'))


def write_params(path: pathlib.Path, params: Any, step: int) -> None:
  """Writes model.safetensors: parameters, their checksum and metadata.

  Args:
    path: the file.
    params: a nested dict of float32 arrays.
    step: the step of the checkpoint.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  params = jax.device_get(params)
  metadata = {'format': FORMAT, 'version': version.__version__, 'step': step}
  signed = {**metadata, 'sha256': checksums.of_arrays(params, metadata)}
  flat = flax.traverse_util.flatten_dict(params, sep='/')
  write_arrays(path, flat, {_METADATA: json.dumps(signed)})


def _read_metadata(path: pathlib.Path) -> dict[str, Any]:
  """Reads the metadata of model.safetensors and checks the format."""
  try:
    with safetensors.safe_open(path, framework='numpy') as opened:
      text = (opened.metadata() or {}).get(_METADATA, 'null')
    metadata = json.loads(text)
  except (OSError, ValueError, safetensors.SafetensorError) as error:
    raise ExportError(f'{path}: cannot be read: {error}') from error
  if not isinstance(metadata, dict) or 'format' not in metadata:
    raise ExportError(
      f'{path}: has no metadata of coke_jax: expected an exported model'
    )
  if metadata['format'] != FORMAT:
    raise ExportError(
      f'{path}: has format {metadata["format"]!r}, written by coke_jax '
      f'{metadata.get("version")}: expected format {FORMAT}, the only format '
      f'that coke_jax {version.__version__} reads'
    )
  if not isinstance(metadata.get('step'), int):
    raise ExportError(
      f'{path}: its step is {metadata.get("step")!r}: expected an integer'
    )
  return metadata


def _read_params(
  path: pathlib.Path, metadata: Mapping[str, Any], shapes: Any
) -> Any:
  """Reads the parameters and checks their names, shapes and checksum."""
  flat = read_arrays(path)
  expected = flax.traverse_util.flatten_dict(shapes, sep='/')
  for problem, names in (
    ('lacks', sorted(expected.keys() - flat.keys())),
    ('also has', sorted(flat.keys() - expected.keys())),
  ):
    if names:
      shown = ', '.join(names[:_MAX_NAMES_SHOWN]) + ', ...' * (
        len(names) > _MAX_NAMES_SHOWN
      )
      raise ExportError(
        f'{path}: {problem} {shown}: expected the {len(expected)} parameters '
        f'of the model that {_CONFIG} describes'
      )
  for name, array in flat.items():
    wanted = expected[name]
    if (array.shape, array.dtype) != (wanted.shape, wanted.dtype):
      raise ExportError(
        f'{path}: {name} is {array.dtype} {array.shape}: expected '
        f'{wanted.dtype} {wanted.shape} for the model that {_CONFIG} and '
        f'{_VOCABULARY} describe'
      )
  params = flax.traverse_util.unflatten_dict(flat, sep='/')
  unsigned = {key: metadata[key] for key in metadata if key != 'sha256'}
  if checksums.of_arrays(params, unsigned) != metadata.get('sha256'):
    raise ExportError(
      f'{path}: is damaged: its content differs from what was exported'
    )
  return params


def write_arrays(
  path: pathlib.Path,
  named: Mapping[str, np.ndarray],
  metadata: dict[str, str] | None = None,
) -> None:
  """Writes arrays of any layout to a safetensors file.

  Args:
    path: the file.
    named: arrays by name.
    metadata: text by name.

  Raises:
    atomic_files.WriteError: the file cannot be written.
  """
  # safetensors copies memory unchanged, so arrays must be in C order. Its
  # function save_file would write files that only the owner can read.
  content = safetensors.numpy.save(
    {name: np.asarray(array, order='C') for name, array in named.items()},
    metadata,
  )
  with atomic_files.whole_file(path) as temporary:
    temporary.write_bytes(content)


def read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
  """Reads the arrays of a safetensors file by name.

  Raises:
    ExportError: the file cannot be read.
  """
  try:
    return safetensors.numpy.load_file(path)
  except (OSError, KeyError, safetensors.SafetensorError) as error:
    raise ExportError(f'{path}: cannot be read: {error}') from error
