"""Compares trainings in several processes with a training in one process."""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import numpy as np
import pytest
import small

from coke_jax import hosts, parallel
from coke_jax.shards import placement
from coke_jax.storage import shard_checkpoints
from coke_jax.storage import workdir as workdir_lib
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
    'dura_penalty': 0.01,
    'rare_answer_weight': 0.2,
    'num_epochs': 2.0,
    'validate_every_epochs': 1.0,
  },
}


def start(program, *, processes, devices):
  """Starts processes that train together, and returns them.

  Args:
    program: the first arguments of Python. The last arguments are the flags for
      `hosts.joined`.
    processes: the number of processes.
    devices: the number of devices of each process.
  """
  with socket.socket() as free:
    free.bind(('127.0.0.1', 0))
    coordinator = f'127.0.0.1:{free.getsockname()[1]}'
  return [
    subprocess.Popen(
      [
        *(sys.executable, *map(str, program)),
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
  """Returns the losses [records] and the gradient norms [records] of a run."""
  lines = (workdir / 'metrics.jsonl').read_text().splitlines()
  records = [line for line in map(json.loads, lines) if line['kind'] == 'train']
  return [
    np.array([record[name] for record in records])
    for name in ('loss', 'gradient_norm')
  ]


def results(workdir):
  return json.loads((workdir / 'results.json').read_text())


def assert_close(got, expected):
  """Compares JSON values. Floats may differ by rounding."""
  assert type(got) is type(expected)
  if isinstance(expected, dict):
    assert got.keys() == expected.keys()
    for key, value in expected.items():
      assert_close(got[key], value)
  elif isinstance(expected, float):
    assert got == pytest.approx(expected, abs=1e-3)
  else:
    assert got == expected


def train_together(*folders, flags):
  """Trains in one work folder after another. All processes call this."""
  coordinator, num_processes, process_id = (
    flag.partition('=')[2] for flag in flags
  )
  with hosts.joined(coordinator, int(num_processes), int(process_id)):
    assert parallel.num_devices() == 8
    if pathlib.Path('/proc/self/cwd').exists():
      check_separate_folders(folders[0].with_name(f'process_{process_id}'))
    for folder in folders:
      config = workdir_lib.Workdir(folder).config() if hosts.is_main() else None
      run.train_and_evaluate(config, folder if hosts.is_main() else '.')
      run.evaluate(config, folder if hosts.is_main() else '.', 'valid')


def check_separate_folders(own):
  """Checks the error if one path means a different folder in each process."""
  (own / 'checkpoints').mkdir(parents=True)
  os.chdir(own)
  with pytest.raises(
    shard_checkpoints.SharedFolderError,
    match=r'process 1 \(.*does not find its file: expected a folder',
  ):
    shard_checkpoints.ShardCheckpoints(
      pathlib.Path('/proc/self/cwd/checkpoints'),
      placement.Placement(20, 8, is_cut=True),
      writing=True,
    )


def settings(*, shards=False):
  config = small.config(**SETTINGS)
  config.shard_vocabulary = shards
  return config


@pytest.mark.slow
def test_all_devices_and_processes_give_the_same_numbers(tmp_path):
  """Compares two processes of 4 devices each, one process of 8, and this one.

  The two processes train without shards and then with shards. After that, this
  process continues the run with shards from its first checkpoint.
  """
  # One batch of each epoch has only six rows, so two devices have no row.
  data = small.random_graph(sizes=(41, 9, 9))
  names = ('copies', 'shards', 'eight')
  folders = [tmp_path / name for name in names]
  for folder in folders:
    small.create_workdir(folder, settings(shards=folder is folders[1]), data)
  started = start([__file__, *folders[:2]], processes=2, devices=4)
  started += start(
    ['-m', 'coke_jax.main', f'--workdir={folders[2]}'], processes=1, devices=8
  )
  run.train_and_evaluate(settings(), tmp_path / 'here', data=data)
  statuses, outputs = finish(started)
  assert statuses == [0, 0, 0], outputs
  files = {path.name for path in (tmp_path / 'shards').rglob('*.npy')}
  assert {f'entity_embedding.{device}.npy' for device in range(8)} <= files

  continued = tmp_path / 'continued'
  folders.append(continued)
  shutil.copytree(tmp_path / 'shards', continued)
  newest = max(
    (continued / 'checkpoints').iterdir(), key=lambda path: path.name
  )
  shutil.rmtree(newest)
  (continued / 'results.json').unlink()
  run.train_and_evaluate(settings(shards=True), continued)

  expected, norms = curves(tmp_path / 'here')
  assert len(expected) > 10
  run.evaluate(settings(), tmp_path / 'here', 'valid')
  valid = [
    json.loads((folder / 'results_valid.json').read_text())
    for folder in (tmp_path / 'here', *folders[:2])
  ]
  for found in valid[1:]:
    assert_close(found, valid[0])
  for folder in folders:
    found, found_norms = curves(folder)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    np.testing.assert_allclose(found_norms, norms, rtol=1e-3)
    assert_close(results(folder), results(tmp_path / 'here'))


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


if __name__ == '__main__':
  train_together(*map(pathlib.Path, sys.argv[1:-3]), flags=sys.argv[-3:])
