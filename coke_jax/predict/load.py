"""From a folder to a model that can be asked."""

import os
import pathlib

from coke_jax import tasks
from coke_jax.predict import export
from coke_jax.predict import model as model_lib
from coke_jax.storage import workdir

# A small model that ships with the package, trained by configs/example.py.
EXAMPLE_MODEL = (
  pathlib.Path(__file__).resolve().parents[1]
  / 'data'
  / 'countries'
  / 'example_model'
)


def load(folder: str | os.PathLike[str]) -> model_lib.Model:
  """The model of a work folder, with the parameters that validated best.

  Args:
    folder: a work folder, or an exported one.

  Raises:
    workdir.WorkdirError: the folder holds no run, or a damaged one.
    checkpoints.CheckpointError: it has no usable checkpoint.
    export.ExportError: it was exported, and is damaged.
  """
  if export.is_export(folder):
    config, data, params, _ = export.read(folder)
    task = tasks.make_task(config, data)
  else:
    place = workdir.Workdir(folder)
    config = place.config()
    task = tasks.make_task(config, place.data())
    params, _ = workdir.load_best_params(config, task, place)
  longest = min(config.data.max_path_length, task.max_length - 2)
  model = tasks.build_model(config, task.data.vocabulary, task.max_length)
  return model_lib.Model(model, params, task.data, longest)
