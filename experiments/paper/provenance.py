"""Describes where a number comes from: commit, versions, device."""

import importlib.metadata
import os
import platform
import subprocess
from typing import Any

from coke_jax import parallel
from experiments.paper import settings

_PACKAGES = ('coke_jax', 'jax', 'jaxlib', 'flax', 'optax', 'numpy')
# Only changes in these folders can change a measured number. `:!` excludes a
# folder.
_SOURCES = ('coke_jax', 'configs', 'experiments', ':!experiments/results')


def describe() -> dict[str, Any]:
  """Describes the devices, the versions and, in a git clone, the commit.

  Returns:
    `device`, `processor` and `versions`. In a git clone also `commit` and
    `dirty` (whether the sources differ from the commit).
  """
  return {
    'device': parallel.describe_devices(),
    'processor': _processor(),
    'versions': {
      'python': platform.python_version(),
      **{name: importlib.metadata.version(name) for name in _PACKAGES},
    },
    **_commit(),
  }


def _commit() -> dict[str, Any]:
  """Returns `commit` and `dirty`; an empty dictionary outside a git clone."""
  # ROOT may be a plain folder inside a clone of another repository.
  if _git('rev-parse', '--show-toplevel') != str(settings.ROOT):
    return {}
  commit = _git('rev-parse', 'HEAD')
  if not commit:
    return {}
  status = _git('status', '--porcelain', '--', *_SOURCES)
  return {'commit': commit, 'dirty': bool(status)}


def _git(*arguments: str) -> str:
  try:
    done = subprocess.run(
      ['git', *arguments],
      cwd=settings.ROOT,
      capture_output=True,
      text=True,
      check=False,
    )
  except OSError:  # git is not installed
    return ''
  return done.stdout.strip() if done.returncode == 0 else ''


def _processor() -> str:
  """Returns the number of cores and, if known, the name of the CPU."""
  name = platform.processor() or platform.machine()
  try:
    with open('/proc/cpuinfo', encoding='utf-8') as lines:
      name = next(
        line.partition(':')[2].strip()
        for line in lines
        if line.startswith('model name')
      )
  except (OSError, StopIteration):
    pass
  if hasattr(os, 'sched_getaffinity'):  # not on macOS
    cores = len(os.sched_getaffinity(0))
  else:
    cores = os.cpu_count() or 1
  return f'{cores} x {name}'
