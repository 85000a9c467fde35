"""The work folder: all that a run leaves, and all that reading it back needs.

config.json       the settings
vocabulary.json   entity and relation labels, in the order of their ids
data.npz          train, valid and test as ids
checkpoints/      the last ones and the best
metrics.jsonl     a line for each log and each validation
results.json      test metrics of the best checkpoint
results_valid.json   likewise of valid, when asked for
damaged_checkpoints/ what could not be read, moved aside
tensorboard/      events, when asked for
"""

import contextlib
import fcntl
import hashlib
import json
import os
import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import errors, parallel, tasks
from coke_jax.data import arrays, atomic_files
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import metrics_log
from coke_jax.training import train_state


def load_best_params(
  config: ml_collections.ConfigDict,
  task: tasks.Task,
  folder: 'Workdir',
) -> tuple[Any, int]:
  """Replicated parameters of a work folder's best checkpoint, and its step.

  Raises:
    checkpoints.CheckpointError: there is none, or it is damaged.
  """
  model = tasks.build_model(config, task.data.vocabulary, task.max_length)
  transformation, _ = train_state.build_optimizer(config, 1)
  template = jax.eval_shape(
    lambda: train_state.init_state(model, transformation, config.train.seed)
  )
  with folder.checkpoints(writing=False) as checkpoints:
    restored = checkpoints.best(template)
  if restored is None:
    raise checkpoints_lib.CheckpointError(
      f'{folder.folder}: no checkpoint yet: train first'
    )
  state, metadata = restored
  return parallel.replicate(state.params), metadata['step']


_DIGEST = ' sha256'  # in data.npz, after the name of another file


class WorkdirError(errors.CokeError, RuntimeError):
  """A work folder that does not hold, or may not take, what was asked."""


