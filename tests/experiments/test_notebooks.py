"""Tests that the notebooks run and equal their text form."""

import json
import os
import pathlib
import subprocess
import sys

import jupytext
import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[2] / 'experiments/notebooks'
NOTEBOOKS = sorted(FOLDER.glob('*.ipynb'))


def test_there_are_notebooks():
  assert [path.stem for path in NOTEBOOKS] == ['colab', 'tour']


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_the_text_form_is_the_same(path):
  """If this fails, run `jupytext --sync experiments/notebooks/*.py`."""
  text = jupytext.read(path.with_suffix('.py'))
  cells = json.loads(path.read_text(encoding='utf-8'))['cells']
  assert [(cell.cell_type, cell.source) for cell in text.cells] == [
    (cell['cell_type'], ''.join(cell['source'])) for cell in cells
  ]
  assert not any(cell.get('outputs') for cell in cells)  # Outputs are not kept.


@pytest.mark.parametrize('path', NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
  """Runs a notebook in Jupyter with a small model. Installs nothing."""
  target = tmp_path / path.name
  environment = {
    **os.environ,
    'COKE_NOTEBOOK_SIZE': 'small',
    'JAX_DISABLE_MOST_OPTIMIZATIONS': 'true',  # compiles faster
    'IPYTHONDIR': str(tmp_path / 'ipython'),
    'JUPYTER_PLATFORM_DIRS': '1',
  }
  environment.pop('JAX_NUMPY_RANK_PROMOTION', None)
  program = (
    'import sys, nbformat, nbclient\n'
    'notebook = nbformat.read(sys.argv[1], as_version=4)\n'
    'client = nbclient.NotebookClient(\n'
    "  notebook, timeout=300, kernel_name='python3',\n"
    "  skip_cells_with_tag='skip-execution')\n"
    'client.execute()\n'
    'nbformat.write(notebook, sys.argv[2])\n'
  )
  done = subprocess.run(
    [sys.executable, '-c', program, str(path), str(target)],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  cells = json.loads(target.read_text(encoding='utf-8'))['cells']
  code = [cell for cell in cells if cell['cell_type'] == 'code']
  assert sum(bool(cell['outputs']) for cell in code) >= 4
