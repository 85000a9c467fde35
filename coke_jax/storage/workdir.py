"""Reads and writes the work folder, which contains all files of a training.

format.json            the format number of this folder
config.json            the settings
vocabulary.json        entity and relation labels, in the order of their ids
data.npz               the train, valid and test splits as ids
checkpoints/           the newest two checkpoints and the best one
metrics.jsonl          losses and validations, one JSON object per line
results.json           metrics of the best checkpoint on the test split
results_<split>.json   metrics of the best checkpoint on train or valid, on
                       request
damaged_checkpoints/   checkpoints that could not be read
tensorboard/           TensorBoard events, on request
"""

import contextlib
import fcntl
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import hosts
from coke_jax.data import arrays, atomic_files, source_files, user_paths
from coke_jax.shards import placement as placement_lib
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import (
  checksums,
  format_file,
  json_files,
  layout,
  metrics_log,
  run_checksums,
  shard_checkpoints,
)

WorkdirError = json_files.WorkdirError


class Workdir:
  """The files of one run.

  Attributes:
    folder: the path of the work folder.
  """

  def __init__(self, folder: str | os.PathLike[str]):
    self.folder = user_paths.expand(folder)

  @property
  def exists(self) -> bool:
    """Whether the folder contains a run."""
    return user_paths.is_file(self.folder / 'config.json')

  @contextlib.contextmanager
  def locked(self) -> Iterator[None]:
    """Prevents other processes from training in the folder.

    Also removes temporary files that killed processes left.

    Raises:
      WorkdirError: another process holds the lock, or the folder cannot be
        created or written.
    """
    try:
      self.folder.mkdir(parents=True, exist_ok=True)
      lock = open(self.folder / '.lock', 'a')  # noqa: SIM115
    except OSError as error:
      raise WorkdirError(
        f'{self.folder}: cannot be written: {error}'
      ) from error
    with lock:
      try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
      except BlockingIOError:
        raise WorkdirError(
          f'{self.folder}: another process is writing here'
        ) from None
      except OSError as error:  # Some network file systems have no locks.
        raise WorkdirError(
          f'{self.folder}: cannot be locked: {error}'
        ) from error
      # The temporary files of running evaluations, which do not hold this lock,
      # are kept.
      atomic_files.remove_unfinished(self.folder)
      yield

  def create(
    self,
    config: ml_collections.ConfigDict,
    data: arrays.DataSet,
    sources: source_files.Sources | None = None,
  ) -> None:
    """Writes the settings, labels and splits of a new run.

    Args:
      config: valid settings.
      data: the data set to train on.
      sources: the files from which the data were read. Default: no files.

    Raises:
      WorkdirError: the folder contains a run, or checkpoints without settings.
      atomic_files.WriteError: a file cannot be written.
    """
    if self.exists:
      raise WorkdirError(
        f'{self.folder}: another process has started a run here meanwhile'
      )
    checkpoints = self.folder / 'checkpoints'
    if checkpoints.exists() and any(checkpoints.iterdir()):
      raise WorkdirError(
        f'{self.folder}: contains checkpoints but no config.json: nothing was '
        'changed; choose another folder, or move the checkpoints away'
      )
    format_file.write(self.folder)
    json_files.write_vocabulary(
      self.folder / 'vocabulary.json', data.vocabulary
    )
    settings = config.to_dict()
    saved = {
      **arrays.to_arrays(data),
      **run_checksums.of_run(settings, data.vocabulary),
      **(sources or source_files.Sources()).to_arrays(),
    }
    with (
      atomic_files.whole_file(self.folder / 'data.npz') as path,
      path.open('wb') as out,
    ):
      np.savez(out, **saved)  # type: ignore[arg-type]
    # config.json is written last, because `exists` tests for it.
    json_files.write_json(self.folder / 'config.json', settings)

  def check_config(self, config: ml_collections.ConfigDict) -> None:
    """Checks that the run was started with the same settings.

    Raises:
      WorkdirError: settings differ. The message lists them.
    """
    differing = config_lib.differences(self.config(), config)
    if differing:
      raise WorkdirError(
        f'{self.folder}: the run here was started with other settings:\n  '
        + '\n  '.join(differing)
        + '\nNothing was changed. To continue this run, use its settings, for '
        'example by leaving out --config; or choose another --workdir'
      )

  def config(self) -> ml_collections.ConfigDict:
    """Reads the settings of the run.

    Raises:
      WorkdirError: the settings are missing or damaged, or the folder has
        another format.
    """
    if self.exists and not (self.folder / checksums.NAME).is_file():
      # Exported models, which contain SHA256SUMS, have other format numbers.
      format_file.check(self.folder)
    return json_files.read_config(self.folder / 'config.json')

  def data(self) -> arrays.DataSet:
    """Reads the data set of the run. Errors are those of `data_and_sources`."""
    return self.data_and_sources()[0]

  def data_and_sources(self) -> tuple[arrays.DataSet, source_files.Sources]:
    """Reads the data set of the run and the `sources` given to `create`.

    Raises:
      WorkdirError: a file is missing, damaged or of another run.
    """
    name = self.config().data.name
    vocabulary = json_files.read_vocabulary(self.folder / 'vocabulary.json')
    path = self.folder / 'data.npz'
    try:
      with (
        path.open('rb') as stream,
        np.load(stream, allow_pickle=False) as archive,
      ):
        saved = dict(archive)
      data = arrays.from_arrays(name, vocabulary, saved)
    except Exception as error:  # NumPy raises any type on a damaged archive.
      raise WorkdirError(f'{path}: cannot be read: {error}') from error
    settings = json_files.read_json(self.folder / 'config.json')
    for key, expected in run_checksums.of_run(settings, vocabulary).items():
      if key not in saved or not np.array_equal(saved[key], expected):
        changed = self.folder / key.removesuffix(run_checksums.SUFFIX)
        raise WorkdirError(
          f'{changed}: was changed or belongs to another run: expected the '
          f'file that was written together with {path.name}'
        )
    return data, source_files.from_arrays(saved)

  def checkpoints(
    self, *, writing: bool, placement: placement_lib.Placement | None = None
  ) -> checkpoints_lib.Checkpoints:
    """Opens the checkpoints. Use the result as a context manager.

    Each checkpoint stores the SHA-256 of data.npz, so a checkpoint of another
    run is detected.

    Args:
      writing: whether checkpoints will be saved.
      placement: how the state is distributed over the devices. If it cuts the
        vocabulary, all processes must call this method. Default: every device
        has a copy of the state.

    Raises:
      WorkdirError: data.npz cannot be read.
      checkpoints.CheckpointError: the checkpoints cannot be opened.
    """
    path, run = self.folder / 'data.npz', ''
    try:
      run = checksums.of_file(path) if hosts.is_main() else ''
    except OSError as error:
      raise WorkdirError(f'{path}: cannot be read: {error}') from error
    folder = self.folder / 'checkpoints'
    if placement is not None and placement.is_cut:
      return shard_checkpoints.ShardCheckpoints(
        folder, placement, writing=writing, run=run
      )
    return checkpoints_lib.Checkpoints(folder, writing=writing, run=run)

  def best_params(
    self, shapes: Any, placement: placement_lib.Placement | None = None
  ) -> tuple[Any, int]:
    """Reads the parameters of the best checkpoint.

    Args:
      shapes: the result of `parameters.param_shapes`.
      placement: as for `checkpoints`.

    Returns:
      The parameters, on the devices if `placement` cuts the vocabulary, and
      otherwise as NumPy arrays. Then the step of the checkpoint.

    Raises:
      WorkdirError: data.npz cannot be read.
      checkpoints.CheckpointError: there is no checkpoint, or none is usable.
    """
    with self.checkpoints(writing=False, placement=placement) as checkpoints:
      restored = checkpoints.best({'params': shapes})
    if restored is None:
      raise checkpoints_lib.CheckpointError(
        f'{self.folder}: no checkpoint yet: train first'
      )
    state, metadata = restored
    return state['params'], metadata['step']

  def write_results(self, results: dict[str, Any]) -> pathlib.Path:
    """Writes results.json (test) or results_<split>.json (train and valid).

    Args:
      results: the results of a task. `split` is one of the keys.

    Returns:
      The path of the file.

    Raises:
      atomic_files.WriteError: the file cannot be written.
    """
    path = self.folder / layout.RESULTS[results['split']]
    json_files.write_json(path, results)
    return path

  def metrics(self) -> metrics_log.MetricsLog:
    """Returns the log of training and validation, metrics.jsonl."""
    return metrics_log.MetricsLog(self.folder / 'metrics.jsonl')
