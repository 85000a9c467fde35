"""Trains in several processes and compares the run with a single process."""

import json
import os
import socket
import subprocess
import sys

import numpy as np
import pytest
import small

from coke_jax import hosts
from coke_jax.training import run

SETTINGS = {
  'model': {
    'dropout': 0.0,
    'composition': 'complex',
    'relation_directions': True,
  },
  'train': {
    'batch_size': 8,
    'candidates': 8,
    'embedding_learning_rate_factor': 5.0,
    'log_every_steps': 2,
    'n3_penalty': 0.01,
    'num_epochs': 2.0,
    'validate_every_epochs': 1.0,
  },
}


def start(workdir, *, processes, devices):
  """Starts the processes of a training, and returns them."""
  with socket.socket() as free:
    free.bind(('127.0.0.1', 0))
    coordinator = f'127.0.0.1:{free.getsockname()[1]}'
  return [
    subprocess.Popen(
      [
        *(sys.executable, '-m', 'coke_jax.main', f'--workdir={workdir}'),
        f'--coordinator={coordinator}',
        f'--num-processes={processes}',
        f'--process-id={number}',
      ],
      env={
        **os.environ,
        'JAX_PLATFORMS': 'cpu',
        'PYTHONPATH': os.pathsep.join(map(str, sys.path)),
        'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} '
        f'--xla_force_host_platform_device_count={devices}',
      },
      stderr=subprocess.PIPE,
      stdout=subprocess.DEVNULL,
      text=True,
    )
    for number in range(processes)
  ]


def finish(processes):
  """Waits for processes. Returns their exit statuses and error outputs."""
  outputs = [process.communicate(timeout=300)[1] for process in processes]
  return [process.returncode for process in processes], outputs


def curves(workdir):
  """Returns the losses and gradient norms of a run, each [records]."""
  lines = (workdir / 'metrics.jsonl').read_text().splitlines()
  records = [line for line in map(json.loads, lines) if line['kind'] == 'train']
  return [
    np.array([record[name] for record in records])
    for name in ('loss', 'gradient_norm')
  ]


def results(workdir):
  return json.loads((workdir / 'results.json').read_text())


def assert_close(got, expected):
  """Compares JSON values; numbers may differ by rounding."""
  assert type(got) is type(expected)
  if isinstance(expected, dict):
    assert got.keys() == expected.keys()
    for key, value in expected.items():
      assert_close(got[key], value)
  elif isinstance(expected, float):
    assert got == pytest.approx(expected, abs=1e-3)
  else:
    assert got == expected


def test_all_devices_and_processes_give_the_same_numbers(tmp_path):
  """Compares 2 processes with 4 devices each, 1 with 8, and this process."""
  # The last batch has two rows, so several devices have none.
  data = small.random_graph(sizes=(41, 9, 9))
  runs = {'two': (2, 4), 'eight': (1, 8)}
  started = []
  for name, (processes, devices) in runs.items():
    small.create_workdir(tmp_path / name, small.config(**SETTINGS), data)
    started += start(tmp_path / name, processes=processes, devices=devices)
  run.train_and_evaluate(small.config(**SETTINGS), tmp_path / 'here', data=data)
  statuses, outputs = finish(started)
  assert statuses == [0, 0, 0], outputs
  expected, norms = curves(tmp_path / 'here')
  assert len(expected) > 10
  for name in runs:
    found, found_norms = curves(tmp_path / name)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(found_norms, norms, rtol=1e-3)
    assert_close(results(tmp_path / name), results(tmp_path / 'here'))


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    (('127.0.0.1:1234', 2, -1), 'all three'),
    (('', 2, 0), 'all three'),
    (('127.0.0.1:1234', 2, 2), '--process-id is 2: expected 0 to 1'),
    (('127.0.0.1', 2, 0), "--coordinator is '127.0.0.1'"),
  ],
)
def test_bad_arguments(arguments, message):
  with pytest.raises(hosts.HostError, match=message), hosts.joined(*arguments):
    pass


def test_a_single_process_needs_no_connection():
  with hosts.joined('127.0.0.1:1', 1, 0):
    assert hosts.num_processes() == 1
    assert hosts.is_main()
    assert hosts.broadcast({'a': 1}) == {'a': 1}
