"""Checkpoints of a training: the last ones and the best, checked when read.

The only file that knows orbax. Every checkpoint holds the state and a small
JSON with the SHA-256 of the state's numbers, because a flipped byte in a data
file would otherwise come back as a wrong number without a word.
"""

import hashlib
import logging
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp

_KEPT = 2  # the newest checkpoints, in case the last one is damaged


class CheckpointError(RuntimeError):
  """No usable checkpoint, or one that could not be written."""


class Checkpoints:
  """The checkpoints below a folder; use it as a context manager."""

  def __init__(self, folder: pathlib.Path):
    self._folder = folder.absolute()
    self._best_step: int | None = None
    self._manager = ocp.CheckpointManager(
      self._folder,
      options=ocp.CheckpointManagerOptions(
        preservation_policy=_Preservation(self),
        cleanup_tmp_directories=True,
        enable_async_checkpointing=False,
        step_prefix='step',
      ),
      item_names=('state', 'metadata'),
    )

  def __enter__(self) -> 'Checkpoints':
    return self

  def __exit__(self, *_: object) -> None:
    self._manager.close()

  def save(
    self,
    step: int,
    state: Any,
    metadata: dict[str, Any],
  ) -> None:
    """Writes a checkpoint; has no effect if the step has one already.

    Then only the last two checkpoints and the best one are kept.

    Args:
      step: its number.
      state: a tree of arrays.
      metadata: what JSON can hold, comes back with the state. `best_step` says
        which checkpoint is the best so far, None if it cannot be told yet.

    Raises:
      CheckpointError: it was not written.
    """
    if step in self._manager.all_steps():
      return
    self._best_step = metadata['best_step']
    host = jax.device_get(state)
    saved = self._manager.save(
      step,
      args=ocp.args.Composite(
        state=ocp.args.StandardSave(host),
        metadata=ocp.args.JsonSave({**metadata, 'sha256': digest(host)}),
      ),
    )
    if not saved:
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} was not written'
      )

  def latest(self, template: Any) -> tuple[Any, dict[str, Any]] | None:
    """The newest usable (state, metadata), or None if none was ever saved.

    Args:
      template: a tree of arrays, or of their shapes and dtypes, like the state.

    Raises:
      CheckpointError: there are checkpoints and none can be used.
    """
    return self._first_usable(
      sorted(self._manager.all_steps(), reverse=True), template
    )

  def best(self, template: Any) -> tuple[Any, dict[str, Any]] | None:
    """The (state, metadata) that validated best; without any, the newest."""
    latest = self.latest(template)
    if latest is None or latest[1]['best_step'] in (None, latest[1]['step']):
      return latest
    best = latest[1]['best_step']
    steps = sorted(self._manager.all_steps(), reverse=True)
    if best not in steps:
      raise CheckpointError(
        f'{self._folder}: the best checkpoint, step {best}, is missing'
      )
    state, metadata = self._restore(best, template)
    return state, metadata

  def _first_usable(
    self, steps: list[int], template: Any
  ) -> tuple[Any, dict[str, Any]] | None:
    for step in steps:
      try:
        return self._restore(step, template)
      except CheckpointError as error:
        logging.warning('%s: trying the one before', error)
    if steps:
      raise CheckpointError(
        f'{self._folder}: none of the checkpoints {steps} can be used'
      )
    return None

  def _restore(self, step: int, template: Any) -> tuple[Any, dict[str, Any]]:
    shapes = jax.tree.map(
      lambda leaf: np.empty(leaf.shape, dtype=leaf.dtype), template
    )
    try:
      restored = self._manager.restore(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardRestore(shapes),
          metadata=ocp.args.JsonRestore(),
        ),
      )
    except Exception as error:  # orbax raises whatever its layers raise
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} cannot be read: '
        f'{type(error).__name__}: {str(error).splitlines()[0][:300]}'
      ) from error
    metadata = restored['metadata']
    state = jax.tree.map(np.asarray, restored['state'])
    if metadata.pop('sha256') != digest(state):
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} is damaged: its '
        'numbers are not the ones that were saved'
      )
    return state, metadata


class _Preservation:
  """Keeps the last two checkpoints, and the best whatever its age."""

  def __init__(self, checkpoints: Checkpoints):
    self._checkpoints = checkpoints

  def should_preserve(
    self, checkpoints: Sequence[Any], *, context: Any
  ) -> list[bool]:
    del context
    best = self._checkpoints._best_step
    oldest_kept = len(checkpoints) - _KEPT
    return [
      index >= oldest_kept or info.step == best
      for index, info in enumerate(checkpoints)
    ]


def digest(state: Any) -> str:
  """SHA-256 over the names, types, shapes and bytes of a tree of arrays."""
  sha = hashlib.sha256()
  for path, leaf in jax.tree_util.tree_leaves_with_path(state):
    array = np.ascontiguousarray(leaf)
    name = jax.tree_util.keystr(path)
    sha.update(f'{name} {array.dtype} {array.shape}\n'.encode())
    sha.update(array.tobytes())
  return sha.hexdigest()
