"""A process that measures one setting, step by step as it is told.

    python -m experiments.benchmarks.worker '{"kind": "training", ...}'

Reads one of COMMANDS a line, answers each with a line of JSON, and ends after
the last of them, or when its input does.
"""

import importlib
import importlib.metadata
import importlib.util
import json
import os
import sys
from typing import Any, TextIO

from experiments.benchmarks import plan

COMMANDS = ('prepare', 'measure', 'finish')
_WORKLOADS = {
  'training': ('stepping', 'Training'),
  'evaluation': ('ranking', 'Evaluation'),
  'matrices': ('matrices', 'Matrices'),
  'machine': ('worker', 'Machine'),
}


class Machine:
  """What a process of kind `machine` says: where the numbers come from."""

  def __init__(self, setting: plan.Setting):
    del setting

  def prepare(self) -> dict[str, Any]:
    """Commit, versions, device, and whether it is a GPU."""
    import jax

    from experiments.paper import provenance

    described = provenance.describe()
    torch = torch_version()
    if torch:
      described['versions']['torch'] = torch
    return {
      **described,
      'platform': jax.default_backend(),
      'cores': len(_cores()) or os.cpu_count(),
    }

  def finish(self) -> dict[str, Any]:
    """Nothing more to say."""
    return {}


def torch_version() -> str:
  """The version of PyTorch here; empty: it is not installed."""
  if importlib.util.find_spec('torch') is None:
    return ''
  return importlib.metadata.version('torch')


def main(arguments: list[str]) -> None:
  """Does what the input says."""
  setting = plan.Setting(**json.loads(arguments[0]))
  hold_to_cores(setting.threads)
  replies = _take_output()
  name, workload_name = _WORKLOADS[setting.kind]
  module = importlib.import_module(f'experiments.benchmarks.{name}')
  if setting.framework == 'torch':
    import torch

    if setting.threads:
      torch.set_num_threads(setting.threads)
  workload = getattr(module, workload_name)(setting)
  _say(replies, {'setting': setting.label})
  for line in sys.stdin:
    command = line.strip()
    if command not in COMMANDS:
      raise ValueError(f'told to {command!r}: expected one of {COMMANDS}')
    _say(replies, getattr(workload, command)())
    if command == COMMANDS[-1]:
      return


def hold_to_cores(threads: int) -> None:
  """Keeps this process to its first cores; 0: to all it may use.

  jax starts as many threads as there are cores it may use, so this comes before
  it is imported.

  Raises:
    ValueError: there are fewer cores.
  """
  if not threads:
    return
  cores = _cores()
  if not cores:  # not Linux; then the number of threads alone is held to
    return
  if threads > len(cores):
    raise ValueError(f'{threads} threads: there are {len(cores)} cores')
  os.sched_setaffinity(0, cores[:threads])


def _cores() -> list[int]:
  """The cores this process may use; empty where the system does not tell."""
  if not hasattr(os, 'sched_getaffinity'):
    return []
  return sorted(os.sched_getaffinity(0))


def _take_output() -> TextIO:
  """Keeps standard output for replies; what others print goes to errors."""
  replies = os.fdopen(os.dup(sys.stdout.fileno()), 'w', encoding='utf-8')
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
  return replies


def _say(replies: TextIO, reply: dict[str, Any]) -> None:
  replies.write(json.dumps(reply) + '\n')
  replies.flush()


if __name__ == '__main__':
  main(sys.argv[1:])
