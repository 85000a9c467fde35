"""The user's cache folder. It contains downloads and parsed files."""

import os
import pathlib


def folder(name: str) -> pathlib.Path:
  """Returns the folder `coke_jax/<name>` in the user's cache folder.

  The user's cache folder is `$XDG_CACHE_HOME` if this is an absolute path, and
  `~/.cache` otherwise. The returned folder need not exist.
  """
  home = os.environ.get('XDG_CACHE_HOME', '')
  if not os.path.isabs(home):
    home = os.path.expanduser('~/.cache')
  return pathlib.Path(home) / 'coke_jax' / name
