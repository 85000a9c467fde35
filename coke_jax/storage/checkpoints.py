"""Checkpoints of a training: the last ones and the best, checked when read.

The only file that calls orbax. Every checkpoint holds the state and a small
JSON; its SHA-256 covers both, because a flipped byte in a data file would
otherwise come back as a wrong number without a word. The JSON lists the
checksums of the files as well, so that damaged ones are not even opened.
"""

import functools
import hashlib
import json
import logging
import pathlib
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from coke_jax import errors
from coke_jax.data import atomic_files
from coke_jax.storage import checksums, orbax_noise

_KEPT = 2  # the newest checkpoints, in case the last one is damaged
_METADATA = ('metadata', 'metadata')  # where orbax writes the JSON
_DAMAGED = 'damaged_checkpoints'  # beside the folder of the good ones

Restored = tuple[Any, dict[str, Any]]  # a state and its metadata


class CheckpointError(errors.CokeError, RuntimeError):
  """No usable checkpoint, or one that could not be written."""


class Checkpoints:
  """The checkpoints below a folder; use it as a context manager."""

  def __init__(self, folder: pathlib.Path, *, writing: bool, run: str = ''):
    """Opens a folder of checkpoints.

    Args:
      folder: need not be there yet.
      writing: whether checkpoints will be saved; reading changes nothing.
      run: whose checkpoints these are, in any words; those of another run are
        not used. Empty: unknown.

    Raises:
      CheckpointError: the folder cannot be opened.
    """
    self._folder = folder.absolute()
    self._run = run
    self._best_step: int | None = None
    self._damaged: set[int] = set()
    self._manager: Any = None
    if folder.exists() and not folder.is_dir():
      raise CheckpointError(
        f'{self._folder}: is a file: expected the folder of the checkpoints'
      )
    if writing or folder.is_dir():
      ocp = _orbax()
      options = ocp.CheckpointManagerOptions(
        preservation_policy=_Preservation(self),
        create=writing,
        cleanup_tmp_directories=writing,
        enable_async_checkpointing=False,
        step_prefix='step',
      )
      try:
        self._manager = ocp.CheckpointManager(
          self._folder, options=options, item_names=('state', 'metadata')
        )
      except Exception as error:  # orbax raises whatever its layers raise
        raise CheckpointError(
          f'{self._folder}: cannot be opened: {_reason(error)}'
        ) from error

  def __enter__(self) -> 'Checkpoints':
    return self

  def __exit__(self, *_: object) -> None:
    if self._manager is not None:
      self._manager.close()

  def steps(self) -> list[int]:
    """The steps that have a checkpoint, the newest first."""
    if self._manager is None:
      return []
    return sorted(self._manager.all_steps(), reverse=True)

  def save(self, step: int, state: Any, metadata: dict[str, Any]) -> None:
    """Writes a checkpoint, or only the metadata if the step has one already.

    When it is written, only the last two checkpoints and the best one are kept.
    Damaged ones that were met before are moved out of the way.

    Args:
      step: its number.
      state: a tree of arrays; the same one if the step has a checkpoint.
      metadata: what JSON can hold, comes back with the state. `best_step` says
        which checkpoint is the best so far, None if it cannot be told yet.

    Raises:
      CheckpointError: it was not written.
    """
    assert self._manager is not None, 'opened for reading'
    self._best_step = metadata['best_step']
    host = jax.device_get(state)
    described = {**metadata, 'run': self._run}
    try:
      self._set_damaged_aside()
      if step in self.steps():
        old = self._metadata(step)
        if old.pop('sha256', None) != digest(host, old):
          raise CheckpointError(
            f'{self._folder}: the checkpoint of step {step} holds another '
            'state than the training: move it away'
          )
      else:
        self._write(step, host, old := described)
      # Listed only now that they are there. A kill before this, or an earlier
      # version of this program, leaves a whole checkpoint without a list.
      listed = old.get('files') or checksums.of_tree(self._place(step, 'state'))
      described = {**described, 'files': listed}
      if described != old:
        text = json.dumps(_signed(host, described))
        with atomic_files.whole_file(
          self._place(step, *_METADATA)
        ) as unfinished:
          unfinished.write_text(text, encoding='utf-8')
    except CheckpointError:
      raise
    except Exception as error:  # as above: a full disk has many names
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} cannot be written: '
        f'{_reason(error)}'
      ) from error

  def latest(self, template: Any) -> Restored | None:
    """The newest usable (state, metadata), or None if none was ever saved.

    Args:
      template: a tree of arrays, or of their shapes and dtypes, like the state.

    Raises:
      CheckpointError: there are checkpoints and none can be used.
    """
    steps = self.steps()
    for step in steps:
      try:
        return self._restore(step, template)
      except CheckpointError as error:
        logging.warning('%s: trying the one before', error)
        self._damaged.add(step)
    if steps:
      raise CheckpointError(
        f'{self._folder}: none of the checkpoints {steps} can be used'
      )
    return None

  def best(self, template: Any) -> Restored | None:
    """The (state, metadata) that validated best; without any, the newest."""
    latest = self.latest(template)
    if latest is None or latest[1]['best_step'] in (None, latest[1]['step']):
      return latest
    step = latest[1]['best_step']
    try:
      if step not in self.steps():
        raise CheckpointError(
          f'{self._folder}: the best checkpoint, of step {step}, is missing'
        )
      return self._restore(step, template)
    except CheckpointError as error:
      logging.warning(
        '%s: using the newest, of step %d', error, latest[1]['step']
      )
      return latest

  def _restore(self, step: int, template: Any) -> Restored:
    assert self._manager is not None, 'there are no checkpoints'
    shapes = jax.tree.map(
      lambda leaf: np.empty(leaf.shape, dtype=leaf.dtype), template
    )
    place = f'{self._folder}: the checkpoint of step {step}'
    ocp = _orbax()
    try:
      metadata = self._metadata(step)
      checksums.compare(
        self._place(step, 'state'), metadata.get('files', {}), 'its metadata'
      )
      with orbax_noise.silenced():
        restored = self._manager.restore(
          step,
          args=ocp.args.Composite(state=ocp.args.StandardRestore(shapes)),
        )
      state = jax.tree.map(np.asarray, restored['state'])
    except Exception as error:  # orbax raises whatever its layers raise
      raise CheckpointError(
        f'{place} cannot be read: {_reason(error)}'
      ) from error
    for path, got in jax.tree_util.tree_leaves_with_path(state):
      expected = dict(jax.tree_util.tree_leaves_with_path(shapes))[path]
      if got.shape != expected.shape:
        raise CheckpointError(
          f'{place} is of another model: '
          f'{jax.tree_util.keystr(path)} has the shape {got.shape}, expected '
          f'{expected.shape}'
        )
    if metadata.pop('sha256', None) != digest(state, metadata):
      raise CheckpointError(
        f'{place} is damaged: its content is not what was saved'
      )
    metadata.pop('files', None)
    if metadata.get('step', step) != step:
      raise CheckpointError(
        f'{place} is the one of step {metadata["step"]}, under another name'
      )
    run = metadata.pop('run', '')
    if run and self._run and run != self._run:
      raise CheckpointError(f'{place} is of another run')
    return state, metadata

  def _write(self, step: int, host: Any, described: dict[str, Any]) -> None:
    """Writes a whole checkpoint; old ones that are not kept go."""
    assert self._manager is not None
    ocp = _orbax()
    with orbax_noise.silenced():
      saved = self._manager.save(
        step,
        args=ocp.args.Composite(
          state=ocp.args.StandardSave(host),
          metadata=ocp.args.JsonSave(_signed(host, described)),
        ),
      )
    if not saved:
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} was not written'
      )

  def _place(self, step: int, *names: str) -> pathlib.Path:
    return self._folder.joinpath(f'step_{step}', *names)

  def _metadata(self, step: int) -> dict[str, Any]:
    """What a checkpoint says of itself, with its SHA-256."""
    text = self._place(step, *_METADATA).read_text(encoding='utf-8')
    return dict(json.loads(text))

  def _set_damaged_aside(self) -> None:
    """Moves damaged checkpoints where they do no harm; deletes nothing."""
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
      self._manager.reload()


