"""Measures one setting in a process of its own.

    python -m experiments.benchmarks.worker '{"kind": "training", ...}'

First prints a line of JSON with the label of the setting. Each line of standard
input is one of COMMANDS. Each answer is a line of JSON. The process ends after
the command `finish` or at the end of the input.
"""

import importlib.metadata
import importlib.util
import json
import os
import sys
from typing import Any, TextIO

from experiments.benchmarks import plan

COMMANDS = ('prepare', 'measure', 'finish')


class Training:
  """Measures a setting of kind `training`."""

  def __init__(self, setting: plan.Setting):
    self._setting = setting

  def prepare(self) -> dict[str, Any]:
    """Reads the data, builds the model and compiles the steps.

    Returns:
      `compile_seconds`.
      `step_seconds`: the seconds of a step, by sequence length.
      `steps`: the number of steps in a round, by sequence length.
      `epoch`: the `instances`, `queries`, `batches` (by sequence length) and
        `flops` of an epoch.
    """
    from experiments.benchmarks import data_sets, flops, memory, stopwatch

    setting = self._setting
    config = data_sets.make_config(setting)
    task = data_sets.make_task(setting, config)
    self._memory = memory.Growth()
    if setting.framework == 'torch':
      from experiments.benchmarks import torch_steps

      self._stepper: stopwatch.Stepper = torch_steps.Steps(config, task)
    else:
      self._stepper = stopwatch.Steps(config, task)
    shape = flops.Shape(
      task.data.vocabulary.num_entities,
      config.model.num_layers,
      config.model.hidden_size,
      config.model.feed_forward_size,
      self._stepper.whole_last_block,
    )
    self._stopwatch = stopwatch.Stopwatch(self._stepper)
    self._steps = self._stopwatch.round_steps(setting.seconds)
    batches = self._stopwatch.batches
    training_set = self._stepper.training_set
    return {
      'compile_seconds': self._stopwatch.compile_seconds,
      'step_seconds': self._stopwatch.step_seconds,
      'steps': self._steps,
      'epoch': {
        'instances': training_set.num_instances,
        'queries': training_set.num_rows,
        'batches': batches,
        'flops': setting.batch_size
        * sum(
          count * shape.training(length) for length, count in batches.items()
        ),
      },
    }

  def measure(self) -> dict[str, Any]:
    """Returns the `step_seconds` of a round, by sequence length."""
    return {'step_seconds': self._stopwatch.measure(self._steps)}

  def finish(self) -> dict[str, Any]:
    """Returns the peak memory.

    Returns:
      `memory`: peak bytes in addition to libraries and data.
      `device_memory`: peak bytes of the accelerator; None on a CPU.
    """
    return {
      'memory': self._memory.peak(),
      'device_memory': self._stepper.device_memory(),
    }


class Machine:
  """Describes the machine, for a setting of kind `machine`."""

  def prepare(self) -> dict[str, Any]:
    """Returns commit, versions, device, platform and number of cores."""
    import jax

    from experiments.paper import provenance

    described = provenance.describe()
    if importlib.util.find_spec('torch') is not None:
      described['versions']['torch'] = importlib.metadata.version('torch')
    return {
      **described,
      'platform': jax.default_backend(),
      'cores': len(_cores()) or os.cpu_count(),
    }


def make_workload(setting: plan.Setting) -> Any:
  """Returns the object whose methods are the COMMANDS."""
  # The modules are imported here, after the process has limited its cores.
  if setting.kind == 'training':
    return Training(setting)
  if setting.kind == 'machine':
    return Machine()
  if setting.kind == 'matrices':
    from experiments.benchmarks import matrices

    return matrices.Matrices(setting)
  from experiments.benchmarks import ranking

  return ranking.Evaluation(setting)


def main(arguments: list[str]) -> None:
  """Executes the commands of standard input."""
  setting = plan.Setting(**json.loads(arguments[0]))
  limit_cores(setting.threads)
  replies = _take_output()
  if setting.framework == 'torch':
    import torch

    if setting.threads:
      torch.set_num_threads(setting.threads)
  workload = make_workload(setting)
  _reply(replies, {'setting': setting.label})
  for line in sys.stdin:
    command = line.strip()
    if command not in COMMANDS:
      raise ValueError(f'command is {command!r}: expected one of {COMMANDS}')
    _reply(replies, getattr(workload, command)())
    if command == COMMANDS[-1]:
      return


def limit_cores(threads: int) -> None:
  """Limits this process to its first `threads` cores; 0 sets no limit.

  Must be called before the import of jax, which starts a thread for each core.

  Raises:
    ValueError: the process has fewer cores than `threads`.
  """
  cores = _cores()
  if not threads or not cores:
    return
  if threads > len(cores):
    raise ValueError(
      f'threads is {threads}: expected at most {len(cores)}, the core count'
    )
  os.sched_setaffinity(0, cores[:threads])


def _cores() -> list[int]:
  """Returns the cores that this process may use; outside Linux, []."""
  if not hasattr(os, 'sched_getaffinity'):
    return []
  return sorted(os.sched_getaffinity(0))


def _take_output() -> TextIO:
  """Keeps standard output for replies; other prints go to standard error."""
  replies = os.fdopen(os.dup(sys.stdout.fileno()), 'w', encoding='utf-8')
  os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
  return replies


def _reply(replies: TextIO, reply: dict[str, Any]) -> None:
  replies.write(json.dumps(reply) + '\n')
  replies.flush()


if __name__ == '__main__':
  main(sys.argv[1:])
