"""A config file that loads the settings saved in a work folder.

Use it as `--config=<path of this file>:<path of the work folder>`.
"""

import ml_collections

from coke_jax.storage import workdir as workdir_lib


def get_config(workdir: str) -> ml_collections.ConfigDict:
  """Returns the settings saved in a work folder."""
  return workdir_lib.Workdir(workdir).config()
