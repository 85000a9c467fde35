"""The command that trains."""

import os
import pathlib

import ml_collections

from coke_jax import config as config_lib
from coke_jax import hosts, recipes
from coke_jax.cli import arguments, host_flags
from coke_jax.data import prepare
from coke_jax.training import budget, run


def train(
  config: ml_collections.ConfigDict | None,
  workdir: str,
  *,
  split: str,
  minutes: float,
  data: str,
  coordinator: str = '',
  num_processes: int = 0,
  process_id: int = -1,
) -> None:
  """Trains in a work folder, or continues a run there. Then evaluates a split.

  Args:
    config: the settings. Default: the recipe for the number of entities in
      `data`.
    workdir: the path of the work folder. If it is empty and `data` is given,
      the work folder is `runs/<name of the data>`.
    split: the split to evaluate.
    minutes: the time for a new run. If it is 0, a run has the number of epochs
      in `config`.
    data: a file, a folder or the name of a data set, as in `prepare.prepare`.
      If it is empty, the files of `config.data` are used.
    coordinator: see `hosts.joined`.
    num_processes: see `hosts.joined`.
    process_id: see `hosts.joined`.

  Raises:
    config.ConfigError: there are neither settings nor data, or `data` is given
      and the settings are not for triples.
    errors.CokeError: see `run.train_and_evaluate`.
  """
  with host_flags.joined(coordinator, num_processes, process_id):
    if hosts.is_main():
      _train(config, workdir, split=split, minutes=minutes, data=data)
    else:  # Settings and data come from process 0.
      run.train_and_evaluate(None, '.', split=split, minutes=minutes)


def _train(
  config: ml_collections.ConfigDict | None,
  workdir: str,
  *,
  split: str,
  minutes: float,
  data: str,
) -> None:
  if not data:
    if config is None:
      expected = '--config=<name or file>, or --data=<file or folder>'
      raise config_lib.ConfigError(arguments.missing_config(workdir, expected))
    run.train_and_evaluate(config, workdir, split=split, minutes=minutes)
    return
  if minutes:
    budget.check_minutes(minutes)
  prepared = prepare.prepare(data, progress=True)
  print(prepared.to_text(counts=False))  # The training prints the counts.
  graph = prepared.graph
  slower = None
  if config is None:
    config, slower = recipes.for_counts(
      graph.vocabulary.num_entities, len(graph.train)
    )
  if config.data.kind != 'triples':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'triples', because "
      '--data is given'
    )
  config = config.copy_and_resolve_references()
  config.data.name = graph.name
  run.train_and_evaluate(
    config,
    workdir or os.path.join('runs', pathlib.Path(data).name.split('.')[0]),
    split=split,
    minutes=minutes,
    slower=slower,
    data=graph,
  )
