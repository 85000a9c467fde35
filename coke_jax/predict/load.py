"""Loads a trained model from a folder."""

import os
import pathlib
from typing import NamedTuple

import ml_collections

from coke_jax import parallel, tasks
from coke_jax.data import user_paths
from coke_jax.model import parameters
from coke_jax.predict import calibration_files, export
from coke_jax.predict import model as model_lib
from coke_jax.storage import workdir as workdir_lib

# The folder of a small model that is part of the package. It was trained with
# configs/example.py.
EXAMPLE_MODEL = (
  pathlib.Path(__file__).resolve().parents[1]
  / 'data'
  / 'countries'
  / 'example_model'
)


class Loaded(NamedTuple):
  """A trained model with its settings, task and step.

  Attributes:
    model: the model, with the parameters of its best checkpoint.
    config: the settings.
    task: the task, which evaluates the splits.
    step: the training step of the checkpoint.
  """

  model: model_lib.Model
  config: ml_collections.ConfigDict
  task: tasks.Task
  step: int


def load(folder: str | os.PathLike[str]) -> model_lib.Model:
  """Loads a trained model with the parameters of its best checkpoint.

  The optimizer state is not read.

  Args:
    folder: a work folder, or the folder of an exported model.

  Returns:
    The model, with its parameters on all local devices.

  Raises:
    workdir.WorkdirError: the folder contains no run, or a damaged one.
    checkpoints.CheckpointError: there is no usable checkpoint.
    export.ExportError: the folder is a damaged exported model.
    parallel.ForkError: this process was forked from one that uses devices.
    calibration_files.CalibrationError: calibration.json is damaged.
    errors.PathError: the path cannot exist.
    TypeError: the argument is not a path.
  """
  return load_with_task(folder).model


def load_with_task(folder: str | os.PathLike[str]) -> Loaded:
  """Loads a trained model together with its settings, task and step.

  Args:
    folder: a work folder, or the folder of an exported model.

  Returns:
    See `Loaded`. The parameters are on all local devices.

  Raises:
    errors.CokeError: as in `load`.
  """
  parallel.check_process()
  user_paths.expand(folder, 'folder')  # Checks the argument.
  if export.is_export(folder):
    config, data, params, step = export.read(folder)
    task = tasks.make_task(config, data)
    model = tasks.build_model(config, data.vocabulary, task.max_length)
  else:
    workdir = workdir_lib.Workdir(folder)
    if not workdir.exists and workdir.folder.is_file():
      raise workdir_lib.WorkdirError(
        f'{folder}: is a file: expected a work folder, or the folder of an '
        'exported model'
      )
    config = workdir.config()
    task = tasks.make_task(config, workdir.data())
    model = tasks.build_model(config, task.data.vocabulary, task.max_length)
    params, step = workdir.best_params(parameters.param_shapes(model))
  longest = min(config.data.max_path_length, task.max_length - 2)
  placement = tasks.build_placement(config, model)
  loaded = model_lib.Model(
    model, placement.place(params), task.data, longest, placement=placement
  )
  loaded.calibration = calibration_files.read(folder, params)
  return Loaded(loaded, config, task, step)
