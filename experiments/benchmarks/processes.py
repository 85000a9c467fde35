"""Measures each setting of a group in a separate process.

The processes take turns, so changes of the machine's speed affect all settings.
"""

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from experiments.benchmarks import new_process, plan, worker

Record = dict[str, Any]


class WorkerError(RuntimeError):
  """A process failed. The message has its setting and its error."""


class Worker:
  """A process that measures one setting. Use it as a context manager."""

  def __init__(self, setting: plan.Setting):
    self.setting = setting

  def __enter__(self) -> 'Worker':
    """Starts the process, which imports its libraries and waits."""
    self._process = new_process.start(**environment(self.setting))
    return self

  def __exit__(self, *_: object) -> None:
    """Ends the process."""
    self._process.shutdown()

  def tell(self, command: str) -> Record:
    """Executes one of `worker.COMMANDS` and returns the reply.

    Raises:
      WorkerError: the command raised an error, or the process ended too early.
    """
    call = self._process.submit(worker.execute, command, self.setting)
    try:
      return call.result()
    except Exception as error:
      raise WorkerError(
        f'{self.setting.label}: {type(error).__name__}: {error}'
      ) from error


def environment(setting: plan.Setting) -> dict[str, str]:
  """Returns additional environment variables for a process."""
  variables = {}
  if setting.dataset == plan.TINY:
    # Programs compile faster without optimizations.
    variables['JAX_DISABLE_MOST_OPTIMIZATIONS'] = 'true'
  else:
    # Without the cache, every process measures the time of compilation.
    variables['JAX_ENABLE_COMPILATION_CACHE'] = 'false'
  # jax and PyTorch use the same GPU. The processes of a group share it, so no
  # process may reserve all of its memory.
  variables['CUDA_VISIBLE_DEVICES'] = os.environ.get(
    'CUDA_VISIBLE_DEVICES', '0'
  )
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
    WorkerError: the process failed.
  """
  with Worker(plan.Setting('machine', 'machine')) as process:
    return process.tell('prepare')


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
    - `error`: the error message, only if a command failed.
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
