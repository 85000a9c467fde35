"""Measures one setting in a process of its own; see `processes`."""

import functools
import importlib.metadata
import importlib.util
import os
from typing import Any

import jax

from experiments.benchmarks import (
  data_sets,
  flops,
  matrices,
  memory,
  plan,
  ranking,
  stopwatch,
)
from experiments.paper import provenance

COMMANDS = ('start', 'prepare', 'measure', 'finish')


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

  def __init__(self, setting: plan.Setting):
    pass

  def prepare(self) -> dict[str, Any]:
    """Returns commit, versions, device, platform and number of cores."""
    described = provenance.describe()
    if importlib.util.find_spec('torch') is not None:
      described['versions']['torch'] = importlib.metadata.version('torch')
    return {
      **described,
      'platform': jax.default_backend(),
      'cores': len(_cores()) or os.cpu_count(),
    }


@functools.cache
def make_workload(setting: plan.Setting) -> Any:
  """Limits the cores and returns the object that measures a setting."""
  limit_cores(setting.threads)
  if setting.framework == 'torch':
    import torch  # not always installed

    if setting.threads:
      torch.set_num_threads(setting.threads)
  kinds: dict[str, Any] = {
    'training': Training,
    'evaluation': ranking.Evaluation,
    'matrices': matrices.Matrices,
    'machine': Machine,
  }
  return kinds[setting.kind](setting)


def execute(command: str, setting: plan.Setting) -> dict[str, Any]:
  """Executes one of COMMANDS. `start` only calls `make_workload`."""
  workload = make_workload(setting)
  if command == 'start':
    return {}
  reply: dict[str, Any] = getattr(workload, command)()
  return reply


def limit_cores(threads: int) -> None:
  """Limits this process to its first `threads` cores; 0 sets no limit.

  Must be called before jax is used for the first time, because jax then starts
  a thread for each core.

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
  for thread in os.listdir('/proc/self/task'):
    os.sched_setaffinity(int(thread), cores[:threads])


def _cores() -> list[int]:
  """Returns the cores that this process may use; outside Linux, []."""
  if not hasattr(os, 'sched_getaffinity'):
    return []
  return sorted(os.sched_getaffinity(0))
