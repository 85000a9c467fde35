"""Writes and reads checkpoints if the vocabulary is cut, see `placement`.

Every process writes the shards of its devices, and only reads what its devices
need. So the folder must be on a file system that all hosts share. Checkpoints
without shards can also be read: process 0 reads them and sends the arrays.

The folder of a checkpoint contains the files of `shard_files` instead of orbax
files. All processes write into a hidden folder. When every file is complete,
process 0 writes the metadata, with the SHA-256 of each file, and renames the
folder. If a process is lost before that, there is no new checkpoint.
"""

import contextlib
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import jax

from coke_jax import errors, hosts
from coke_jax.shards import placement as placement_lib
from coke_jax.storage import (
  checkpoint_folders,
  checkpoint_metadata,
  checkpoints,
  orbax_manager,
  orbax_noise,
  shard_files,
)

_EXPECTED = (
  'expected a folder on a file system that all hosts share, under the same '
  'path, because config.shard_vocabulary is True'
)


class SharedFolderError(errors.CokeError, RuntimeError):
  """A process cannot use the folder of the checkpoints."""


class ShardCheckpoints(checkpoints.Checkpoints):
  """The checkpoints in a folder, used as a context manager.

  All processes must call the same methods in the same order. If there is an
  error in one process, all processes raise it.
  """

  def __init__(
    self,
    folder: pathlib.Path,
    placement: placement_lib.Placement,
    *,
    writing: bool,
    run: str = '',
  ):
    """Opens a folder of checkpoints.

    Args:
      folder: as for `Checkpoints`. The argument of process 0 is used.
      placement: how states are distributed over the devices. It must cut the
        vocabulary.
      writing: whether checkpoints will be saved.
      run: as for `Checkpoints`. The argument of process 0 is used.

    Raises:
      CheckpointError: the folder cannot be opened.
      SharedFolderError: a process cannot write in the folder.
    """
    name, run = hosts.broadcast([str(folder.absolute()), run])
    super().__init__(pathlib.Path(name), writing=writing, run=run)
    self._placement = placement
    if writing and hosts.num_processes() > 1:
      self._check_folder()

  def save(
    self, step: int, state: checkpoints.State, metadata: dict[str, Any]
  ) -> None:
    """Writes a checkpoint, as `Checkpoints.save` does.

    Args:
      step: the step of the checkpoint.
      state: the items `params` and `training`. Each is a cut tree on the
        devices, see `placement`.
      metadata: as for `Checkpoints`. The metadata of process 0 are used.

    Raises:
      CheckpointError: the checkpoint could not be written.
    """
    what = f'{self._folder}: the checkpoint of step {step} cannot be written'
    self._retention.best_step = metadata['best_step']

    def prepare() -> tuple[bool, str]:
      """Returns whether to compute checksums, and where to write the files."""
      self._move_damaged_away()
      if step in self.steps():
        # Files that were written on another number of devices cannot be
        # compared.
        old = self._metadata(step)
        return old.get('shards') == self._described_shards(), ''
      folder = checkpoint_folders.unfinished(self._folder, step)
      for item in (*state, 'metadata'):
        (folder / item).mkdir(parents=True)
      return True, str(folder)

    needed, name = self._in_main(what, prepare)
    folder = pathlib.Path(name) if name else None
    files: dict[str, str] = {}

    def finish() -> None:
      described = {**metadata, 'run': self._run}
      if folder is not None:
        shards = self._described_shards()
        described |= {'shards': shards, 'files': files}
        checkpoint_metadata.write(folder, described)
        folder.rename(self._place(step))
        self._delete_surplus()
        return
      old = self._metadata(step)
      if needed and files != old['files']:
        raise self._another_state(step)
      for key in ('arrays', 'shards', 'files'):
        if key in old:
          described[key] = old[key]
      if described != old:
        checkpoint_metadata.write(self._place(step), described)

    try:
      if needed:
        for part in self._in_all(
          what, lambda: shard_files.write(folder, dict(state))
        ):
          files |= part
      self._in_main(what, finish)
    finally:
      # After an error, the hidden folder still exists.
      if folder is not None and hosts.is_main():
        shutil.rmtree(folder, ignore_errors=True)

  def _listed_steps(self) -> list[int]:
    steps: list[int] = hosts.broadcast(self.steps())
    return steps

  def _restore(
    self, step: int, template: checkpoints.State
  ) -> checkpoints.Restored:
    """Returns cut trees on the devices, and the metadata."""
    what = f'{self._folder}: the checkpoint of step {step} cannot be read'
    shapes = jax.eval_shape(lambda: dict(template))
    found: dict[str, Any] = {}
    metadata = self._in_main(what, lambda: self._metadata(step))
    own = self._checked(step, metadata)
    if 'shards' in metadata:
      place = self._place(step)
      for number, seen in enumerate(hosts.gather(place.is_dir())):
        if not seen:
          raise SharedFolderError(
            f'{place}: {hosts.describe(number)} has no such folder: {_EXPECTED}'
          )
      reader = shard_files.Reader.of(place, metadata)
      self._in_all(
        what, lambda: found.update(reader.read_placed(shapes, self._placement))
      )
      return found, own
    read_whole = super()._restore
    self._in_main(what, lambda: found.update(read_whole(step, shapes)[0]))
    return self._placement.place_from_main(found or shapes), own

  def _described_shards(self) -> dict[str, int]:
    return shard_files.describe(self._placement)

  def _delete_surplus(self) -> None:
    """Deletes all checkpoints except the newest two and the best."""
    assert self._manager is not None
    orbax_manager.reload(self._manager)
    steps = sorted(self.steps())
    for step, kept in zip(steps, self._retention.kept(steps), strict=True):
      if not kept:
        checkpoint_folders.delete(self._folder, step)
    orbax_manager.reload(self._manager)

  def _in_all(self, what: str, function: Callable[[], Any]) -> list[Any]:
    """Calls a function in all processes. Returns the list of all results.

    Args:
      what: the start of the error message.
      function: the function. It returns JSON data.

    Raises:
      CheckpointError: a process raised an error.
    """
    outcomes = hosts.gather(_outcome(what, function))
    for _, error in outcomes:
      if error:
        raise checkpoints.CheckpointError(error)
    return [result for result, _ in outcomes]

  def _in_main(self, what: str, function: Callable[[], Any]) -> Any:
    """Calls a function in process 0. Returns its result in all processes.

    Arguments and errors are those of `_in_all`.
    """
    result, error = hosts.broadcast(
      _outcome(what, function) if hosts.is_main() else None
    )
    if error:
      raise checkpoints.CheckpointError(error)
    return result

  def _check_folder(self) -> None:
    """Raises SharedFolderError if a process cannot use the folder."""
    test = pathlib.Path(
      hosts.broadcast(str(checkpoint_folders.unfinished(self._folder, 'test')))
    )
    own = test.with_suffix(f'.{jax.process_index()}')
    try:
      own.touch()
      error = ''
    except OSError as caught:
      error = str(caught)
    problems = hosts.gather(error)
    for number, problem in enumerate(problems):
      if hosts.is_main() and not problem:
        seen = test.with_suffix(f'.{number}').exists()
        problems[number] = '' if seen else 'process 0 does not find its file'
    problems = hosts.broadcast(problems)
    with contextlib.suppress(OSError):
      own.unlink()
    for number, problem in enumerate(problems):
      if problem:
        raise SharedFolderError(
          f'{self._folder}: {hosts.describe(number)} cannot write here: '
          f'{problem}: {_EXPECTED}'
        )


def _outcome(what: str, function: Callable[[], Any]) -> tuple[Any, str]:
  """Calls a function. Returns its result and the message of its error."""
  try:
    return function(), ''
  except checkpoints.CheckpointError as error:
    return None, str(error)
  except Exception as error:  # Orbax documents no exception types.
    return None, f'{what}: {orbax_noise.reason(error)}'
