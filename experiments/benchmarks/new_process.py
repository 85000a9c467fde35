"""Calls a function in a new process."""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable
from typing import Any


def call(
  function: Callable[..., Any], *arguments: Any, **variables: str
) -> Any:
  """Calls a function in a new process and returns its result.

  Args:
    function: a function of a module.
    *arguments: its arguments.
    **variables: additional environment variables of the process.
  """
  before = dict(os.environ)
  os.environ.update(variables)
  try:
    with concurrent.futures.ProcessPoolExecutor(
      1, multiprocessing.get_context('spawn')
    ) as executor:
      return executor.submit(function, *arguments).result()
  finally:
    os.environ.clear()
    os.environ.update(before)
