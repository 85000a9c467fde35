"""Settings measured side by side: a process each, told in turns to measure.

All processes of a group live at once but only one works at a time, so that a
drift of the machine's speed meets all of them alike.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any

from experiments.benchmarks import plan

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PATIENCE_SECONDS = 60  # for a process to end that was told to

Record = dict[str, Any]


class WorkerError(RuntimeError):
  """A process that ended before it had measured, with its last words."""


class Worker:
  """A process that measures one setting, from the outside."""

  def __init__(self, setting: plan.Setting):
    self.setting = setting
    self._files = contextlib.ExitStack()

  def __enter__(self) -> 'Worker':
    """Starts it; it imports its libraries and waits then."""
    self._log = self._files.enter_context(tempfile.TemporaryFile('w+b'))
    caches = self._files.enter_context(
      tempfile.TemporaryDirectory(prefix='benchmarks-')
    )
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
      env=environment(self.setting, caches),
      encoding='utf-8',
    )
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: TracebackType | None,
  ) -> None:
    """Ends it, however far it came."""
    self._process.kill()
    self._process.wait()
    for stream in (self._process.stdin, self._process.stdout):
      assert stream is not None
      with contextlib.suppress(BrokenPipeError):
        stream.close()
    self._files.close()

  def reply(self) -> Record:
    """Waits for what it says next.

    Raises:
      WorkerError: it ended instead.
    """
    assert self._process.stdout is not None
    line = self._process.stdout.readline()
    if line:
      reply: Record = json.loads(line)
      return reply
    status = self._process.wait(_PATIENCE_SECONDS)
    self._log.seek(0)
    words = self._log.read().decode(errors='replace').strip().splitlines()
    raise WorkerError(
      f'{self.setting.label}: ended with status {status}: '
      f'{words[-1] if words else "no message"}'
    )

  def tell(self, command: str) -> Record:
    """Has it do one of `worker.COMMANDS` and waits for the reply.

    Raises:
      WorkerError: it ended instead.
    """
    assert self._process.stdin is not None
    with contextlib.suppress(BrokenPipeError):  # then there is no reply either
      self._process.stdin.write(command + '\n')
      self._process.stdin.flush()
    return self.reply()


def environment(setting: plan.Setting, caches: str) -> dict[str, str]:
  """The variables a process starts with.

  Args:
    setting: what it measures.
    caches: an empty folder for what is compiled.
  """
  variables = dict(os.environ)
  path = [str(_ROOT), variables.get('PYTHONPATH', '')]
  variables['PYTHONPATH'] = os.pathsep.join(filter(None, path))
  # Compile times are those of a first start, without what was kept elsewhere.
  if setting.dataset in plan.TINY:
    variables['JAX_DISABLE_MOST_OPTIMIZATIONS'] = 'true'  # they mean nothing
  else:
    variables['JAX_ENABLE_COMPILATION_CACHE'] = 'false'
  variables['TORCHINDUCTOR_CACHE_DIR'] = caches
  # One GPU for either framework, and room for all processes of a group.
  variables.setdefault('CUDA_VISIBLE_DEVICES', '0')
  variables['XLA_PYTHON_CLIENT_PREALLOCATE'] = 'false'
  if setting.framework == 'torch':
    variables['JAX_PLATFORMS'] = 'cpu'  # there jax only looks after batches
  if setting.threads:
    variables['NPROC'] = str(setting.threads)  # of jax on a CPU
    variables['OMP_NUM_THREADS'] = str(setting.threads)
  return variables


def describe_machine() -> Record:
  """What the process of kind `machine` says.

  It is one of its own because asking for the devices takes them.

  Raises:
    WorkerError: it ended instead.
  """
  with Worker(plan.Setting('machine')) as worker:
    worker.reply()
    return worker.tell('prepare')


def measure(
  settings: Sequence[plan.Setting],
  rounds: int,
  say: Callable[[str], None],
) -> list[Record]:
  """Measures settings in turns: A B C, A B C, ...

  Args:
    settings: A, B, C.
    rounds: how many turns each has.
    say: is told what happens.

  Returns:
    For each its `setting` and `label`, what its process said when `prepared`
    and `finished`, and `rounds`; or an `error` instead, if it ended early.
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
    """One command; afterwards a process that failed is left alone."""
    record = records[place]
    if 'error' in record:
      return None
    try:
      if command == 'start':
        return workers[place].reply()
      return workers[place].tell(command)
    except WorkerError as error:
      record['error'] = str(error)
      say(f'  {error}')
      return None

  with contextlib.ExitStack() as stack:
    workers = [stack.enter_context(Worker(setting)) for setting in settings]
    places = range(len(workers))
    for place in places:
      attempt(place, 'start')
    for place in places:
      say(f'  {records[place]["label"]}: compiling')
      records[place]['prepared'] = attempt(place, 'prepare')
    for number in range(rounds):
      say(f'  round {number + 1} of {rounds}')
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
  """Whether a training is measured in the first round alone."""
  prepared = record['prepared'] or {}
  step_seconds = prepared.get('step_seconds', {}).values()
  return max(step_seconds, default=0.0) > plan.SLOW_SECONDS
