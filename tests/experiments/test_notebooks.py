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


# Executes all notebooks in one kernel, which imports JAX once. Before each
# notebook, all variables are deleted.
_RUN = """
import sys, nbformat, nbclient
notebooks = [nbformat.read(path, as_version=4) for path in sys.argv[2:]]
cells = []
for notebook in notebooks:
  cells += [nbformat.v4.new_code_cell('%reset -f'), *notebook.cells]
together = nbformat.v4.new_notebook(cells=cells)
nbclient.NotebookClient(
  together, timeout=300, kernel_name='python3',
  skip_cells_with_tag='skip-execution',
).execute()
nbformat.write(together, sys.argv[1])
"""


def test_the_notebooks_run(tmp_path):
  """Runs the notebooks in Jupyter with small models. Installs nothing."""
  target = tmp_path / 'together.ipynb'
  environment = {
    **os.environ,
    'COKE_NOTEBOOK_SIZE': 'small',
    'JAX_DISABLE_MOST_OPTIMIZATIONS': 'true',  # JAX then compiles faster.
    'IPYTHONDIR': str(tmp_path / 'ipython'),
    'JUPYTER_PLATFORM_DIRS': '1',
  }
  environment.pop('JAX_NUMPY_RANK_PROMOTION', None)
  done = subprocess.run(
    [sys.executable, '-c', _RUN, target, *NOTEBOOKS],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr[-3000:]
  outputs = [
    bool(cell['outputs'])
    for cell in json.loads(target.read_text(encoding='utf-8'))['cells']
    if cell['cell_type'] == 'code'
  ]
  with_output = []
  for path in NOTEBOOKS:
    cells = json.loads(path.read_text(encoding='utf-8'))['cells']
    count = 1 + sum(cell['cell_type'] == 'code' for cell in cells)
    with_output.append(sum(outputs[:count]))
    outputs = outputs[count:]
  assert min(with_output) >= 4
