"""Trains in a work folder and evaluates the best checkpoint."""

import contextlib
import logging
import os
import pathlib
import time
from collections.abc import Mapping
from typing import Any

import jax
import ml_collections
import numpy as np

from coke_jax import compilation_cache, hosts, parallel, tasks
from coke_jax import config as config_lib
from coke_jax.data import arrays, graph, source_files
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import ensemble, parameters
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import budget, loop, shared_input
from coke_jax.training import setup as setup_lib


def train_and_evaluate(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  *,
  split: str = 'test',
  minutes: float = 0.0,
  slower: ml_collections.ConfigDict | None = None,
  data: arrays.DataSet | None = None,
  data_files: Mapping[str, pathlib.Path] | None = None,
) -> dict[str, Any] | None:
  """Trains in a work folder, then ranks a split with the best checkpoint.

  If the folder contains an interrupted run, it continues from its last
  checkpoint. A finished run is only evaluated. All input is read and checked
  before the folder is created.

  If there are several processes (see `hosts`), all of them must call this
  function. Processes other than 0 ignore `config` and `data`, and use `workdir`
  only for checkpoints of shards.

  Args:
    config: the settings. If the folder contains a run, they must equal the
      settings of that run, except for the fields in `config.RUNTIME_FIELDS`.
    workdir: the path of the work folder.
    split: `train`, `valid` or `test`.
    minutes: the time for a new run. `budget.choose` chooses the values of the
      fields `budget.FIELDS` that fit into this time. A continued run keeps its
      values. Default: 0, which means that the values of `config` are used.
    slower: settings that are used instead of `config` if `minutes` is long
      enough for them, see `budget.choose`.
    data: the data set. Default: it is read from the files of `config.data`.
    data_files: the files from which `data` was read, by role, see
      `source_files.of_parts`. Default: `data` was not read from files.

  Returns:
    The results of the split, which are also written to `results.json` (test) or
    `results_<split>.json`. None if the split is empty.

  Raises:
    errors.CokeError: settings, data, devices or the work folder are unsuitable,
      or training diverged. The message states what was expected.
    interruption.Interruption: SIGINT or SIGTERM was received. The message
      states the step from which the training will continue.
  """
  started = time.monotonic()
  if split not in graph.SPLITS:
    raise config_lib.ConfigError(
      f'split is {split!r}: expected train, valid or test'
    )
  if minutes:
    budget.check_minutes(minutes)
  files = workdir_lib.Workdir(workdir)
  exists, sources = False, source_files.Sources()
  with contextlib.ExitStack() as stack:
    if hosts.is_main():
      assert config is not None
      config_lib.validate(config)
      compilation_cache.use(config.compilation_cache_dir)
      exists = files.exists
      if exists:
        if minutes:
          config = budget.adopt(config, files.config(), slower)
          print(
            f'{files.folder}: keeping the settings of this run. A number of '
            'minutes only applies to a new run'
          )
        stack.enter_context(files.locked())
        data = _data_of_run(config, files, data, data_files or {})
      elif data is None:
        data = tasks.read_data(config)
        sources = tasks.data_sources(config)
      else:
        print(data.summary())
        sources = source_files.of_files(data_files or {})
    config, data = shared_input.share(config, data)
    compilation_cache.use(config.compilation_cache_dir)
    if minutes and not hosts.broadcast(exists):
      if hosts.is_main():
        print('measuring the time of steps and rankings', flush=True)
      has_slower = hosts.broadcast(slower is not None)
      slower = shared_input.share_config(slower) if has_slower else None
      choice = budget.choose(
        config,
        tasks.make_task(config, data),
        minutes,
        slower=slower,
        started=started,
      )
      print(f'settings for this budget: {choice.reason}')
      config = shared_input.share_config(choice.config)
    setup = setup_lib.Setup(config, tasks.make_task(config, data))
    if hosts.is_main() and not exists:
      stack.enter_context(files.locked())
      files.create(config, data, sources)
    return _train_and_evaluate(setup, files, split)


