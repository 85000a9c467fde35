"""Trains a model from triples in one call."""

import contextlib
import os
import pathlib
import tempfile
from typing import Any

import ml_collections

from coke_jax import builtin_configs, given_data, recipes
from coke_jax import config as config_lib
from coke_jax.data import text_files, user_paths
from coke_jax.predict import load as load_lib
from coke_jax.predict import model as model_lib
from coke_jax.training import budget, run


def train(
  triples: Any,
  *,
  valid: Any = None,
  test: Any = None,
  config: ml_collections.ConfigDict | str | os.PathLike[str] | None = None,
  minutes: float = 0.0,
  workdir: str | os.PathLike[str] | None = None,
  **options: Any,
) -> model_lib.Model:
  """Trains a model and returns it with the parameters of its best checkpoint.

  Examples:
    >>> model = coke_jax.train(frame, minutes=5)
    >>> model.predict(('Kenya', 'region', '?'))

  Args:
    triples: the path of a file or folder, the name of a data set, a data frame,
      an array, or an iterable of (head, relation, tail), as in `prepare`.
    valid: triples for choosing the best checkpoint. If neither `valid` nor
      `test` is given, the triples are split at random, as in `prepare`.
    test: triples for the final metrics.
    config: the settings, the name of a built-in config such as 'own_graph', or
      the path of a config file. Default: `recipes.for_size`, or
      `recipes.with_more_time` if `minutes` is long enough. Of `config.data`,
      only `columns`, `delimiter` and `header` are used. They describe the lines
      of CSV and TSV files.
    minutes: the time for a new training, as in `run.train_and_evaluate`. If 0,
      the settings determine the number of epochs. Default: 0.
    workdir: the work folder. A run with the same data and settings in this
      folder is continued. If files of the data are missing, the copy of the
      data in the folder is used. Default: a temporary folder, which is deleted
      at the end.
    **options: other arguments of `prepare`, such as `columns`, `valid_share`,
      `test_share` and `seed`.

  Returns:
    The model.

  Raises:
    errors.CokeError: triples, settings or the work folder are unsuitable, or
      training diverged. The message states what was expected.
    TypeError: `workdir` is not a path, or an argument is unknown.
  """
  if minutes != 0:
    budget.check_minutes(minutes)
  if workdir is not None:
    workdir = user_paths.expand(workdir, 'workdir')
  settings = None if config is None else _settings(config)
  options = {'progress': True, **options}
  graph, files, prepared = given_data.read(
    triples, valid=valid, test=test, config=settings, workdir=workdir, **options
  )
  for note in prepared.notes if prepared else ():
    print(f'note: {note}')
  slower = None
  if settings is None:
    settings, slower = recipes.for_counts(
      graph.vocabulary.num_entities, len(graph.train)
    )
  settings.data.name = graph.name
  with contextlib.ExitStack() as stack:
    if workdir is None:
      folder = stack.enter_context(
        tempfile.TemporaryDirectory(prefix='coke_jax_')
      )
      workdir = pathlib.Path(folder) / 'work'
    run.train_and_evaluate(
      settings,
      workdir,
      minutes=minutes,
      slower=slower,
      data=graph,
      data_files=files,
    )
    return load_lib.load(workdir)


def _settings(config: Any) -> ml_collections.ConfigDict:
  """Returns the checked settings for triples.

  Raises:
    config.ConfigError: the argument has a wrong type, there is no config with
      this name or path, or a setting is not valid.
  """
  if isinstance(config, str | os.PathLike):
    config = builtin_configs.load(config)
  if not isinstance(config, ml_collections.ConfigDict):
    raise config_lib.ConfigError(
      f'config is {text_files.show_value(config)}: expected a ConfigDict of '
      'ml_collections, the name of a built-in config such as '
      "'own_graph', or the path of a config file"
    )
  settings = config.copy_and_resolve_references().to_dict()
  if isinstance(settings.get('data'), dict):
    settings['data'] |= {'kind': 'triples', 'max_path_length': 1}
  return config_lib.from_dict(settings)
