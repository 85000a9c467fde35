"""Commands that use data only and no model."""

import os
import pathlib

import ml_collections

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import path_files, paths


def sample_paths(
  config: ml_collections.ConfigDict, workdir: str | os.PathLike[str]
) -> None:
  """Samples paths from a graph of triples and writes them as path files.

  Args:
    config: the settings; `data.kind` must be 'walks'.
    workdir: the folder in which the files train, dev and test are written. It
      must not contain path data.

  Raises:
    config.ConfigError: a setting is not valid, or `data.kind` is not 'walks'.
    text_files.DataError: the triples cannot be read, or the folder contains
      path data.
    OSError: a file cannot be written.
  """
  config_lib.validate(config)
  if config.data.kind != 'walks':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'walks', and "
      'config.data.max_path_length of at least 2, to sample paths'
    )
  data = tasks.read_data(config)
  assert isinstance(data, paths.PathData), 'random walks are paths'
  path_files.write_paths(pathlib.Path(workdir), data, tasks.path_format(config))
  print(f'written to {workdir}')
