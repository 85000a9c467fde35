"""Ends a program after SIGINT or SIGTERM, when its work is saved."""

import contextlib
import logging
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)
# Compiled code delays Python's signal handlers. If a handler is delayed for
# longer than this, the process ends.
_PATIENCE_SECONDS = 5.0
# If Python swallowed the exception of a signal, the signal is repeated after
# this time.
_AGAIN_SECONDS = 0.05


class Interruption(KeyboardInterrupt):
  """Raised after SIGINT or SIGTERM, at a point where the program can stop.

  Attributes:
    signal_number: the signal.
  """

  def __init__(self, signal_number: int, state: str = ''):
    """Describes the signal.

    Args:
      signal_number: the signal.
      state: what was saved and how to continue, appended to the message.
    """
    name = signal.Signals(signal_number).name
    super().__init__(f'stopped by {name}' + (f': {state}' if state else ''))
    self.signal_number = signal_number

  @property
  def exit_status(self) -> int:
    """The exit status of the process: 128 + the number of the signal."""
    return 128 + self.signal_number


def leave(status: int) -> NoReturn:
  """Ends the process immediately, after flushing logs and standard streams.

  Call this function when everything is saved and closed. Compiled code may
  still be running in its own threads. Python's normal shutdown would unload
  libraries that these threads use. This could crash the process and change the
  exit status.

  Args:
    status: the exit status.
  """
  logging.shutdown()
  for stream in (sys.stdout, sys.stderr):
    with contextlib.suppress(OSError, ValueError):  # A stream may be closed.
      stream.flush()
  os._exit(status)


class Watch:
  """Handles SIGINT and SIGTERM while its `with` statement runs.

  The first signal sets `received`, so that the current work can be finished
  and saved. Inside `at_once`, the first signal also raises `Interruption`. The
  second signal ends the process immediately. A signal that is ignored, for
  example because of nohup, stays ignored. Outside the main thread, a watch does
  nothing, because Python allows no handlers there. If watches are nested, the
  inner one handles the signals.

  Attributes:
    received: the number of the first signal. None if there was no signal.
  """

  def __init__(self, work: str = 'saving a checkpoint') -> None:
    """Prepares a watch.

    Args:
      work: what is done after the first signal. The message about the signal
        contains this text.
    """
    self.received: int | None = None
    self._work = work
    self._raising = False
    self._raise_again = False
    self._own_signals = 0
    self._handlers: dict[int, Any] = {}
    self._listener: threading.Thread | None = None

  def __enter__(self) -> 'Watch':
    if threading.current_thread() is not threading.main_thread():
      return self
    # Python runs signal handlers between bytecode instructions. A compilation
    # or a long computation is a single instruction, so a thread also waits for
    # signals.
    self._pipe, self._signalled = os.pipe()
    os.set_blocking(self._signalled, False)
    self._listener = threading.Thread(target=self._listen, daemon=True)
    self._wakeup = signal.set_wakeup_fd(
      self._signalled, warn_on_full_buffer=False
    )
    # Python swallows exceptions in some callbacks, for example of the garbage
    # collector. Then Python calls `_swallowed`, which repeats the signal.
    self._hook, sys.unraisablehook = sys.unraisablehook, self._swallowed
    for number in SIGNALS:
      if signal.getsignal(number) is not signal.SIG_IGN:
        self._handlers[number] = signal.signal(number, self._handle)
    self._listener.start()
    return self

  def __exit__(self, *_: object) -> None:
    if self._listener is None:
      return
    for number, handler in self._handlers.items():
      signal.signal(number, handler or signal.SIG_DFL)
    # Other code may have replaced the hook since.
    if sys.unraisablehook == self._swallowed:
      sys.unraisablehook = self._hook
    signal.set_wakeup_fd(self._wakeup)
    os.close(self._signalled)  # Ends the listener.
    self._listener.join()
    os.close(self._pipe)
    self._listener = None

  @contextlib.contextmanager
  def at_once(self) -> Iterator[None]:
    """Raises as soon as a signal arrives, for work that can be abandoned.

    Raises:
      Interruption: a signal was received before or inside the `with` statement.
    """
    try:
      self._raising = True
      self.check()
      yield
    finally:
      self._raising = False
    self.check()  # Python may have swallowed the exception of the handler.

  def check(self, state: str = '') -> None:
    """Raises if a signal was received.

    Args:
      state: what was saved and how to continue, appended to the message.

    Raises:
      Interruption: a signal was received.
    """
    if self.received is not None:
      raise Interruption(self.received, state)

  def _handle(self, number: int, _: object) -> None:
    if self.received is not None and not self._raise_again:
      return
    self.received, self._raise_again = number, False
    if self._raising:
      raise Interruption(number)
    name = signal.Signals(number).name
    _say(f'{name}: {self._work}; repeat to exit immediately')

  def _swallowed(self, unraisable: Any) -> None:
    if isinstance(unraisable.exc_value, Interruption):
      os.write(self._signalled, bytes(1))  # `_listen` explains the zero byte.
    else:
      self._hook(unraisable)

  def _listen(self) -> None:
    """Ends the process at the second signal, or if the first has no effect.

    Inside `at_once`, the first signal has no effect if no handler runs within
    `_PATIENCE_SECONDS`. A zero byte in the pipe means that Python swallowed the
    exception of the handler. Then the first signal is sent again.
    """
    first = None
    while True:
      unheard = first is not None and self.received is None and self._raising
      patience = _PATIENCE_SECONDS if unheard else None
      ready, _, _ = select.select([self._pipe], [], [], patience)
      if ready:
        byte = os.read(self._pipe, 1)
        if not byte:
          return
        if not byte[0] and first is not None:
          time.sleep(_AGAIN_SECONDS)
          if self._raising:
            self._own_signals += 1
            self._raise_again = True
            signal.pthread_kill(threading.main_thread().ident or 0, first)
        if byte[0] not in self._handlers:
          continue
        if self._own_signals:
          self._own_signals -= 1
          continue
        if first is None:
          first = byte[0]
          continue
      elif self.received is not None or not self._raising:
        continue
      assert first is not None
      _say(f'{Interruption(first)}, without a checkpoint')
      os._exit(Interruption(first).exit_status)


def _say(text: str) -> None:
  """Writes a line to standard error; `print` is not safe in a handler."""
  with contextlib.suppress(OSError):
    os.write(2, f'\n{text}\n'.encode())
