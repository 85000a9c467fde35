"""A trained model as a folder of plain files, to keep, publish and load.

model.safetensors  the parameters of the best checkpoint
data.safetensors   train, valid and test as ids
config.json        the settings
vocabulary.json    entity and relation labels, in the order of their ids
results.json       test metrics of this checkpoint, if it was tested
SHA256SUMS         the checksums of the others

None of them can hold code, and reading them needs no orbax. Names of parameters
are paths, such as `blocks_0/attention/query_key_value/kernel`.
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

from coke_jax import errors, parallel, tasks, version
from coke_jax.data import arrays, atomic_files
from coke_jax.model import encoder
from coke_jax.storage import checksums, json_files, workdir

FORMAT = 1  # of the folder; a program that knows another one refuses it

_MODEL = 'model.safetensors'
_DATA = 'data.safetensors'
_CONFIG = 'config.json'
_VOCABULARY = 'vocabulary.json'
_RESULTS = 'results.json'
# One key for all metadata: the library would write several in any order, and
# the same model is to give the same bytes.
_METADATA = 'coke_jax'
_SHOWN = 3  # names in an error

Exported = tuple[ml_collections.ConfigDict, arrays.DataSet, Any, int]


class ExportError(errors.CokeError, RuntimeError):
  """A folder that is not a whole exported model, or that cannot become one."""


def is_export(folder: str | os.PathLike[str]) -> bool:
  """Whether a folder looks like an exported model, be it a damaged one."""
  place = pathlib.Path(folder).expanduser()
  return any((place / name).is_file() for name in (_MODEL, checksums.NAME))


def write(run: str | os.PathLike[str], target: str | os.PathLike[str]) -> int:
  """Exports the best checkpoint of a work folder and returns its step.

  The target is whole or not there: the files are written into a folder beside
  it, read back as a check, and then the folder gets its name.

  Args:
    run: a work folder.
    target: a folder that is empty or not there yet.

  Raises:
    ExportError: the target holds something.
    atomic_files.WriteError: it cannot be written.
    workdir.WorkdirError: the work folder holds no run, or a damaged one.
    checkpoints.CheckpointError: it has no usable checkpoint.
  """
  goal = pathlib.Path(target).expanduser().absolute()
  if goal.exists() and not (goal.is_dir() and not any(goal.iterdir())):
    raise ExportError(
      f'{goal}: is there already: expected a folder that is empty or not there '
      'yet; nothing was changed'
    )
  place = workdir.Workdir(run)
  config, data = place.config(), place.data()
  task = tasks.make_task(config, data)
  model = tasks.build_model(config, data.vocabulary, task.max_length)
  params, step = place.best_params(encoder.param_shapes(model))
  results = _results_of(place, step)
  unfinished = goal.with_name(f'.{goal.name}.{uuid.uuid4().hex}')
  try:
    with atomic_files.writing(goal):
      unfinished.mkdir(parents=True)
      _write_params(unfinished / _MODEL, params, step)
      _write_arrays(unfinished / _DATA, arrays.to_arrays(data))
      json_files.write_json(unfinished / _CONFIG, config.to_dict())
      json_files.write_vocabulary(unfinished / _VOCABULARY, data.vocabulary)
      if results is not None:
        json_files.write_json(unfinished / _RESULTS, results)
      checksums.write(unfinished)
      read(unfinished)
      unfinished.rename(goal)
  finally:
    shutil.rmtree(unfinished, ignore_errors=True)
  return step


def read(folder: str | os.PathLike[str]) -> Exported:
  """The config, data, replicated parameters and step of an exported model.

  Every file is checked against its checksum before it is used; the parameters
  also against their own one, and against the model that the config and the
  labels describe.

  Raises:
    ExportError: a file is missing, damaged, too many or of another format;
      names it and what was expected.
  """
  place = pathlib.Path(folder).expanduser()
  try:
    checksums.check(place)
    metadata = _read_metadata(place / _MODEL)
    for name in (_CONFIG, _VOCABULARY, _DATA):
      if not (place / name).is_file():
        raise ExportError(f'{place}: no {name}: expected an exported model')
    config = json_files.read_config(place / _CONFIG)
    vocabulary = json_files.read_vocabulary(place / _VOCABULARY)
  except (checksums.ChecksumError, workdir.WorkdirError) as error:
    raise ExportError(str(error)) from error
  saved = _read_arrays(place / _DATA)
  try:
    data = arrays.from_arrays(config.data.name, vocabulary, saved)
  except (KeyError, TypeError, ValueError) as error:
    raise ExportError(f'{place / _DATA}: cannot be used: {error}') from error
  task = tasks.make_task(config, data)
  shapes = encoder.param_shapes(
    tasks.build_model(config, vocabulary, task.max_length)
  )
  params = _read_params(place / _MODEL, metadata, shapes)
  return config, data, parallel.replicate(params), metadata['step']


def _results_of(place: workdir.Workdir, step: int) -> dict[str, Any] | None:
  """The test metrics of a run, unless they are of another checkpoint."""
  path = place.folder / _RESULTS
  if not path.exists():
    return None
  results = json_files.read_json(path)
  same = isinstance(results, dict) and results.get('step') == step
  return results if same else None


def _write_params(path: pathlib.Path, params: Any, step: int) -> None:
  params = jax.device_get(params)
  metadata = {'format': FORMAT, 'version': version.__version__, 'step': step}
  signed = {**metadata, 'sha256': checksums.of_arrays(params, metadata)}
  flat = flax.traverse_util.flatten_dict(params, sep='/')
  _write_arrays(path, flat, {_METADATA: json.dumps(signed)})


def _read_metadata(path: pathlib.Path) -> dict[str, Any]:
  """What a file of parameters says of itself, if it has this format."""
  try:
    with safetensors.safe_open(path, framework='numpy') as opened:
      text = (opened.metadata() or {}).get(_METADATA, 'null')
    metadata = json.loads(text)
  except (OSError, ValueError, safetensors.SafetensorError) as error:
    raise ExportError(f'{path}: cannot be read: {error}') from error
  if not isinstance(metadata, dict) or 'format' not in metadata:
    raise ExportError(
      f'{path}: has no metadata of coke_jax: expected a file that the export '
      'wrote'
    )
  if metadata['format'] != FORMAT:
    raise ExportError(
      f'{path}: has the format {metadata["format"]!r} of coke_jax '
      f'{metadata.get("version")}: expected {FORMAT}, which coke_jax '
      f'{version.__version__} reads'
    )
  if not isinstance(metadata.get('step'), int):
    raise ExportError(
      f'{path}: its step is {metadata.get("step")!r}: expected an integer'
    )
  return metadata


def _read_params(
  path: pathlib.Path, metadata: Mapping[str, Any], shapes: Any
) -> Any:
  """The parameters in a file, which must be those of a tree of shapes."""
  flat = _read_arrays(path)
  expected = flax.traverse_util.flatten_dict(shapes, sep='/')
  for problem, names in (
    ('lacks', sorted(expected.keys() - flat.keys())),
    ('also has', sorted(flat.keys() - expected.keys())),
  ):
    if names:
      shown = ', '.join(names[:_SHOWN]) + ', ...' * (len(names) > _SHOWN)
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
      f'{path}: is damaged: its content is not what was exported'
    )
  return params


def _write_arrays(
  path: pathlib.Path,
  named: Mapping[str, np.ndarray],
  metadata: dict[str, str] | None = None,
) -> None:
  # The library takes the memory as it lies, and would shuffle an array that is
  # not in C order. Its save_file makes files that only their owner can read.
  content = safetensors.numpy.save(
    {name: np.asarray(array, order='C') for name, array in named.items()},
    metadata,
  )
  with atomic_files.whole_file(path) as temporary:
    temporary.write_bytes(content)


def _read_arrays(path: pathlib.Path) -> dict[str, np.ndarray]:
  try:
    return safetensors.numpy.load_file(path)
  except (OSError, KeyError, safetensors.SafetensorError) as error:
    raise ExportError(f'{path}: cannot be read: {error}') from error
