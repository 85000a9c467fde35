"""Measures the memory of a training with and without shards.

    python -m experiments.benchmarks.shard_memory

Each measurement runs in a process of its own with 1, 2, 4 or 8 devices that XLA
simulates on the CPU. The devices and the host share one memory. The phases are
the creation of the state, training steps, writing a checkpoint, and reading it.
For each phase, the table shows the largest growth of the memory since the start
of the first phase, divided by the number of devices.
"""

import gc
import os
import pathlib
import tempfile
from typing import Any

import jax

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import benchmarks
from coke_jax.model import parameters
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import shard_checkpoints
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_state
from experiments.benchmarks import data_sets, memory, new_process
from experiments.paper import options as options_lib

DEVICES = (1, 2, 4, 8)
STEPS = 3
PHASES = ('start', 'steps', 'writing', 'reading')
KINDS = ('replicas', 'shards')


def main() -> None:
  """Measures every number of devices and prints the table."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--entities', type=int, default=200_000)
  parser.add_argument('--width', type=int, default=64)
  parser.add_argument('--devices', type=int, nargs='*', default=DEVICES)
  options = parser.parse_args()
  names = [f'{phase}, {kind}' for phase in PHASES for kind in KINDS]
  print(
    f'{options.entities:,} entities, {options.width} numbers each; MB per '
    f'device\n| devices | {" | ".join(names)} |\n|{"---:|" * (len(names) + 1)}'
  )
  for devices in options.devices:
    flags = f'--xla_force_host_platform_device_count={devices}'
    measured = [
      new_process.call(
        measure,
        options.entities,
        options.width,
        kind == 'shards',
        JAX_PLATFORMS='cpu',
        XLA_FLAGS=f'{os.environ.get("XLA_FLAGS", "")} {flags}'.strip(),
      )
      for kind in KINDS
    ]
    cells = [
      f'{growth[phase] / devices / 1e6:.0f}'
      for phase in PHASES
      for growth in measured
    ]
    print(f'| {devices} | {" | ".join(cells)} |', flush=True)


def measure(num_entities: int, width: int, shards: bool) -> dict[str, int]:
  """Trains. Returns the largest growth in each phase, in bytes."""
  config = config_lib.default_config()
  config.shard_vocabulary = shards
  config.model.update(
    num_layers=1, hidden_size=width, feed_forward_size=width, num_heads=1
  )
  config.train.update(batch_size=64, steps_per_call=1, vocabulary_chunk=4096)
  counts = benchmarks.Benchmark(num_entities, 1, (256, 0, 0))
  data = data_sets.random_graph(counts)
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  batches = list(setup.training_set.epoch(0))[:STEPS]
  placement = setup.placement
  shapes = train_state.to_items(jax.eval_shape(setup.init_state))
  growth = memory.Growth()
  found: dict[str, int] = {}

  def end(phase: str, value: Any) -> None:
    jax.block_until_ready(value)
    found[phase] = growth.peak()
    gc.collect()
    growth.restart()

  state: Any = setup.init_placed()
  end('start', state)
  for batch in batches:
    state, metrics = setup.train_step(state, [batch], parameters.dropout_key(0))
    jax.block_until_ready((state, metrics))
  end('steps', state)
  with tempfile.TemporaryDirectory() as name:
    opened: Any
    folder = pathlib.Path(name)
    if placement.is_cut:
      opened = shard_checkpoints.ShardCheckpoints(
        folder, placement, writing=True
      )
    else:
      opened = checkpoints_lib.Checkpoints(folder, writing=True)
    with opened:
      saved: Any = train_state.to_items(
        state if placement.is_cut else jax.device_get(state)
      )
      opened.save(STEPS, saved, {'step': STEPS, 'best_step': None})
      end('writing', ())
      state = saved = None
      gc.collect()
      growth.restart()
      restored = opened.latest(shapes)
      assert restored is not None
      state = restored[0] if placement.is_cut else placement.place(restored[0])
      end('reading', state)
  return found


if __name__ == '__main__':
  main()
