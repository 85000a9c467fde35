"""Measures the memory of training steps with and without shards.

    python -m experiments.benchmarks.shard_memory

Each measurement runs in a process of its own with 1, 2, 4 or 8 devices that XLA
simulates on the CPU. The growth of the resident memory of the process, divided
by the number of devices, is the memory of one device. Prints a table.
"""

import argparse
import json
import os
import subprocess
import sys

import jax
import numpy as np

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import graph, vocabulary
from coke_jax.model import parameters
from coke_jax.training import setup as setup_lib
from experiments.benchmarks import memory

DEVICES = (1, 2, 4, 8)
STEPS = 3


def main() -> None:
  """Measures every number of devices and prints the table."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument('--entities', type=int, default=200_000)
  parser.add_argument('--width', type=int, default=64)
  parser.add_argument('--devices', type=int, nargs='*', default=DEVICES)
  parser.add_argument('--measure', help='used internally')
  options = parser.parse_args()
  if options.measure:
    measure(options.entities, options.width, options.measure == 'shards')
    return
  print(
    f'{options.entities:,} entities, {options.width} numbers each; MB of a '
    'device\n| devices | replicas | shards |\n|---:|---:|---:|'
  )
  for devices in options.devices:
    replicas, shards = (
      _in_process(options, devices, kind) / devices / 1e6
      for kind in ('replicas', 'shards')
    )
    print(f'| {devices} | {replicas:.0f} | {shards:.0f} |', flush=True)


def measure(num_entities: int, width: int, shards: bool) -> None:
  """Runs some steps, and prints the growth of the memory in bytes as JSON."""
  config = config_lib.default_config()
  config.shard_vocabulary = shards
  config.model.update(
    num_layers=1, hidden_size=width, feed_forward_size=width, num_heads=1
  )
  config.train.update(batch_size=64, steps_per_call=1, vocabulary_chunk=4096)
  triples = np.zeros((256, 3), np.int32)
  triples[:, 2] = np.arange(1, 257)
  words = vocabulary.Vocabulary(
    tuple(f'{index:07}' for index in range(num_entities)), ('r',)
  )
  data = graph.KnowledgeGraph('made', words, triples, triples[:0], triples[:0])
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  batches = list(setup.training_set.epoch(0))[:STEPS]
  growth = memory.Growth()
  state = setup.placement.place(setup.init_state())
  for batch in batches:
    state, metrics = setup.train_step(state, [batch], parameters.dropout_key(0))
    jax.block_until_ready((state, metrics))
  print(json.dumps(growth.peak()))


def _in_process(options: argparse.Namespace, devices: int, kind: str) -> float:
  """Returns the growth of the memory of a process, in bytes."""
  flags = f'--xla_force_host_platform_device_count={devices}'
  done = subprocess.run(
    [
      *(sys.executable, '-m', 'experiments.benchmarks.shard_memory'),
      f'--entities={options.entities}',
      f'--width={options.width}',
      f'--measure={kind}',
    ],
    env={
      **os.environ,
      'JAX_PLATFORMS': 'cpu',
      'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} {flags}'.strip(),
    },
    stdout=subprocess.PIPE,
    check=True,
    text=True,
  )
  return float(json.loads(done.stdout.splitlines()[-1]))


if __name__ == '__main__':
  main()
