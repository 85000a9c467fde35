"""Calls functions in a new process."""

import concurrent.futures
import multiprocessing
import os
from collections.abc import Callable
from typing import Any


def start(**variables: str) -> concurrent.futures.ProcessPoolExecutor:
  """Starts a process that executes one call after another.

  Args:
    **variables: additional environment variables of the process.
  """
  process = concurrent.futures.ProcessPoolExecutor(
    1, multiprocessing.get_context('spawn')
  )
  before = dict(os.environ)
  os.environ.update(variables)
  try:
    process.submit(os.getpid)  # The first call starts the process.
  finally:
    os.environ.clear()
    os.environ.update(before)
  return process


def call(
  function: Callable[..., Any], *arguments: Any, **variables: str
) -> Any:
  """Calls a function in a new process and returns its result.

  Args:
    function: a function of a module.
    *arguments: its arguments.
    **variables: additional environment variables of the process.
  """
  with start(**variables) as process:
    return process.submit(function, *arguments).result()
