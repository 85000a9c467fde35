"""Tests the script for accelerators with a tiny model on a CPU."""

import json
import os
import pathlib
import subprocess
import sys
import tarfile

import jax
import pytest

from experiments.benchmarks import accelerator

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / 'experiments' / 'benchmarks' / 'run.sh'


def run(out, *flags):
  python = pathlib.Path(sys.executable).parent
  return subprocess.run(
    ['bash', str(SCRIPT), *flags],
    env={
      **os.environ,
      'PATH': f'{python}{os.pathsep}{os.environ["PATH"]}',
      'OUT': str(out),
      'JAX_DISABLE_MOST_OPTIMIZATIONS': 'true',  # JAX then compiles faster.
    },
    capture_output=True,
    text=True,
    check=False,
  )


def test_the_smoke_mode_writes_all_results(tmp_path):
  pytest.importorskip('matplotlib')
  done = run(tmp_path / 'out', '--smoke')
  assert done.returncode == 0, done.stdout + done.stderr
  out = tmp_path / 'out'
  names = {path.name for path in out.iterdir()}
  assert {
    'log.txt',
    'throughput.json',
    'results.json',
    'metrics.jsonl',
    'training_curves.png',
    'model.tar.gz.aa',
  } == names
  throughput = json.loads((out / 'throughput.json').read_text())
  assert throughput['platform'] == 'cpu'
  for measured in throughput['measured']:
    assert measured['instances_per_second'] >= measured['rows_per_second'] > 0
  assert json.loads((out / 'results.json').read_text())['both']['mrr'] > 0
  with tarfile.open(out / 'model.tar.gz.aa') as model:
    assert 'model/config.json' in model.getnames()


def test_no_accelerator_is_an_error(tmp_path):
  if jax.default_backend() != 'cpu':
    pytest.skip('there is an accelerator')
  with pytest.raises(SystemExit, match='no GPU or TPU found'):
    accelerator.main([f'--out={tmp_path / "out"}', f'--work={tmp_path}'])
  assert not (tmp_path / 'out').exists()


def test_the_recipe_is_trained_for_the_remaining_minutes(tmp_path, monkeypatch):
  trained = []

  def train(config, workdir, *, minutes):
    trained.append((config.data.name, config.model.num_layers, minutes))
    workdir.mkdir()
    for name in ('results.json', 'metrics.jsonl'):
      (workdir / name).write_text('{}')

  def draw(workdir, pictures):
    pictures.mkdir()
    (pictures / 'training_curves.png').write_bytes(b'')

  monkeypatch.setattr(accelerator.run, 'train_and_evaluate', train)
  monkeypatch.setattr(accelerator.draw, 'draw', draw)
  out, work = tmp_path / 'out', tmp_path / 'work'
  flags = [f'--out={out}', f'--work={work}', '--minutes=9', '--smoke']
  accelerator.main([*flags, '--settings=recipe'])
  assert trained == [('countries', 1, 8.0)]
  assert (out / 'results.json').read_text() == '{}'
