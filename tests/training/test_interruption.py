"""Tests the effects of SIGINT and SIGTERM."""

import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from coke_jax.training import interruption


def send(number: int = signal.SIGTERM) -> None:
  """Sends a signal to this thread, and returns after it was handled.

  If the signal were sent to the process, another thread could receive it later.
  """
  signal.raise_signal(number)


@pytest.fixture(autouse=True)
def default_sigint_handler():
  """Sets a handler of SIGINT: shells disable SIGINT for background jobs."""
  before = signal.signal(signal.SIGINT, signal.default_int_handler)
  yield
  signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize('number', interruption.SIGNALS)
def test_a_signal_is_recorded_and_nothing_else(number, capfd):
  with interruption.Watch() as watch:
    assert watch.received is None
    watch.check()
    send(number)
    assert watch.received == number
    with pytest.raises(interruption.Interruption, match='all is well') as stop:
      watch.check('all is well')
  assert stop.value.signal_number == number
  assert stop.value.exit_status == 128 + number
  assert str(stop.value).startswith(
    f'stopped by {signal.Signals(number).name}: '
  )
  assert 'saving' in capfd.readouterr().err


def test_signals_are_raised_at_once():
  reached = False
  with interruption.Watch() as watch:
    with watch.at_once():
      pass
    with pytest.raises(interruption.Interruption), watch.at_once():
      send()
    # After a signal, no further work begins.
    with pytest.raises(interruption.Interruption), watch.at_once():
      reached = True
  assert not reached


def test_an_exception_that_a_library_swallows_is_raised_again():
  def swallow() -> None:
    with interruption.Watch() as watch, watch.at_once():
      with contextlib.suppress(KeyboardInterrupt):
        send()
      swallowed.append(watch.received)

  swallowed: list[int | None] = []
  with pytest.raises(interruption.Interruption):
    swallow()
  assert swallowed == [signal.SIGTERM]


def test_an_exception_in_a_callback_is_raised_again(capfd):
  def collected(phase: str, _: object) -> None:
    if phase == 'start':
      gc.callbacks.clear()
      send()

  def work() -> None:
    with interruption.Watch() as watch, watch.at_once():
      # A garbage collection may start at any time. The callback is set only
      # here, so that it cannot send the signal while there is no handler.
      gc.callbacks[:] = [collected]
      gc.collect()
      time.sleep(20)
      finished.append(watch.received)

  finished: list[int | None] = []
  before = list(gc.callbacks)
  try:
    with pytest.raises(interruption.Interruption):
      work()
  finally:
    gc.callbacks[:] = before
  # Python swallowed the exception in the callback. Then `Watch` sent the signal
  # again, which ended `time.sleep` or, on a busy machine, `gc.collect`.
  assert not finished
  assert 'Traceback' not in capfd.readouterr().err


def test_handlers_are_restored():
  before = [signal.getsignal(number) for number in interruption.SIGNALS]
  threads, hook = threading.active_count(), sys.unraisablehook
  with interruption.Watch() as outer:
    with interruption.Watch() as inner:
      send()
      assert inner.received == signal.SIGTERM
    assert outer.received is None
    send()
    assert outer.received == signal.SIGTERM
  assert before == [signal.getsignal(n) for n in interruption.SIGNALS]
  assert sys.unraisablehook is hook
  assert threading.active_count() == threads
  assert signal.set_wakeup_fd(-1) == -1


def test_a_signal_that_was_ignored_stays_ignored():
  before = signal.signal(signal.SIGINT, signal.SIG_IGN)
  try:
    with interruption.Watch() as watch:
      send(signal.SIGINT)
      assert watch.received is None
      assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
  finally:
    signal.signal(signal.SIGINT, before)


def test_outside_the_main_thread_nothing_is_changed():
  before = [signal.getsignal(number) for number in interruption.SIGNALS]
  seen = []

  def work() -> None:
    with interruption.Watch() as watch, watch.at_once():
      seen.extend(signal.getsignal(n) for n in interruption.SIGNALS)

  thread = threading.Thread(target=work)
  thread.start()
  thread.join()
  assert seen == before


# The main thread waits in compiled code, so no Python handler runs. The process
# ends at the second signal. Inside `at_once`, it ends 5 s after the first one.
_WAITING = """
import contextlib, os, signal, sys, threading, time
from coke_jax.training import interruption
raising, signals = sys.argv[1] == 'raising', int(sys.argv[2])
def send():
  for _ in range(signals):
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
with (
  interruption.Watch() as watch,
  watch.at_once() if raising else contextlib.nullcontext(),
):
  threading.Thread(target=send).start()
  # Another thread gets the signal while the main thread waits for a lock.
  signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
  lock = threading.Lock()
  lock.acquire()
  lock.acquire(timeout=20)
"""


@pytest.mark.parametrize(('mode', 'signals'), [('raising', 1), ('noting', 2)])
def test_a_process_whose_main_thread_cannot_handle_signals_ends(mode, signals):
  done = subprocess.run(
    [sys.executable, '-c', _WAITING, mode, str(signals)],
    capture_output=True,
    text=True,
    timeout=60,
    check=False,
  )
  assert done.returncode == 128 + signal.SIGTERM, done.stderr
  assert 'Traceback' not in done.stderr
  assert 'without a checkpoint' in done.stderr


# Python's normal shutdown would crash, because `atexit` calls `os.abort`. Some
# output is still buffered. In one case, standard output has no reader.
_CRASHING = """
import atexit, logging, logging.handlers, os, sys
from coke_jax.training import interruption
atexit.register(os.abort)
file = logging.FileHandler(sys.argv[1])
held_back = logging.handlers.MemoryHandler(99, target=file)
logging.getLogger().addHandler(held_back)
logging.warning('logged')
print('said', end='')
interruption.leave(143)
"""


@pytest.mark.parametrize('reader', [True, False])
def test_leaving_flushes_all_output_and_cannot_crash(tmp_path, reader):
  process = subprocess.Popen(
    [sys.executable, '-c', _CRASHING, str(tmp_path / 'log')],
    env={**os.environ, 'PYTHONUNBUFFERED': ''},
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
  )
  if not reader:
    process.stdout.close()
  said, complaints = process.communicate(timeout=60)
  assert process.returncode == 143
  assert said == (b'said' if reader else b'')
  assert not complaints
  assert (tmp_path / 'log').read_text() == 'logged\n'
