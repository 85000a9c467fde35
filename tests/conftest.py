"""Settings of JAX for all tests, and where real data sets are found."""

import os
import pathlib
import tempfile

import pytest

# Read before any test: some tests change the environment.
DATA_DIR = os.environ.get('COKE_DATA_DIR', '')


def pytest_configure(config):
  """Shares compiled programs between tests, and forbids implicit broadcasting.

  Programs that several tests or processes compile are compiled once. JAX raises
  an error for operands of different ranks.
  """
  if not hasattr(config, 'workerinput'):
    cache = tempfile.TemporaryDirectory(prefix='coke_jax-tests-')
    config.add_cleanup(cache.cleanup)
    os.environ['JAX_COMPILATION_CACHE_DIR'] = cache.name
    os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0'
    os.environ['JAX_NUMPY_RANK_PROMOTION'] = 'raise'
    # Most programs run so briefly that compilation takes most of the time.
    os.environ['JAX_DISABLE_MOST_OPTIMIZATIONS'] = 'true'


@pytest.fixture(scope='session')
def benchmark_folder():
  """Gives the folder of a real data set, `$COKE_DATA_DIR/<name>`.

  Skips the test if the variable is not set or the folder is missing.
  """

  def folder(name: str) -> pathlib.Path:
    path = pathlib.Path(DATA_DIR, name)
    if not DATA_DIR or not path.is_dir():
      pytest.skip(f'set COKE_DATA_DIR to a folder with {name}')
    return path

  return folder
