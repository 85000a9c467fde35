"""Connects the processes of one training, on one or several hosts.

JAX's distributed runtime connects the processes and provides a key-value store.
Process 0 reads and writes all files, except for the shards in checkpoints.
After the loss of one process, the others would wait forever. So each process
has two threads. `_talk` increases a counter in the store and reads all
counters. `_judge` ends the process if another process has failed, has been
stopped by a signal, or has not increased its counter for `_LOST_SECONDS`. If
process 0 is killed, JAX aborts the others. `host_guard` then prints the reason.
"""

import contextlib
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

import jax

from coke_jax import errors, host_cluster, host_guard

_LOST_SECONDS = 40.0
_POLL_SECONDS = 1.0
_LEAVE_SECONDS = 15.0  # maximum time that process 0 waits for the others
_DAY = 24 * 3600 * 1000  # milliseconds
_CONTINUE = (
  'train again with the same command, on any number of hosts, to continue from '
  'the last checkpoint'
)


class HostError(errors.CokeError, RuntimeError):
  """The processes cannot be connected, or one of them was lost."""


class _Group:
  """The processes of this training. Default: only this process."""

  num_processes = 1
  process_id = 0
  client: Any = None
  names: tuple[str, ...] = ()
  calls = 0  # number of calls of `broadcast`, `gather` and `wait_for_all`


def num_processes() -> int:
  """Returns the number of processes that train together."""
  return _Group.num_processes


def is_main() -> bool:
  """Returns whether this is process 0."""
  return _Group.process_id == 0


def broadcast(value: Any = None) -> Any:
  """Returns, in each process, the JSON value of process 0.

  All processes must call this function, `gather` and `wait_for_all` in the same
  order.
  """
  if _Group.num_processes == 1:
    return value
  _Group.calls += 1
  key = f'coke_jax/values/{_Group.calls}'
  if is_main():
    _Group.client.key_value_set(key, json.dumps(value))
    return value
  return json.loads(_Group.client.blocking_key_value_get(key, _DAY))


def gather(value: Any) -> list[Any]:
  """Returns, in each process, the JSON values of all processes.

  See `broadcast` about the order of calls.
  """
  if _Group.num_processes == 1:
    return [value]
  _Group.calls += 1
  key = f'coke_jax/values/{_Group.calls}'
  _Group.client.key_value_set(f'{key}/{_Group.process_id}', json.dumps(value))
  return [
    json.loads(_Group.client.blocking_key_value_get(f'{key}/{number}', _DAY))
    for number in range(_Group.num_processes)
  ]


def wait_for_all() -> None:
  """Waits until all processes have called this function."""
  if _Group.num_processes > 1:
    _Group.calls += 1
    _Group.client.wait_at_barrier(f'coke_jax_{_Group.calls}', _DAY)


@contextlib.contextmanager
def joined(
  coordinator: str = '', num_processes: int = 0, process_id: int = -1
) -> Iterator[None]:
  """Connects the processes for the time of a `with` block.

  If the block raises an error in one process, all other processes end with exit
  status 1 and print this error. If a signal stops one process, all others end
  with the exit status of this signal. Without arguments, JAX detects the
  cluster (a TPU pod, Slurm or Open MPI). Without a cluster, this process is the
  only one.

  Args:
    coordinator: address of process 0 and a free port, such as `10.0.0.1:1234`.
    num_processes: number of processes.
    process_id: number of this process, from 0.

  Raises:
    HostError: the arguments are not valid, or the processes cannot be
      connected.
  """
  if not _start(coordinator, num_processes, process_id):
    yield
    return
  watch = _Watch()
  try:
    yield
    wait_for_all()
  except BaseException as error:
    if isinstance(error, jax.errors.JaxRuntimeError):
      # Probably, a process was lost. Wait, so that `_judge` ends this process.
      time.sleep(_LOST_SECONDS + 5 * _POLL_SECONDS)
    watch.announce(str(error), getattr(error, 'exit_status', 1))
    watch.leave()
    raise
  watch.leave()
  jax.distributed.shutdown()
  _Group.num_processes, _Group.process_id = 1, 0


