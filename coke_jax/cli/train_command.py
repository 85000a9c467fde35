"""The command that trains."""

import os
import pathlib

import ml_collections

from coke_jax import config as config_lib
from coke_jax import recipes
from coke_jax.cli import arguments
from coke_jax.data import prepare
from coke_jax.training import run


def train(
  config: ml_collections.ConfigDict | None,
  workdir: str,
  *,
  split: str,
  minutes: float,
  data: str,
) -> None:
  """Trains in a work folder, or continues a run there, and evaluates it.

  Args:
    config: the settings. Default: the recipe for the number of entities in
      `data`.
    workdir: the path of the work folder. Default: `runs/<name of the data>`.
    split: the split to evaluate.
    minutes: the time for a new run. 0: the number of epochs in `config`.
    data: a file, a folder or the name of a data set, as in `prepare.prepare`.
      Empty: the files of `config.data`.

  Raises:
    config.ConfigError: there are neither settings nor data.
    errors.CokeError: see `run.train_and_evaluate`.
  """
  if not data:
    if config is None:
      expected = '--config=<name or file>, or --data=<file or folder>'
      raise config_lib.ConfigError(arguments.missing_config(workdir, expected))
    run.train_and_evaluate(config, workdir, split=split, minutes=minutes)
    return
  prepared = prepare.prepare(data, progress=True)
  print(prepared)
  graph = prepared.graph
  if config is None:
    config = recipes.for_size(graph.vocabulary.num_entities)
    config.data.name = graph.name
  run.train_and_evaluate(
    config,
    workdir or os.path.join('runs', pathlib.Path(data).name.split('.')[0]),
    split=split,
    minutes=minutes,
    data=graph,
  )