def evaluate(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  split: str = 'test',
) -> dict[str, Any] | None:
  """Ranks a split with the best checkpoint of a work folder.

  If there are several processes (see `hosts`), all of them must call this
  function. Processes other than 0 ignore `config`, and use `workdir` only for
  checkpoints of shards.

  Args:
    config: the settings of the run. `evaluate.batch_size` may differ.
    workdir: the path of the work folder.
    split: `train`, `valid` or `test`.

  Returns:
    The results of the split, which are also written to `results.json` (test) or
    `results_<split>.json`. None if the split is empty.

  Raises:
    errors.CokeError: the work folder has no usable checkpoint, or a score is
      NaN or infinite.
  """
  files, data = workdir_lib.Workdir(workdir), None
  if hosts.is_main():
    assert config is not None
    data, sources = files.data_and_sources()
    for change in tasks.source_changes(config, sources):
      logging.warning(
        '%s: using the copy of the data in this folder, because a file has '
        'changed since the run was started: %s',
        files.folder,
        change,
      )
  config, data = shared_input.share(config, data)
  task = tasks.make_task(config, data)
  model = tasks.build_model(config, task.data.vocabulary, task.max_length)
  placement = tasks.build_placement(config, model)
  ranker = ranker_lib.Ranker(
    model, config.evaluate.batch_size, placement=placement
  )
  return _evaluate(task, model, ranker, files, split)


def _train_and_evaluate(
  setup: setup_lib.Setup, files: workdir_lib.Workdir, split: str
) -> dict[str, Any] | None:
  shapes = parameters.param_shapes(setup.model)
  print(
    f'{parameters.count_parameters(shapes) / 1e6:.2f} million parameters on '
    f'{parallel.describe_devices()}; {setup.training_set.num_rows:,} '
    f'rows an epoch, {setup.num_steps:,} steps of '
    f'{setup.config.train.batch_size} rows; work folder {files.folder}'
  )
  trainer = loop.Trainer(setup, files)
  trainer.run()
  return _evaluate(setup.task, setup.model, trainer.ranker, files, split)


def _evaluate(
  task: tasks.Task,
  model: ensemble.Encoder,
  ranker: ranker_lib.Ranker,
  files: workdir_lib.Workdir,
  split: str,
) -> dict[str, Any] | None:
  """Ranks a split with the best checkpoint, then prints and writes results."""
  if not len(task.data.split(split)):
    print(f'{task.data.name}: the {split} split is empty: nothing to rank')
    return None
  shapes = parameters.param_shapes(model)
  placement = ranker.placement
  if hosts.is_main() or placement.is_cut:
    params, step = files.best_params(shapes, placement)
  else:
    step = 0
    params = jax.tree.map(lambda leaf: np.empty(leaf.shape, leaf.dtype), shapes)
  if not placement.is_cut:
    params = placement.place(parallel.broadcast(params))
  started = time.monotonic()
  results = task.evaluate(
    ranker,
    params,
    split,
    choosing=False,
    progress=f'ranking {split}',
  )
  seconds = time.monotonic() - started
  results['step'] = hosts.broadcast(step)
  # Print before writing, so that the table is not lost if the disk is full.
  print(task.format_table(results))
  if not hosts.is_main():
    return results
  path = files.write_results(results)
  print(
    f'checkpoint of step {step:,}; ranked in {seconds:.1f} s; written to {path}'
  )
  return results


def _data_of_run(
  config: ml_collections.ConfigDict,
  files: workdir_lib.Workdir,
  data: arrays.DataSet | None,
  data_files: Mapping[str, pathlib.Path],
) -> arrays.DataSet:
  """Reads the data of an existing run and checks that the run can continue.

  Args:
    config: the settings, which must be those of the run.
    files: the work folder.
    data: None, or data that must equal the data of the run.
    data_files: the files from which `data` was read, by role.
  """
  files.check_config(config)
  saved, sources = files.data_and_sources()
  if data is None:
    changed = tasks.source_changes(config, sources)
  elif arrays.equal(data, saved):
    changed = []  # The change of a file, if any, did not affect the triples.
  else:
    changed = source_files.compare(data_files, sources)
    if not changed:
      raise workdir_lib.WorkdirError(
        f'{files.folder}: the run here was started with other data: expected '
        'the same labels and triples in the same order, and the same way to '
        'read and split them (in Python: the same arguments, such as seed). '
        'Nothing was changed. To train on other data, choose another workdir'
      )
  if changed:
    raise workdir_lib.WorkdirError(
      f'{files.folder}: the run here was started with other data:\n  '
      + '\n  '.join(changed)
      + '\nNothing was changed. To continue this run, restore the files, or '
      'move them away, so that the copy of the data in this folder is used. '
      'To train on the changed data, choose another --workdir'
    )
  print(
    f'{files.folder}: continuing with the data of this run\n{saved.summary()}'
  )
  return saved
