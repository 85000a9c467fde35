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
import json
import os
import pathlib
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import ml_collections
import numpy as np

from coke_jax import checkpoint
from coke_jax import config as config_lib
from coke_jax.data import arrays, files
from coke_jax.data import vocabulary as vocabulary_lib

# What reading a damaged .npz file can raise.
_UNREADABLE = (
  OSError,
  EOFError,
  KeyError,
  RuntimeError,
  TypeError,
  ValueError,
  zipfile.BadZipFile,
  zlib.error,
)


class WorkdirError(RuntimeError):
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
    """Keeps other processes from writing here, for a `with` statement.

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
      yield

  def create(
    self,
    config: ml_collections.ConfigDict,
    data: arrays.DataSet,
  ) -> None:
    """Begins a run: writes its settings, labels and splits.

    Raises:
      WorkdirError: the folder has a run, or checkpoints of an unknown one.
    """
    if self.exists:
      raise WorkdirError(f'{self.folder}: a run was begun here meanwhile')
    checkpoints = self.folder / 'checkpoints'
    if checkpoints.exists() and any(checkpoints.iterdir()):
      raise WorkdirError(
        f'{self.folder}: holds checkpoints but no config.json: nothing was '
        'changed; choose another folder, or move them away'
      )
    vocabulary = data.vocabulary
    write_json(
      self.folder / 'vocabulary.json',
      {'entities': vocabulary.entities, 'relations': vocabulary.relations},
    )
    with (
      files.whole_file(self.folder / 'data.npz') as path,
      path.open('wb') as out,
    ):
      np.savez(out, **arrays.to_arrays(data))  # type: ignore[arg-type]
    write_json(self.folder / 'config.json', config.to_dict())  # last: it counts

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
    path = self.folder / 'config.json'
    try:
      return config_lib.from_dict(self._read_json(path))
    except ValueError as error:
      raise WorkdirError(f'{path}: {error}') from error

  def data(self) -> arrays.DataSet:
    """The data the run was begun with."""
    path = self.folder / 'vocabulary.json'
    labels = self._read_json(path)
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
    vocabulary = vocabulary_lib.Vocabulary(
      tuple(labels['entities']), tuple(labels['relations'])
    )
    path = self.folder / 'data.npz'
    try:
      with (
        path.open('rb') as stream,
        np.load(stream, allow_pickle=False) as saved,
      ):
        return arrays.from_arrays(
          self.config().data.name, vocabulary, dict(saved)
        )
    except _UNREADABLE as error:
      raise WorkdirError(f'{path}: cannot be read: {error}') from error

  def checkpoints(self, *, writing: bool) -> checkpoint.Checkpoints:
    """The checkpoints, to be used as a context manager."""
    return checkpoint.Checkpoints(self.folder / 'checkpoints', writing=writing)

  def write_results(self, results: dict[str, Any]) -> pathlib.Path:
    """Writes results.json for test, results_valid.json for valid."""
    split = results['split']
    name = 'results.json' if split == 'test' else f'results_{split}.json'
    write_json(self.folder / name, results)
    return self.folder / name

  def metrics(self) -> 'MetricsLog':
    """The log of training and validation."""
    return MetricsLog(self.folder / 'metrics.jsonl')

  def _read_json(self, path: pathlib.Path) -> Any:
    try:
      return json.loads(path.read_text(encoding='utf-8'))
    except FileNotFoundError:
      raise WorkdirError(
        f'{self.folder}: no {path.name}: expected a folder that training wrote'
      ) from None
    except (OSError, ValueError) as error:
      raise WorkdirError(f'{path}: cannot be read: {error}') from error


class MetricsLog:
  """metrics.jsonl: one JSON object a line, in the order of steps."""

  def __init__(self, path: pathlib.Path):
    self._path = path

  def read(self) -> list[dict[str, Any]]:
    """All complete lines."""
    if not self._path.exists():
      return []
    text = self._path.read_text(encoding='utf-8')
    lines = []
    # A kill can leave the last line half written.
    for number, line in enumerate(text.split('\n')[:-1], start=1):
      try:
        lines.append(json.loads(line))
      except ValueError as error:
        raise WorkdirError(
          f'{self._path}:{number}: expected a JSON object: {error}'
        ) from error
    return lines

  def cut_after(self, step: int) -> None:
    """Takes out lines after `step`, which training is about to write again."""
    kept = [line for line in self.read() if line['step'] <= step]
    with files.whole_file(self._path) as path:
      path.write_text(''.join(map(_json_line, kept)), encoding='utf-8')

  def append(self, line: dict[str, Any]) -> None:
    """Adds a line; it is on disk when this returns."""
    with self._path.open('a', encoding='utf-8') as out:
      out.write(_json_line(line))


def _json_line(line: dict[str, Any]) -> str:
  return json.dumps(line, allow_nan=False) + '\n'


def write_json(path: pathlib.Path, value: Any) -> None:
  """Writes JSON for programs and people; the file is whole or not there."""
  text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
  with files.whole_file(path) as temporary:
    temporary.write_text(text + '\n', encoding='utf-8')
