"""Writes and reads the checkpoints of a training; verifies them on reading.

`orbax_manager` calls orbax. A checkpoint is a folder with:

params    the model's parameters
training  the rest of the training state, which is needed to resume
metadata  a small JSON object

If the vocabulary is cut, `shard_checkpoints` writes the checkpoint with other
files. This module can read such a checkpoint, too.

If a byte of an array file is flipped, orbax restores a wrong number without an
error. So the metadata contain the SHA-256 of each array file and of each item.
"""

import logging
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from coke_jax import errors, hosts
from coke_jax.storage import (
  checkpoint_metadata,
  checksums,
  orbax_manager,
  orbax_noise,
  retention,
  shard_files,
)

# Damaged checkpoints are moved to this folder in the work folder.
_DAMAGED = 'damaged_checkpoints'

# For each item, such as `params`, a tree of arrays.
State = Mapping[str, Any]
# A state and the metadata of its checkpoint.
Restored = tuple[dict[str, Any], dict[str, Any]]


class CheckpointError(errors.CokeError, RuntimeError):
  """No checkpoint is usable, or a checkpoint could not be written."""


class Checkpoints:
  """The checkpoints in a folder, used as a context manager."""

  def __init__(self, folder: pathlib.Path, *, writing: bool, run: str = ''):
    """Opens a folder of checkpoints.

    Args:
      folder: the folder, which need not exist.
      writing: whether checkpoints will be saved. If False, nothing in the
        folder is changed.
      run: identifies the run. Checkpoints of other runs are not used. If empty,
        the run is not checked.

    Raises:
      CheckpointError: the folder cannot be opened.
    """
    self._folder = folder.absolute()
    self._run = run
    self._retention = retention.Retention()
    self._damaged: set[int] = set()
    self._manager: Any = None
    if folder.exists() and not folder.is_dir():
      raise CheckpointError(
        f'{self._folder}: is a file: expected the folder of the checkpoints'
      )
    if hosts.is_main() and (writing or folder.is_dir()):
      try:
        self._manager = orbax_manager.open_folder(
          self._folder, self._retention, writing=writing
        )
      except Exception as error:  # Orbax documents no exception types.
        raise CheckpointError(
          f'{self._folder}: cannot be opened: {orbax_noise.reason(error)}'
        ) from error

  def __enter__(self) -> 'Checkpoints':
    return self

  def __exit__(self, *_: object) -> None:
    if self._manager is not None:
      self._manager.close()

  def steps(self) -> list[int]:
    """Returns the steps that have a checkpoint, newest first."""
    if self._manager is None:
      return []
    return sorted(self._manager.all_steps(), reverse=True)

  def save(self, step: int, state: State, metadata: dict[str, Any]) -> None:
    """Writes a checkpoint, then deletes all except the newest two and the best.

    If the step already has a checkpoint, only its metadata are written. Damaged
    checkpoints that `latest` found are first moved to another folder.

    Args:
      step: the step of the checkpoint.
      state: the items `params` and `training`, trees of arrays. If the step
        already has a checkpoint, its arrays must equal `state`.
      metadata: a JSON object with at least two keys. `step` is the step, and
        `best_step` is the step of the best checkpoint so far, or None.

    Raises:
      CheckpointError: the checkpoint could not be written.
    """
    assert self._manager is not None, 'opened for reading'
    self._retention.best_step = metadata['best_step']
    host = jax.device_get(dict(state))
    described = {**metadata, 'run': self._run, 'arrays': _arrays(host)}
    try:
      self._move_damaged_away()
      if step in self.steps():
        old = self._metadata(step)
        if 'shards' in old:  # The state was restored from this checkpoint.
          del described['arrays']
          described['shards'] = old['shards']
        elif old['arrays'] != described['arrays']:
          raise self._another_state(step)
      else:
        if not orbax_manager.save(self._manager, step, host, described):
          raise CheckpointError(
            f'{self._folder}: the checkpoint of step {step} was not written'
          )
        old = described
      # The files are listed after orbax has written them. If the process is
      # killed in between, the checkpoint is complete but has no list.
      listed = old.get('files') or {
        name: sha256
        for name, sha256 in checksums.of_tree(self._place(step)).items()
        if name.split('/')[0] in host
      }
      described = {**described, 'files': listed}
      if described != old:
        checkpoint_metadata.write(self._place(step), described)
    except CheckpointError:
      raise
    except Exception as error:  # Orbax documents no exception types.
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} cannot be written: '
        f'{orbax_noise.reason(error)}'
      ) from error

  def latest(self, template: State) -> Restored | None:
    """Returns the newest usable state and its metadata.

    Args:
      template: the items to restore, `params` or both `params` and `training`.
        Each item is a tree of arrays, or of their shapes and dtypes.

    Returns:
      The state, then the metadata. None if there are no checkpoints.

    Raises:
      CheckpointError: there are checkpoints, but none is usable.
    """
    for step in (steps := self._listed_steps()):
      try:
        return self._restore(step, template)
      except CheckpointError as error:
        logging.warning('%s: trying the previous checkpoint', error)
        self._damaged.add(step)
    if steps:
      raise CheckpointError(
        f'{self._folder}: none of the checkpoints {steps} can be used'
      )
    return None

  def best(self, template: State) -> Restored | None:
    """Returns the best state and its metadata.

    If there was no validation yet, or if the best checkpoint is missing or
    damaged, returns the newest state. Arguments and errors are those of
    `latest`.
    """
    latest = self.latest(template)
    if latest is None or latest[1]['best_step'] in (None, latest[1]['step']):
      return latest
    step = latest[1]['best_step']
    try:
      if step not in self._listed_steps():
        raise CheckpointError(
          f'{self._folder}: the best checkpoint, of step {step}, is missing'
        )
      return self._restore(step, template)
    except CheckpointError as error:
      logging.warning(
        '%s: using the newest, of step %d', error, latest[1]['step']
      )
      return latest

  def _listed_steps(self) -> list[int]:
    """Returns the steps from which `latest` and `best` choose."""
    return self.steps()

  def _restore(self, step: int, template: State) -> Restored:
    shapes = jax.tree.map(
      lambda leaf: np.empty(leaf.shape, dtype=leaf.dtype), dict(template)
    )
    place = f'{self._folder}: the checkpoint of step {step}'
    try:
      metadata = self._metadata(step)
      if 'shards' in metadata:
        state = shard_files.Reader.of(self._place(step), metadata).read_whole(
          shapes
        )
      else:
        assert self._manager is not None, 'there are no checkpoints'
        listed = {
          name: sha256
          for name, sha256 in metadata.get('files', {}).items()
          if name.split('/')[0] in shapes
        }
        checksums.compare(self._place(step), listed, 'its metadata')
        state = orbax_manager.restore(self._manager, step, shapes)
    except Exception as error:  # Orbax documents no exception types.
      raise CheckpointError(
        f'{place} cannot be read: {orbax_noise.reason(error)}'
      ) from error
    for path, got in jax.tree_util.tree_leaves_with_path(state):
      expected = dict(jax.tree_util.tree_leaves_with_path(shapes))[path]
      if got.shape != expected.shape:
        raise CheckpointError(
          f'{place} is of another model: '
          f'{jax.tree_util.keystr(path)} has the shape {got.shape}, expected '
          f'{expected.shape}'
        )
    if 'shards' not in metadata and _arrays(state) != {
      item: metadata['arrays'].get(item) for item in state
    }:
      raise CheckpointError(
        f'{place} is damaged: its arrays differ from those that were saved'
      )
    return state, self._checked(step, metadata)

  def _checked(self, step: int, metadata: dict[str, Any]) -> dict[str, Any]:
    """Returns the metadata that were passed to `save`.

    Raises:
      CheckpointError: the checkpoint is of another step or run.
    """
    place = f'{self._folder}: the checkpoint of step {step}'
    if metadata['step'] != step:
      raise CheckpointError(
        f'{place} is a renamed checkpoint of step {metadata["step"]}'
      )
    run = metadata['run']
    if run and self._run and run != self._run:
      raise CheckpointError(f'{place} is of another run')
    own = ('run', 'arrays', 'files', 'shards')
    return {key: metadata[key] for key in metadata if key not in own}

  def _another_state(self, step: int) -> CheckpointError:
    return CheckpointError(
      f'{self._folder}: the checkpoint of step {step} contains another state '
      'than the training: move this checkpoint away'
    )

  def _place(self, step: int) -> pathlib.Path:
    return self._folder / f'step_{step}'

  def _metadata(self, step: int) -> dict[str, Any]:
    return checkpoint_metadata.read(self._place(step))

  def _move_damaged_away(self) -> None:
    """Moves damaged checkpoints out of the folder. Deletes nothing."""
    assert self._manager is not None
    for step in sorted(self._damaged):
      folder = self._place(step)
      aside = self._folder.parent / _DAMAGED
      aside.mkdir(exist_ok=True)
      number = len(list(aside.iterdir()))
      folder.rename(aside / f'{folder.name}_{number}')
      logging.warning('%s: moved to %s', folder, aside)
    if self._damaged:
      self._damaged.clear()
      orbax_manager.reload(self._manager)


def _arrays(state: State) -> dict[str, str]:
  return {item: checksums.of_arrays(tree) for item, tree in state.items()}