def _start(coordinator: str, num_processes: int, process_id: int) -> bool:
  """Connects the processes. Returns False if there is only one process."""
  given = (bool(coordinator), num_processes > 0, process_id >= 0)
  if any(given):
    if not all(given):
      raise HostError(
        '--coordinator, --num-processes and --process-id: expected all three '
        'or none of them'
      )
    if process_id >= num_processes:
      raise HostError(
        f'--process-id is {process_id}: expected 0 to {num_processes - 1}, '
        f'because --num-processes is {num_processes}'
      )
    if not coordinator.rpartition(':')[2].isdecimal():
      raise HostError(
        f'--coordinator is {coordinator!r}: expected an address and a port, '
        'such as 10.0.0.1:1234'
      )
  else:
    num_processes = host_cluster.num_processes()
  if num_processes == 1:
    return False
  for name, value in (
    ('jax_cpu_collectives_implementation', 'gloo'),
    ('jax_enable_preemption_service', False),  # Otherwise, JAX handles SIGTERM.
  ):
    with contextlib.suppress(AttributeError):  # Not all JAX versions have both.
      jax.config.update(name, value)
  try:
    if coordinator:
      jax.distributed.initialize(coordinator, num_processes, process_id)
    else:
      jax.distributed.initialize()
  except (RuntimeError, ValueError) as error:
    raise HostError(f'the processes cannot be connected: {error}') from error
  # JAX has no public functions for its key-value store.
  from jax._src import distributed

  state = distributed.global_state
  _Group.num_processes = state.num_processes
  _Group.process_id = state.process_id
  client: Any = state.client
  _Group.client = client
  own = f'{socket.gethostname()}, pid {os.getpid()}'
  client.key_value_set(f'coke_jax/names/{state.process_id}', own)
  _Group.names = tuple(
    client.blocking_key_value_get(f'coke_jax/names/{number}', _DAY)
    for number in range(state.num_processes)
  )
  return True


def describe(process_id: int) -> str:
  """Returns the number of a process, its host and its pid."""
  return f'process {process_id} ({_Group.names[process_id]})'


class _Watch:
  """Detects lost processes with two threads and a guard process."""

  def __init__(self) -> None:
    self._over = threading.Event()
    self._counters: dict[int, str] = {}
    now = time.monotonic()
    self._changed = dict.fromkeys(range(_Group.num_processes), now)
    self._answered = now  # the time of the last answer of the store
    self._ends: dict[int, tuple[str, int]] = {}  # reason and exit status
    self._left: set[int] = set()
    self._guard: host_guard.Guard | None = None
    if not is_main():
      from jax._src import distributed

      self._guard = host_guard.Guard(
        str(distributed.global_state.coordinator_address),
        f'error: {describe(_Group.process_id)} ended because {describe(0)} '
        f'was lost: {_CONTINUE}',
      )
    for function in (self._talk, self._judge):
      threading.Thread(target=function, daemon=True).start()

  def announce(self, text: str, status: int) -> None:
    """Stores the reason and the exit status for the other processes."""
    self._set('ends', json.dumps([text, status]))

  def leave(self) -> None:
    """Stops watching. Process 0 ends last, as its end aborts the others."""
    self._set('left', '')
    end = time.monotonic() + _LEAVE_SECONDS
    while is_main() and time.monotonic() < end:
      self._read()
      if len(self._left) == _Group.num_processes:
        break
      time.sleep(0.05)
    self._over.set()
    if self._guard is not None:
      self._guard.dismiss()

  def _set(self, kind: str, value: str) -> None:
    key = f'coke_jax/watch/{kind}/{_Group.process_id}'
    with contextlib.suppress(Exception):  # Process 0 may have left already.
      _Group.client.key_value_set(key, value, allow_overwrite=True)

  def _read(self) -> None:
    """Reads the values that all processes have stored with `_set`."""
    try:
      pairs = _Group.client.key_value_dir_get('coke_jax/watch/')
    except Exception:  # JAX documents no exception types.
      return
    now = self._answered = time.monotonic()
    for key, value in pairs:
      kind, number = key.split('/')[-2:]
      process_id = int(number)
      if kind == 'left':
        self._left.add(process_id)
      elif kind == 'ends':
        self._ends[process_id] = tuple(json.loads(value))
      elif self._counters.get(process_id) != value:
        self._counters[process_id] = value
        self._changed[process_id] = now

  def _talk(self) -> None:
    count = 0
    while not self._over.wait(_POLL_SECONDS):
      count += 1
      self._set('counters', str(count))
      self._read()

  def _judge(self) -> None:
    while not self._over.wait(_POLL_SECONDS):
      for process_id, (text, status) in list(self._ends.items()):
        if process_id != _Group.process_id:
          name = describe(process_id)
          if status > 1:
            number = signal.Signals(status - 128).name
            self._end(f'stopped by {number} in {name}: {_CONTINUE}', status)
          self._end(f'error: {name} ended: {text}', status)
      now = time.monotonic()
      if now - self._answered > _LOST_SECONDS:
        # Process 0 contains the store, which has not answered.
        self._end_without(0)
      for process_id, changed in self._changed.items():
        lost = self._answered - changed > _LOST_SECONDS
        if lost and process_id not in self._left:
          self._end_without(process_id)

  def _end_without(self, process_id: int) -> NoReturn:
    self._end(
      f'error: {describe(process_id)} was lost: no sign of it for '
      f'{_LOST_SECONDS:.0f} s: {_CONTINUE}',
      1,
    )

  def _end(self, text: str, status: int) -> NoReturn:
    """Ends this process, even if its main thread waits for another process."""
    self._set('left', '')
    if self._guard is not None:
      self._guard.dismiss()
    with contextlib.suppress(OSError):
      os.write(2, f'\n{text}\n'.encode())  # The text may follow a progress bar.
    os._exit(status)
