"""Names unfinished checkpoints, and deletes checkpoints.

An unfinished checkpoint is a hidden folder, which is renamed when all files are
written. To delete a checkpoint, its folder is first renamed to a hidden name.
So a folder with a visible name is always complete.
"""

import contextlib
import pathlib
import shutil
import uuid

_PREFIX = '.step_'


def unfinished(folder: pathlib.Path, step: object) -> pathlib.Path:
  """Returns a new hidden path in the folder of the checkpoints."""
  return folder / f'{_PREFIX}{step}.{uuid.uuid4().hex}'


def delete(folder: pathlib.Path, step: int) -> None:
  """Deletes the checkpoint of a step.

  Raises:
    OSError: the checkpoint cannot be deleted.
  """
  hidden = unfinished(folder, step)
  (folder / f'step_{step}').rename(hidden)
  shutil.rmtree(hidden)


def delete_unfinished(folder: pathlib.Path) -> None:
  """Deletes the hidden folders and files of killed processes."""
  for path in folder.glob(f'{_PREFIX}*'):
    with contextlib.suppress(OSError):
      shutil.rmtree(path) if path.is_dir() else path.unlink()
