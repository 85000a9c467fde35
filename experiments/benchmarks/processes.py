"""Measures each setting of a group in a separate process.

The processes take turns, so changes of the machine's speed affect all settings.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from experiments.benchmarks import plan

_ROOT = pathlib.Path(__file__).resolve().parents[2]
# Maximum time until a process exits after its output has ended.
_PATIENCE_SECONDS = 60

Record = dict[str, Any]


class WorkerError(RuntimeError):
  """A process ended too early. The message has the last line of its stderr."""


class Worker:
  """A process that measures one setting. Use it as a context manager."""

  def __init__(self, setting: plan.Setting):
    self.setting = setting
    self._files = contextlib.ExitStack()

  def __enter__(self) -> 'Worker':
    """Starts the process, which imports its libraries and waits."""
    self._log = self._files.enter_context(tempfile.TemporaryFile('w+b'))
    self._process = subprocess.Popen(
      [
        sys.executable,
        '-m',
        'experiments.benchmarks.worker',
        json.dumps(dataclasses.asdict(self.setting)),
      ],
      stdin=subprocess.PIPE,
      stdout=subprocess.PIPE,
      stderr=self._log,
      env=environment(self.setting),
      encoding='utf-8',
    )
    return self

  def __exit__(self, *_: object) -> None:
    """Kills the process."""
    self._process.kill()
    self._process.wait()
    for stream in (self._process.stdin, self._process.stdout):
      assert stream is not None
      with contextlib.suppress(BrokenPipeError):
        stream.close()
    self._files.close()

  def reply(self) -> Record:
    """Waits for the next reply.

    Raises:
      WorkerError: the process ended without a reply.
    """
    assert self._process.stdout is not None
    line = self._process.stdout.readline()
    if line:
      reply: Record = json.loads(line)
      return reply
    status = self._process.wait(_PATIENCE_SECONDS)
    self._log.seek(0)
    lines = self._log.read().decode(errors='replace').strip().splitlines()
    raise WorkerError(
      f'{self.setting.label}: ended with status {status}: '
      f'{lines[-1] if lines else "no message"}'
    )

  def tell(self, command: str) -> Record:
    """Sends one of `worker.COMMANDS` and waits for the reply.

    Raises:
      WorkerError: the process ended without a reply.
    """
    assert self._process.stdin is not None
    # If the process has ended, `reply` raises WorkerError.
    with contextlib.suppress(BrokenPipeError):
      self._process.stdin.write(command + '\n')
      self._process.stdin.flush()
    return self.reply()


def environment(setting: plan.Setting) -> dict[str, str]:
  """Returns the environment variables for a process."""
  variables = dict(os.environ)
  path = [str(_ROOT), variables.get('PYTHONPATH', '')]
  variables['PYTHONPATH'] = os.pathsep.join(filter(None, path))
  if setting.dataset == plan.TINY:
    # Programs compile faster without optimizations.
    variables['JAX_DISABLE_MOST_OPTIMIZATIONS'] = 'true'
  else:
    # Without the cache, every process measures the time of compilation.
    variables['JAX_ENABLE_COMPILATION_CACHE'] = 'false'
  # jax and PyTorch use the same GPU. The processes of a group share it, so no
  # process may reserve all of its memory.
  variables.setdefault('CUDA_VISIBLE_DEVICES', '0')
  variables['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
  if setting.framework == 'torch':
    variables['JAX_PLATFORMS'] = 'cpu'  # jax only builds the batches.
  if setting.threads:
    variables['NPROC'] = str(setting.threads)  # jax reads it on a CPU.
    variables['OMP_NUM_THREADS'] = str(setting.threads)
  return variables


def describe_machine() -> Record:
  """Describes the machine.

  A separate process lists the devices, because this process would occupy them.

  Raises:
    WorkerError: the process ended too early.
  """
  with Worker(plan.Setting('machine')) as worker:
    worker.reply()
    return worker.tell('prepare')


def measure(settings: Sequence[plan.Setting], rounds: int) -> list[Record]:
  """Measures settings in turns (A B C, A B C, ...) and prints the progress.

  Args:
    settings: the settings A, B, C.
    rounds: how many times each setting is measured.

  Returns:
    One record per setting:
    - `label` and `setting`.
    - `prepared` and `finished`: the replies to `prepare` and `finish`.
    - `rounds`: the list of the replies to `measure`.
    - `error`: the error message, only if the process ended too early.
  """
  records: list[Record] = [
    {
      'label': setting.label,
      'setting': dataclasses.asdict(setting),
      'rounds': [],
    }
    for setting in settings
  ]

  def attempt(place: int, command: str) -> Record | None:
    """Returns the reply to a command, or None if the process has failed."""
    record = records[place]
    if 'error' in record:
      return None
    try:
      if command == 'start':
        return workers[place].reply()
      return workers[place].tell(command)
    except WorkerError as error:
      record['error'] = str(error)
      print(f'  {error}', flush=True)
      return None

  with contextlib.ExitStack() as stack:
    workers = [stack.enter_context(Worker(setting)) for setting in settings]
    places = range(len(workers))
    for place in places:
      attempt(place, 'start')
    for place in places:
      print(f'  {records[place]["label"]}: compiling', flush=True)
      records[place]['prepared'] = attempt(place, 'prepare')
    for number in range(rounds):
      print(f'  round {number + 1} of {rounds}', flush=True)
      for place in places:
        if number and _is_slow(records[place]):
          continue
        measured = attempt(place, 'measure')
        if measured is not None:
          records[place]['rounds'].append(measured)
    for place in places:
      records[place]['finished'] = attempt(place, 'finish')
  return records


def _is_slow(record: Record) -> bool:
  """Returns whether a training is measured only in the first round."""
  prepared = record['prepared'] or {}
  step_seconds = prepared.get('step_seconds', {}).values()
  return max(step_seconds, default=0.0) > plan.SLOW_SECONDS
