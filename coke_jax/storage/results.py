"""Reads the results that an evaluation wrote."""

import os
from typing import Any

from coke_jax.data import user_paths
from coke_jax.storage import json_files, layout


def read(
  folder: str | os.PathLike[str], split: str, step: int
) -> dict[str, Any] | None:
  """Reads the results of a split.

  Args:
    folder: a work folder, or the folder of an exported model.
    split: `train`, `valid` or `test`.
    step: the step of the checkpoint.

  Returns:
    The content of `results.json`, or of `results_<split>.json`. None if there
    is no such file, or if it contains the results of another checkpoint.

  Raises:
    json_files.WorkdirError: the file cannot be read.
  """
  path = user_paths.expand(folder) / layout.RESULTS[split]
  if not path.exists():
    return None
  results = json_files.read_json(path)
  same = isinstance(results, dict) and results.get('step') == step
  return results if same else None
