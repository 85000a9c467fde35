"""Checks the base classes of all errors of the package."""

import importlib
import inspect
import pkgutil

import coke_jax


def test_every_error_class_is_a_coke_error():
  found = set()
  for module in pkgutil.walk_packages(coke_jax.__path__, 'coke_jax.'):
    if module.name == 'coke_jax.main':
      continue  # Importing it would define flags in this process.
    for _, value in inspect.getmembers(importlib.import_module(module.name)):
      if inspect.isclass(value) and value.__module__.startswith('coke_jax'):
        found.add(value)
  raised = {value for value in found if issubclass(value, Exception)}
  assert len(raised) > 10
  assert {
    value for value in raised if not issubclass(value, coke_jax.CokeError)
  } == set()
  # Each class also has a built-in base class, such as ValueError. So callers
  # can catch its errors without importing coke_jax.
  for error in raised - {coke_jax.CokeError}:
    assert issubclass(
      error, (ValueError, RuntimeError, OSError, ArithmeticError)
    )
