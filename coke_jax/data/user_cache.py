"""Where things are kept that can be had again: downloads, files once read."""

import os
import pathlib


def folder(name: str) -> pathlib.Path:
  """`coke_jax/<name>` below `$XDG_CACHE_HOME`, or else below `~/.cache`.

  A relative `$XDG_CACHE_HOME` is ignored, as the convention has it.
  """
  home = os.environ.get('XDG_CACHE_HOME', '')
  if not os.path.isabs(home):
    home = os.path.expanduser('~/.cache')
  return pathlib.Path(home) / 'coke_jax' / name
