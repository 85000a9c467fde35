"""The base class of every error that a user can cause."""


class CokeError(Exception):
  """Base of all errors about input, settings, files and devices.

  The message names the place, the value and what was expected, so it can be
  shown without a traceback. The subclasses also derive from the built-in
  exception that fits, such as `ValueError`.
  """


class NonFiniteError(CokeError, FloatingPointError):
  """A score or hidden state is NaN or infinite, so nothing can be ranked."""
