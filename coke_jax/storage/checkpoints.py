"""Writes and reads the checkpoints of a training; verifies them on reading.

Only this module and `orbax_noise` call orbax. A checkpoint is a folder with:

params    the model's parameters
training  the rest of the training state, which is needed to resume
metadata  a small JSON object

If a byte of an array file is flipped, orbax restores a wrong number without an
error. So the metadata lists the SHA-256 of each array file and of each item.
"""

import json
import logging
import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from coke_jax import errors, hosts
from coke_jax.data import atomic_files
from coke_jax.storage import checksums, orbax_noise, retention

_METADATA = ('metadata', 'metadata')  # path of the JSON below a checkpoint
_DAMAGED = 'damaged_checkpoints'  # beside the folder of the checkpoints

State = Mapping[str, Any]  # trees of arrays by item: `params` and `training`
Restored = tuple[dict[str, Any], dict[str, Any]]  # state and metadata


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
      run: identifies the run. A checkpoint of another run raises an error. If
        empty, the run is not checked.

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
    if writing or folder.is_dir():
      ocp = orbax_noise.import_orbax()
      options = ocp.CheckpointManagerOptions(
        preservation_policy=self._retention,
        create=False,
        **orbax_noise.process_options(hosts.num_processes()),
        cleanup_tmp_directories=writing,
        enable_async_checkpointing=False,
        step_prefix='step',
      )
      try:
        if writing:
          folder.mkdir(parents=True, exist_ok=True)
        self._manager = ocp.CheckpointManager(
          self._folder,
          options=options,
          item_names=('params', 'training', 'metadata'),
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
    """Writes a checkpoint, or only its metadata if the step has one already.

    First moves the damaged checkpoints that `latest` found to another folder.
    At the end, deletes all checkpoints except the newest two and the best.

    Args:
      step: the step of the checkpoint.
      state: the items `params` and `training`, trees of arrays. If the step
        already has a checkpoint, they must equal the arrays in it.
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
        if old['arrays'] != described['arrays']:
          raise CheckpointError(
            f'{self._folder}: the checkpoint of step {step} contains another '
            'state than the training: move this checkpoint away'
          )
      else:
        self._write(step, host, described)
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
        text = json.dumps(_signed(described))
        place = self._place(step, *_METADATA)
        with atomic_files.whole_file(place) as unfinished:
          unfinished.write_text(text, encoding='utf-8')
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
      template: trees of arrays or of shapes and dtypes, for the items to
        restore: `params`, or `params` and `training`.

    Returns:
      The state, then the metadata. None if there are no checkpoints.

    Raises:
      CheckpointError: there are checkpoints, but none is usable.
    """
    for step in (steps := self.steps()):
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

    Does the same as `latest` if there was no validation yet, or if the best
    checkpoint is damaged. Arguments and errors are those of `latest`.
    """
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

  def _restore(self, step: int, template: State) -> Restored:
    assert self._manager is not None, 'there are no checkpoints'
    shapes = jax.tree.map(
      lambda leaf: np.empty(leaf.shape, dtype=leaf.dtype), dict(template)
    )
    place = f'{self._folder}: the checkpoint of step {step}'
    ocp = orbax_noise.import_orbax()
    try:
      metadata = self._metadata(step)
      listed = {
        name: sha256
        for name, sha256 in metadata.pop('files', {}).items()
        if name.split('/')[0] in shapes
      }
      checksums.compare(self._place(step), listed, 'its metadata')
      with orbax_noise.silenced():
        restored = self._manager.restore(
          step,
          args=ocp.args.Composite(
            **{
              item: ocp.args.StandardRestore(tree)
              for item, tree in shapes.items()
            }
          ),
        )
      state = {
        item: jax.tree.map(np.asarray, restored[item]) for item in shapes
      }
      saved = metadata.pop('arrays')
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
    if _arrays(state) != {item: saved.get(item) for item in state}:
      raise CheckpointError(
        f'{place} is damaged: its arrays differ from those that were saved'
      )
    if metadata['step'] != step:
      raise CheckpointError(
        f'{place} is a renamed checkpoint of step {metadata["step"]}'
      )
    run = metadata.pop('run')
    if run and self._run and run != self._run:
      raise CheckpointError(f'{place} is of another run')
    return state, metadata

  def _write(self, step: int, host: State, described: dict[str, Any]) -> None:
    """Writes a checkpoint. Then orbax deletes those that are not kept."""
    assert self._manager is not None
    ocp = orbax_noise.import_orbax()
    with orbax_noise.silenced():
      saved = self._manager.save(
        step,
        args=ocp.args.Composite(
          metadata=ocp.args.JsonSave(_signed(described)),
          **{item: ocp.args.StandardSave(host[item]) for item in host},
        ),
      )
    if not saved:
      raise CheckpointError(
        f'{self._folder}: the checkpoint of step {step} was not written'
      )

  def _place(self, step: int, *names: str) -> pathlib.Path:
    return self._folder.joinpath(f'step_{step}', *names)

  def _metadata(self, step: int) -> dict[str, Any]:
    """Reads and verifies the metadata, and returns it without its checksum."""
    path = self._place(step, *_METADATA)
    metadata = dict(json.loads(path.read_text(encoding='utf-8')))
    if metadata.pop('sha256', None) != checksums.of_json(metadata):
      raise CheckpointError(f'{path}: is damaged: its checksum does not match')
    return metadata

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
      self._manager.reload()


def _arrays(state: State) -> dict[str, str]:
  return {item: checksums.of_arrays(tree) for item, tree in state.items()}


def _signed(metadata: dict[str, Any]) -> dict[str, Any]:
  return {**metadata, 'sha256': checksums.of_json(metadata)}
