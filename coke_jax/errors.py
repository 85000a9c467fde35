"""The base class of all errors that a user can cause, and two subclasses."""


class CokeError(Exception):
  """Base class of errors in input, settings, files and devices.

  The message states the place, the value and the expectation. It is clear
  without a traceback. Every subclass also derives from a built-in exception,
  such as `ValueError`.
  """


class PathError(CokeError, ValueError):
  """A file path that cannot exist, such as a path with a NUL character."""


class NonFiniteError(CokeError, FloatingPointError):
  """A score or hidden state is NaN or infinite."""