class _Preservation:
  """Keeps the last two checkpoints, and the best whatever its age."""

  def __init__(self, checkpoints: Checkpoints):
    self._checkpoints = checkpoints

  def should_preserve(
    self, checkpoints: Sequence[Any], *, context: Any
  ) -> list[bool]:
    """Which of the checkpoints, oldest first, are kept."""
    del context
    best = self._checkpoints._best_step
    oldest_kept = len(checkpoints) - _KEPT
    return [
      index >= oldest_kept or info.step == best
      for index, info in enumerate(checkpoints)
    ]


@functools.cache
def _orbax() -> Any:
  """The library, imported when needed: exported models load without it."""
  import orbax.checkpoint

  orbax_noise.silence_late_errors()
  return orbax.checkpoint


def _reason(error: Exception) -> str:
  """An error of any library in a line."""
  text = (str(error).splitlines() or [''])[0]
  if len(text) > 400:  # the place comes first, and what is wrong there last
    text = f'{text[:200]} ... {text[-200:]}'
  return f'{type(error).__name__}: {text}'


def _signed(state: Any, metadata: dict[str, Any]) -> dict[str, Any]:
  return {**metadata, 'sha256': digest(state, metadata)}


def digest(state: Any, metadata: dict[str, Any]) -> str:
  """SHA-256 over the metadata and a tree's names, types, shapes and bytes."""
  sha = hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())
  for path, leaf in jax.tree_util.tree_leaves_with_path(state):
    array = np.ascontiguousarray(leaf)
    name = jax.tree_util.keystr(path)
    sha.update(f'{name} {array.dtype} {array.shape}\n'.encode())
    sha.update(array.tobytes())
  return sha.hexdigest()
