"""The command that trains."""

import os
import pathlib
import shlex

import ml_collections

from coke_jax import config as config_lib
from coke_jax import given_data, hosts, recipes
from coke_jax.cli import arguments, host_flags
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
  """Starts or continues a run in a work folder, then evaluates a split.

  Args:
    config: the settings. Default: a recipe for the size of `data` and for
      `minutes`.
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
  if config is not None and config.data.kind != 'triples':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'triples', because "
      f'--data={data} is given. {_without_data(data)}'
    )
  workdir = workdir or os.path.join('runs', _name(data))
  graph, files, prepared = given_data.read(
    data, config=config, workdir=workdir, progress=True
  )
  if prepared:
    print(prepared.to_text(counts=False))  # The training prints the counts.
  slower = None
  if config is None:
    config, slower = recipes.for_counts(
      graph.vocabulary.num_entities, len(graph.train)
    )
  config = config.copy_and_resolve_references()
  config.data.name = graph.name
  run.train_and_evaluate(
    config,
    workdir,
    split=split,
    minutes=minutes,
    slower=slower,
    data=graph,
    data_files=files,
  )


def _without_data(data: str) -> str:
  """Returns a hint that states the flags to use instead of --data."""
  flags, first = [f'--config.data.name={_name(data)}'], ''
  if os.path.isdir(data):
    flags.append(f'--config.data.dir={data}')
  elif os.path.exists(data):
    folder = f'data/{_name(data)}'
    flags.append(f'--config.data.dir={folder}')
    command = shlex.join(['coke', 'prepare', data, f'--output={folder}'])
    first = f'first write a folder of splits with `{command}`, then '
  return (
    f'To use this config, {first}pass `{shlex.join(flags)}` instead of --data'
  )


def _name(data: str) -> str:
  """Returns the name of data, without folders and extensions."""
  return pathlib.Path(data).name.split('.')[0]
