import os
import pathlib
import tempfile

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / 'shared' / 'data'


def pytest_configure(config):
  """Programs that several tests or processes compile are compiled once.

  Also holds the package to spelling out how shapes broadcast.
  """
  if not hasattr(config, 'workerinput'):
    cache = tempfile.TemporaryDirectory(prefix='coke_jax-tests-')
    config.add_cleanup(cache.cleanup)
    os.environ['JAX_COMPILATION_CACHE_DIR'] = cache.name
    os.environ['JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS'] = '0'
    os.environ['JAX_NUMPY_RANK_PROMOTION'] = 'raise'


@pytest.fixture(scope='session')
def benchmark_folder():
  """Gives the folder of a real data set, if a copy lies beside the project."""

  def folder(name: str) -> pathlib.Path:
    path = BENCHMARKS / name
    if not path.is_dir():
      pytest.skip(f'no copy of {name} beside this repository')
    return path

  return folder
