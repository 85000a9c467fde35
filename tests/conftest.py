import pathlib

import pytest

BENCHMARKS = pathlib.Path(__file__).resolve().parents[2] / 'shared' / 'data'


@pytest.fixture(scope='session')
def benchmark_folder():
  """Gives the folder of a real data set, if a copy lies beside the project."""

  def folder(name: str) -> pathlib.Path:
    path = BENCHMARKS / name
    if not path.is_dir():
      pytest.skip(f'no copy of {name} in ../shared/data')
    return path

  return folder
