"""The base class of all errors that users can cause."""


class CokeError(Exception):
  """Base class of errors in input, settings, files and devices.

  The message names the place, the value and the expectation, so that it can be
  shown without a traceback. Subclasses also derive from a built-in exception,
  such as `ValueError`.
  """


class NonFiniteError(CokeError, FloatingPointError):
  """A score or hidden state is NaN or infinite."""
