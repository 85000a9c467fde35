"""Ctrl-C and SIGTERM: who is asked to stop saves first, and stops soon."""

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
_PATIENCE_SECONDS = 5.0  # with compiled code that keeps Python from raising
_AGAIN_SECONDS = 0.05  # after raising where Python could not pass it on


class Interruption(KeyboardInterrupt):
  """The program was asked to stop, and may do so now.

  Attributes:
    signal_number: what asked.
  """

  def __init__(self, signal_number: int, state: str = ''):
    """Says who asked.

    Args:
      signal_number: what asked.
      state: what was saved, and how to go on.
    """
    name = signal.Signals(signal_number).name
    super().__init__(f'stopped by {name}' + (f': {state}' if state else ''))
    self.signal_number = signal_number

  @property
  def exit_status(self) -> int:
    """What a shell expects of a program that a signal has ended."""
    return 128 + self.signal_number


def leave(status: int) -> NoReturn:
  """Ends the process there and then, when all is saved and closed.

  A signal can meet compiled code that is still at work in threads of its own.
  Python takes the libraries down around them when it ends, which may crash, and
  the exit status would tell of that. So what Python does at its end is left
  out, but for what was said and not yet written; the system frees the rest.
  """
  logging.shutdown()
  for stream in (sys.stdout, sys.stderr):
    with contextlib.suppress(OSError, ValueError):  # no reader, or closed
      stream.flush()
  os._exit(status)


class Watch:
  """Takes note of signals while a `with` statement runs.

  The first signal sets `received` and nothing else, so that the work at hand
  can be finished and saved; inside `at_once` it raises `Interruption`. The
  second signal ends the process there and then. Outside the main thread, where
  Python allows no handlers, nothing is changed; a signal that was ignored
  before (as by nohup) stays ignored. Watches can be nested: the inner one is
  told.

  Attributes:
    received: the number of the first signal.
  """

  def __init__(self) -> None:
    self.received: int | None = None
    self._raising = False
    self._raise_again = False
    self._own_signals = 0
    self._handlers: dict[int, Any] = {}
    self._listener: threading.Thread | None = None

  def __enter__(self) -> 'Watch':
    if threading.current_thread() is not threading.main_thread():
      return self
    # Python calls handlers between two of its own instructions. Compiling and
    # long computations are one instruction, hence a thread that listens, too.
    self._pipe, self._signalled = os.pipe()
    os.set_blocking(self._signalled, False)
    self._listener = threading.Thread(target=self._listen, daemon=True)
    self._wakeup = signal.set_wakeup_fd(
      self._signalled, warn_on_full_buffer=False
    )
    # Callbacks of the garbage collector, for one, cannot raise.
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
    if sys.unraisablehook == self._swallowed:  # nobody has added to it
      sys.unraisablehook = self._hook
    signal.set_wakeup_fd(self._wakeup)
    os.close(self._signalled)  # the listener reads the end of the pipe
    self._listener.join()
    os.close(self._pipe)
    self._listener = None

  @contextlib.contextmanager
  def at_once(self) -> Iterator[None]:
    """Inside, a signal raises: for work that can be left without a loss.

    Raises:
      Interruption: there was a signal before, or there is one inside.
    """
    try:
      self._raising = True
      self.check()
      yield
    finally:
      self._raising = False
    self.check()  # what was raised inside may have been swallowed

  def check(self, state: str = '') -> None:
    """Raises if there was a signal.

    Args:
      state: what was saved, and how to go on.

    Raises:
      Interruption: there was one.
    """
    if self.received is not None:
      raise Interruption(self.received, state)

  def _handle(self, number: int, _: object) -> None:
    if self.received is not None and not self._raise_again:
      return
    self.received, self._raise_again = number, False
    if self._raising:
      raise Interruption(number)
    _say(f'{signal.Signals(number).name}: saving; once more to leave at once')

  def _swallowed(self, unraisable: Any) -> None:
    if isinstance(unraisable.exc_value, Interruption):
      os.write(self._signalled, bytes(1))  # no signal: see `_listen`
    else:
      self._hook(unraisable)

  def _listen(self) -> None:
    """Ends the process at the second signal, or when the first goes unheard."""
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
      _say(f'{Interruption(first)}, without waiting for the work at hand')
      os._exit(Interruption(first).exit_status)


def _say(text: str) -> None:
  """Writes a line; print cannot be called while it may be at work."""
  with contextlib.suppress(OSError):
    os.write(2, f'\n{text}\n'.encode())
