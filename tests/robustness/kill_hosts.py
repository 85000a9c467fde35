"""Tests that a training in two processes survives the loss of one process.

    python tests/robustness/kill_hosts.py --kills=20 --stops=4
    python tests/robustness/kill_hosts.py --kills=20 --stops=4 --shards

A training runs undisturbed in two processes. Then the same training starts in
another folder, and one of its processes is killed (SIGKILL) or stopped
(SIGTERM) after a random time. The other process must end within 60 seconds.
After SIGKILL, an error must name the lost process. After SIGTERM, the exit
status must be that of SIGTERM. The training is continued and stopped again
until all signals are sent. A last start finishes it. Then parameters,
metrics.jsonl and results.json must equal those of the undisturbed training.
"""

import argparse
import pathlib
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time

import small_runs

# The maximum time from the loss of one process to the end of the other process.
_MAX_SECONDS = 60.0


def start(
  arguments: list[str], folder: pathlib.Path, devices: int
) -> list[subprocess.Popen]:
  """Starts two processes, which write to log_0.txt and log_1.txt."""
  with socket.socket() as free:
    free.bind(('127.0.0.1', 0))
    port = free.getsockname()[1]
  environment = small_runs.environment(folder / 'compiled')
  environment['XLA_FLAGS'] = (
    f'{environment.get("XLA_FLAGS", "")} '
    f'--xla_force_host_platform_device_count={devices}'
  )
  processes = []
  for number in range(2):
    with (folder / f'log_{number}.txt').open('wb') as log:
      words = (
        f'--coordinator=127.0.0.1:{port}',
        '--num-processes=2',
        f'--process-id={number}',
      )
      processes.append(
        subprocess.Popen(
          small_runs.command(*arguments, *words),
          env=environment,
          stdout=log,
          stderr=log,
        )
      )
  return processes


def disturb(
  processes: list[subprocess.Popen],
  folder: pathlib.Path,
  lost: int,
  number: int,
  delay: float,
) -> tuple[float | None, str]:
  """Sends a signal to one process after a delay.

  Args:
    processes: the two processes.
    folder: the folder of their logs.
    lost: the number of the process that receives the signal.
    number: the signal.
    delay: seconds to wait first.

  Returns:
    The seconds from the signal to the end of the other process, or None if the
    training had finished.
    A description of what went wrong, or an empty text.
  """
  time.sleep(delay)
  # If the process has already ended, the signal has no effect.
  processes[lost].send_signal(number)
  sent = time.monotonic()
  other = processes[1 - lost]
  try:
    status = other.wait(timeout=_MAX_SECONDS)
  except subprocess.TimeoutExpired:
    status = None
  seconds = time.monotonic() - sent
  for process in processes:
    process.kill()
    process.wait()
  if status == 0:
    return None, ''
  # If process 0 is lost, JAX aborts process 1. Only then does a guard process
  # print the error, see `host_guard`.
  time.sleep(1)
  log = (folder / f'log_{1 - lost}.txt').read_text(errors='replace')
  started = 'in 2 processes' in (folder / 'log_0.txt').read_text(
    errors='replace'
  )
  if status is None:
    return seconds, f'process {1 - lost} did not end'
  if number == signal.SIGKILL:
    named = f'process {lost} (' in log and 'was lost' in log
    # Before the processes are connected, no error can name the lost process.
    clear = named or not started
    return seconds, '' if clear else f'no clear error: {log[-500:]}'
  if status not in (128 + number, -number):
    return seconds, f'exit status {status} after signal {number}: {log[-500:]}'
  return seconds, ''


def main(argv: list[str] | None = None) -> int:
  """Disturbs the training. Returns 1 if a result or an error is wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--kills', type=int, default=20)
  parser.add_argument('--stops', type=int, default=4, help='number of SIGTERMs')
  parser.add_argument('--epochs', type=int, default=200)
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument(
    '--devices', type=int, default=4, help='number of devices of each process'
  )
  parser.add_argument(
    '--shards',
    action='store_true',
    help='cut the vocabulary into one shard per device',
  )
  parser.add_argument(
    '--folder', help='where the runs are kept; by default, they are deleted'
  )
  flags = parser.parse_args(argv)
  generator = random.Random(flags.seed)
  failures: list[str] = []
  slowest = 0.0
  sent = {signal.SIGKILL: 0, signal.SIGTERM: 0}
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(flags.folder or temporary)
    data = small_runs.write_graph(folder / 'data', flags.seed)
    calm, work = folder / 'undisturbed', folder / 'disturbed'
    settings = {'num_epochs': flags.epochs}
    started = time.monotonic()
    shards = [f'--config.shard_vocabulary={flags.shards}']
    calm_arguments = small_runs.arguments(data, calm, **settings) + shards
    for process in start(calm_arguments, folder, flags.devices):
      if process.wait() != 0:
        raise RuntimeError(f'the undisturbed run failed: see {folder}')
    duration = time.monotonic() - started
    undisturbed = small_runs.outcome(calm)
    arguments = small_runs.arguments(data, work, **settings) + shards
    signals = [signal.SIGKILL] * flags.kills + [signal.SIGTERM] * flags.stops
    generator.shuffle(signals)
    finished = 0
    while signals:
      processes = start(arguments, folder, flags.devices)
      lost, number = generator.randrange(2), signals[-1]
      seconds, problem = disturb(
        processes, folder, lost, number, generator.uniform(0.1, 1) * duration
      )
      if problem:
        failures.append(problem)
      if seconds is None:  # The training had finished, so begin it again.
        failures += small_runs.differences(
          small_runs.outcome(work), undisturbed
        )
        finished += 1
        work.rename(folder / f'finished_{finished}')
        continue
      signals.pop()
      sent[number] += 1
      slowest = max(slowest, seconds)
      print(f'signal {number} to process {lost}: {seconds:.1f} s', flush=True)
    for process in start(arguments, folder, flags.devices):
      if process.wait() != 0:
        failures.append('the last start failed')
    failures += small_runs.differences(small_runs.outcome(work), undisturbed)
  print(
    f'{sent[signal.SIGKILL]} kills, {sent[signal.SIGTERM]} stops, the slowest '
    f'process ended after {slowest:.1f} s, {finished + 1} finished runs: '
    + (f'FAILED: {failures}' if failures else 'nothing lost')
  )
  return bool(failures)


if __name__ == '__main__':
  sys.exit(main())