class Workdir:
  """The files of one run.

  Attributes:
    folder: where they are.
  """

  def __init__(self, folder: str | os.PathLike[str]):
    self.folder = pathlib.Path(folder).expanduser()

  @property
  def exists(self) -> bool:
    """Whether a run was begun here."""
    return (self.folder / 'config.json').is_file()

  @contextlib.contextmanager
  def locked(self) -> Iterator[None]:
    """Keeps other processes from training here, for a `with` statement.

    What earlier ones were killed over, half-written files, is taken away.

    Raises:
      WorkdirError: another process holds the lock, or the folder cannot be
        made or written.
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
      except OSError as error:  # some network file systems have no locks
        raise WorkdirError(
          f'{self.folder}: cannot be locked: {error}'
        ) from error
      # Under the lock, yet an evaluation may be at work here, too.
      atomic_files.remove_unfinished(self.folder)
      yield

  def create(
    self,
    config: ml_collections.ConfigDict,
    data: arrays.DataSet,
  ) -> None:
    """Begins a run: writes its settings, labels and splits.

    Raises:
      WorkdirError: the folder has a run, or checkpoints of an unknown one.
      atomic_files.WriteError: a file cannot be written.
    """
    if self.exists:
      raise WorkdirError(f'{self.folder}: a run was begun here meanwhile')
    checkpoints = self.folder / 'checkpoints'
    if checkpoints.exists() and any(checkpoints.iterdir()):
      raise WorkdirError(
        f'{self.folder}: holds checkpoints but no config.json: nothing was '
        'changed; choose another folder, or move them away'
      )
    write_vocabulary(self.folder / 'vocabulary.json', data.vocabulary)
    settings = config.to_dict()
    saved = {**arrays.to_arrays(data), **_digests(settings, data.vocabulary)}
    with (
      atomic_files.whole_file(self.folder / 'data.npz') as path,
      path.open('wb') as out,
    ):
      np.savez(out, **saved)  # type: ignore[arg-type]
    write_json(self.folder / 'config.json', settings)  # last: it counts

  def check_config(self, config: ml_collections.ConfigDict) -> None:
    """Refuses settings other than the ones the run here was begun with.

    Raises:
      WorkdirError: names the settings that differ.
    """
    differing = config_lib.differences(self.config(), config)
    if differing:
      raise WorkdirError(
        f'{self.folder}: was begun with other settings:\n  '
        + '\n  '.join(differing)
        + '\nNothing was changed. Choose another --workdir, or the same '
        'settings, or leave out --config to use the ones there'
      )

  def config(self) -> ml_collections.ConfigDict:
    """The settings the run was begun with."""
    return read_config(self.folder / 'config.json')

  def data(self) -> arrays.DataSet:
    """The data the run was begun with.

    Raises:
      WorkdirError: a file is missing or damaged, or is another run's.
    """
    name = self.config().data.name
    vocabulary = read_vocabulary(self.folder / 'vocabulary.json')
    path = self.folder / 'data.npz'
    try:
      with (
        path.open('rb') as stream,
        np.load(stream, allow_pickle=False) as archive,
      ):
        saved = dict(archive)
      data = arrays.from_arrays(name, vocabulary, saved)
    except Exception as error:  # a damaged archive raises anything
      raise WorkdirError(f'{path}: cannot be read: {error}') from error
    settings = read_json(self.folder / 'config.json')
    for key, digest in _digests(settings, vocabulary).items():
      if key in saved and not np.array_equal(saved[key], digest):
        raise WorkdirError(
          f'{self.folder / key.removesuffix(_DIGEST)}: was changed, or is of '
          f'another run: expected what {path.name} was written together with'
        )
    return data

  def checkpoints(self, *, writing: bool) -> checkpoints_lib.Checkpoints:
    """The checkpoints, to be used as a context manager.

    They belong to data.npz, and hence to the settings and labels beside it.
    """
    try:
      with (self.folder / 'data.npz').open('rb') as stream:
        run = hashlib.file_digest(stream, 'sha256').hexdigest()
    except OSError as error:
      raise WorkdirError(
        f'{self.folder / "data.npz"}: cannot be read: {error}'
      ) from error
    return checkpoints_lib.Checkpoints(
      self.folder / 'checkpoints', writing=writing, run=run
    )

  def write_results(self, results: dict[str, Any]) -> pathlib.Path:
    """Writes results.json for test, results_valid.json for valid."""
    split = results['split']
    name = 'results.json' if split == 'test' else f'results_{split}.json'
    write_json(self.folder / name, results)
    return self.folder / name

  def metrics(self) -> metrics_log.MetricsLog:
    """The log of training and validation."""
    return metrics_log.MetricsLog(self.folder / 'metrics.jsonl')


def _digests(
  settings: dict[str, Any], vocabulary: vocabulary_lib.Vocabulary
) -> dict[str, np.ndarray]:
  """What data.npz says of the files beside it: uint8 [32] by name.

  Settings that may change are left out, and so is all formatting.
  """
  fixed = config_lib.flatten(ml_collections.ConfigDict(settings))
  for field in config_lib.RUNTIME_FIELDS:
    fixed.pop(field, None)
  contents = {
    'config.json': fixed,
    'vocabulary.json': [vocabulary.entities, vocabulary.relations],
  }
  return {
    name + _DIGEST: np.frombuffer(
      hashlib.sha256(json.dumps(content, sort_keys=True).encode()).digest(),
      dtype=np.uint8,
    )
    for name, content in contents.items()
  }


def read_config(path: pathlib.Path) -> ml_collections.ConfigDict:
  """The settings that a config.json holds.

  Raises:
    WorkdirError: it is missing, unreadable or not valid.
  """
  try:
    return config_lib.from_dict(read_json(path))
  except ValueError as error:
    raise WorkdirError(f'{path}: {error}') from error


def read_vocabulary(path: pathlib.Path) -> vocabulary_lib.Vocabulary:
  """The labels that a vocabulary.json holds.

  Raises:
    WorkdirError: it is missing, unreadable or not valid.
  """
  labels = read_json(path)
  for name in ('entities', 'relations'):
    names = labels.get(name) if isinstance(labels, dict) else None
    if not (
      isinstance(names, list)
      and all(isinstance(label, str) for label in names)
      and len(set(names)) == len(names)
    ):
      raise WorkdirError(
        f'{path}: expected "{name}": a list of different texts'
      )
  return vocabulary_lib.Vocabulary(
    tuple(labels['entities']), tuple(labels['relations'])
  )


def write_vocabulary(
  path: pathlib.Path, vocabulary: vocabulary_lib.Vocabulary
) -> None:
  """Writes what `read_vocabulary` reads."""
  write_json(
    path,
    {'entities': vocabulary.entities, 'relations': vocabulary.relations},
  )


def read_json(path: pathlib.Path) -> Any:
  """The value that a JSON file holds.

  Raises:
    WorkdirError: it is missing or unreadable.
  """
  try:
    return json.loads(path.read_text(encoding='utf-8'))
  except FileNotFoundError:
    raise WorkdirError(
      f'{path.parent}: no {path.name}: expected a folder that training wrote'
    ) from None
  except (OSError, ValueError, RecursionError) as error:
    raise WorkdirError(f'{path}: cannot be read: {error}') from error


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes JSON for programs and people; the file is whole or not there.

  Raises:
    atomic_files.WriteError: it cannot be written.
  """
  text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
  with atomic_files.whole_file(path) as temporary:
    temporary.write_text(text + '\n', encoding='utf-8')
