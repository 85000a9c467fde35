"""Writes and reads the arrays of checkpoints with orbax."""

import pathlib
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from coke_jax import hosts
from coke_jax.storage import (
  checkpoint_folders,
  checkpoint_metadata,
  orbax_noise,
  retention,
)

_ITEMS = ('params', 'training', 'metadata')


def open_folder(
  folder: pathlib.Path, kept: retention.Retention, *, writing: bool
) -> Any:
  """Returns an orbax `CheckpointManager` for a folder.

  Args:
    folder: the absolute path of the folder. It need not exist if `writing`.
    kept: selects the checkpoints that are kept.
    writing: whether checkpoints will be saved. If True, unfinished checkpoints
      of killed processes are deleted.

  Raises:
    Exception: the folder cannot be opened. Orbax documents no exception types.
  """
  ocp = orbax_noise.import_orbax()
  if writing:
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint_folders.delete_unfinished(folder)
  options = ocp.CheckpointManagerOptions(
    preservation_policy=kept,
    create=False,
    **orbax_noise.process_options(hosts.num_processes()),
    cleanup_tmp_directories=writing,
    enable_async_checkpointing=False,
    step_prefix='step',
  )
  # Orbax would warn about the folders that `shard_checkpoints` has written.
  with orbax_noise.silenced():
    return ocp.CheckpointManager(folder, options=options, item_names=_ITEMS)


def reload(manager: Any) -> None:
  """Lists the checkpoints again, after their folder has been changed."""
  with orbax_noise.silenced():
    manager.reload()


def save(
  manager: Any, step: int, host: Mapping[str, Any], metadata: dict[str, Any]
) -> bool:
  """Writes a checkpoint. Then orbax deletes old ones, see `Retention`.

  Args:
    manager: the result of `open_folder`.
    step: the step of the checkpoint.
    host: a tree of NumPy arrays for each item, such as `params`.
    metadata: the metadata, without their checksum.

  Returns:
    Whether the checkpoint was written.

  Raises:
    Exception: the checkpoint cannot be written.
  """
  ocp = orbax_noise.import_orbax()
  with orbax_noise.silenced():
    return bool(
      manager.save(
        step,
        args=ocp.args.Composite(
          metadata=ocp.args.JsonSave(checkpoint_metadata.signed(metadata)),
          **{item: ocp.args.StandardSave(host[item]) for item in host},
        ),
      )
    )


def restore(
  manager: Any, step: int, shapes: Mapping[str, Any]
) -> dict[str, Any]:
  """Reads the arrays of a checkpoint.

  Args:
    manager: the result of `open_folder`.
    step: the step of the checkpoint.
    shapes: a tree of arrays for each item. Only their shapes and dtypes are
      used.

  Returns:
    A tree of NumPy arrays for each item.

  Raises:
    Exception: the arrays cannot be read.
  """
  ocp = orbax_noise.import_orbax()
  with orbax_noise.silenced():
    restored = manager.restore(
      step,
      args=ocp.args.Composite(
        **{
          item: ocp.args.StandardRestore(tree) for item, tree in shapes.items()
        }
      ),
    )
  return {item: jax.tree.map(np.asarray, restored[item]) for item in shapes}
