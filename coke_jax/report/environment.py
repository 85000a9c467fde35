"""Versions of libraries, and the time of the training steps."""

import importlib.metadata
import os
import platform
from typing import Any

import ml_collections

from coke_jax import parallel, path_training, version
from coke_jax.data import arrays
from coke_jax.predict import export
from coke_jax.storage import json_files
from coke_jax.storage import workdir as workdir_lib

# Libraries that affect the numbers in a report.
_LIBRARIES = ('jax', 'jaxlib', 'flax', 'numpy', 'scipy', 'scikit-learn')


def versions(folder: str | os.PathLike[str], exported: bool) -> dict[str, str]:
  """Returns the coke_jax version of the run, and the versions in use now."""
  found = {}
  if exported:
    found['coke_jax of the export'] = export.written_by(folder)
  else:
    path = workdir_lib.Workdir(folder).folder / 'format.json'
    found['coke_jax of the training'] = str(
      json_files.read_json(path)['coke_jax']
    )
  found['coke_jax of the report'] = version.__version__
  found['Python'] = platform.python_version()
  for name in _LIBRARIES:
    try:
      found[name] = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
      found[name] = 'not installed'
  found['Devices of the report'] = parallel.describe_devices()
  return found


def training_seconds(
  config: ml_collections.ConfigDict,
  data: arrays.DataSet,
  log: list[dict[str, Any]],
) -> float:
  """Computes the time of the training steps from the speeds in the log.

  Compilations, validations and checkpoints are not included.
  """
  per_epoch = path_training.instances_per_epoch(config, data)
  seconds, before = 0.0, 0.0
  for line in log:
    if line['kind'] == 'train' and line.get('instances_per_second'):
      instances = per_epoch * (line['epoch'] - before)
      seconds += instances / line['instances_per_second']
      before = line['epoch']
  return seconds


def duration(seconds: float) -> str:
  """Formats a time, such as 4.2 s, 12.0 min or 3.5 h."""
  if seconds < 100:
    return f'{seconds:.1f} s'
  return (
    f'{seconds / 60:.1f} min' if seconds < 6000 else f'{seconds / 3600:.1f} h'
  )
