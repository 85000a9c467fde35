"""Configures JAX for all tests, and finds real data sets."""

import gc
import os
import pathlib
import subprocess
import sys
import tempfile

import pytest

# COKE_DATA_DIR is read before any test runs, because some tests change it.
DATA_DIR = os.environ.get('COKE_DATA_DIR', '')

# The JAX programs of the tests run so briefly that compilation takes most of
# the time. Two settings together halve the compilation time: the older code
# generator for fused operations, and one LLVM module per program.
FAST_COMPILATION = (
  '--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1'
)


def pytest_configure(config):
  """Makes tests fast, and forbids implicit broadcasting.

  A cache on disk holds the compiled programs of all tests and processes. JAX
  raises an error for operands of different ranks. Garbage is collected rarely,
  because many objects live long.
  """
  gc.set_threshold(100_000, 50, 1000)
  if not hasattr(config, 'workerinput'):
    cache = tempfile.TemporaryDirectory(prefix='coke_jax-tests-')
    config.add_cleanup(cache.cleanup)
    os.environ['JAX_COMPILATION_CACHE_DIR'] = cache.name
    os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0'
    os.environ['JAX_NUMPY_RANK_PROMOTION'] = 'raise'
    os.environ['JAX_DISABLE_MOST_OPTIMIZATIONS'] = 'true'
    flags = f'{FAST_COMPILATION} {os.environ.get("XLA_FLAGS", "")}'.strip()
    if accepted_by_xla(flags):
      os.environ['XLA_FLAGS'] = flags


def accepted_by_xla(flags: str) -> bool:
  """Returns whether XLA accepts all flags.

  XLA ends the process if a flag is unknown.
  """
  done = subprocess.run(
    [sys.executable, '-c', 'import jax; jax.devices()'],
    env={**os.environ, 'JAX_PLATFORMS': 'cpu', 'XLA_FLAGS': flags},
    capture_output=True,
    check=False,
  )
  return done.returncode == 0


@pytest.fixture(scope='session')
def benchmark_folder():
  """Returns a function from the name of a real data set to its folder.

  The folder is `$COKE_DATA_DIR/<name>`. The function skips the test if the
  variable is not set or the folder is missing.
  """

  def folder(name: str) -> pathlib.Path:
    path = pathlib.Path(DATA_DIR, name)
    if not DATA_DIR or not path.is_dir():
      pytest.skip(f'set COKE_DATA_DIR to a folder with {name}')
    return path

  return folder
