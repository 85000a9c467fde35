"""The settings of a work folder as a config file: --config=<this>:<workdir>."""

import ml_collections

from coke_jax.storage import workdir


def get_config(folder: str) -> ml_collections.ConfigDict:
  """The settings that the run in `folder` was begun with."""
  return workdir.Workdir(folder).config()
