"""The settings of a work folder as a config file.

Used as `--config=<path of this file>:<path of the work folder>`.
"""

import ml_collections

from coke_jax.storage import workdir as workdir_lib


def get_config(workdir: str) -> ml_collections.ConfigDict:
  """Returns the settings of the run in a work folder."""
  return workdir_lib.Workdir(workdir).config()
