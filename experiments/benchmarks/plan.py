"""What is measured: settings, and which of them are compared.

Imports nothing that starts threads: a process has to hold to its cores first.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

PARTS = ('training', 'evaluation', 'growth')

# Ways to train. `rows` is `config.train.rows`; PyTorch's bfloat16 is autocast;
# `compiled` is torch.compile.
VARIANTS: dict[str, dict[str, Any]] = {
  f'torch-{dtype}{"-compiled" if compiled else ""}': {
    'framework': 'torch',
    'dtype': dtype,
    'compiled': compiled,
  }
  for dtype in ('float32', 'bfloat16')
  for compiled in (False, True)
} | {
  f'coke-{rows}-{dtype}': {
    'framework': 'coke_jax',
    'dtype': dtype,
    'rows': rows,
  }
  for rows in ('instance', 'query')
  for dtype in ('float32', 'bfloat16')
}
BASELINE = 'torch-float32'  # what all are compared with
INSTANCE_MODE = {  # what query mode is compared with
  f'coke-query-{dtype}': f'coke-instance-{dtype}'
  for dtype in ('float32', 'bfloat16')
}
GROWTH_VARIANTS = (
  'torch-float32',
  'coke-instance-float32',
  'coke-instance-bfloat16',
)
SMOKE_VARIANTS = ('torch-float32', 'coke-query-bfloat16')

# A round is cut off there, even if that is in the middle of a call of several
# steps; a single step of each length it has in any case.
LONGEST_ROUND_SECONDS = 30.0
# A training whose steps take longer is measured in the first round alone.
# PyTorch's bfloat16 is that slow on processors without instructions for it.
SLOW_SECONDS = 20.0

# Blocks: the paper's setting, and the few that a small machine can train.
LAYERS = {'FB15k-237': (12, 3), 'WN18RR': (12, 3), 'PathQueryWN': (6, 3)}
PATHS = ('PathQueryWN',)
# For a first look and for tests: random, with a small model.
TINY = ('tiny', 'tiny-paths')

# Growth with V is measured on random graphs, as large as FB15k-237 but for V.
GROWTH_DATASET = 'FB15k-237'
GROWTH_ENTITIES = (10_000, 40_000, 100_000, 400_000)
GROWTH_ENTITIES_LAYERS = 3
GROWTH_LAYERS = (1, 3, 6, 12)
GROWTH_BATCH_SIZE = 512


@dataclasses.dataclass(frozen=True)
class Setting:
  """What one process measures.

  Attributes:
    kind: `training`, `evaluation`, `matrices` (the rate of large products) or
      `machine` (what machine it is).
    label: its name among those that it is compared with.
    framework: `coke_jax` or `torch`.
    dataset: a name of `data_sets.COUNTS`.
    num_entities: of a random graph with the data set's other counts; 0: the
      data set itself.
    random: whether random data stand in for the data set.
    num_layers: L.
    batch_size: rows in a batch.
    threads: cores to hold to; 0: all.
    dtype: operands of the model's products, float32 or bfloat16.
    rows: `config.train.rows`.
    compiled: whether torch.compile is used.
    steps: least steps in a round of training.
    seconds: least seconds in a round of training.
  """

  kind: str
  label: str = ''
  framework: str = 'coke_jax'
  dataset: str = 'FB15k-237'
  num_entities: int = 0
  random: bool = False
  num_layers: int = 12
  batch_size: int = 512
  threads: int = 0
  dtype: str = 'float32'
  rows: str = 'instance'
  compiled: bool = False
  steps: int = 1
  seconds: float = 5.0


@dataclasses.dataclass(frozen=True)
class Group:
  """Settings that are compared: measured in turns.

  Attributes:
    section: the title of a table, of several groups.
    title: what its settings have in common, within the table.
    settings: each in a process of its own.
  """

  section: str
  title: str
  settings: tuple[Setting, ...]


def training_groups(
  base: Setting,
  variants: Sequence[str],
  datasets: Sequence[str],
  layers: Sequence[int],
  batch_sizes: Sequence[int],
  threads: Sequence[int],
) -> list[Group]:
  """Every combination, with all the ways to train compared in each.

  Args:
    base: gives the fields that are not varied.
    variants: of VARIANTS.
    datasets: names.
    layers: L; empty: the data set's LAYERS.
    batch_sizes: rows in a batch.
    threads: cores to hold to.
  """
  return [
    _group(
      f'Training on {dataset}',
      f'L={num_layers}, batch {batch_size}, {_cores(count)}',
      variants,
      dataclasses.replace(
        base,
        dataset=dataset,
        num_layers=num_layers,
        batch_size=batch_size,
        threads=count,
      ),
    )
    for dataset in datasets
    for num_layers in layers or LAYERS[dataset]
    for batch_size in batch_sizes
    for count in threads
  ]


def evaluation_groups(
  base: Setting, datasets: Sequence[str], layers: Sequence[int], threads: int
) -> list[Group]:
  """The full test evaluation of each data set of triples."""
  return [
    _evaluation(
      dataclasses.replace(
        base, dataset=dataset, num_layers=num_layers, threads=threads
      )
    )
    for dataset in datasets
    if dataset not in PATHS
    for num_layers in layers or LAYERS[dataset]
  ]


def growth_groups(
  base: Setting, variants: Sequence[str], threads: int
) -> list[Group]:
  """Growth with V and with L, of those of `variants` in GROWTH_VARIANTS."""
  variants = [name for name in variants if name in GROWTH_VARIANTS]
  base = dataclasses.replace(
    base,
    dataset=GROWTH_DATASET,
    num_layers=GROWTH_ENTITIES_LAYERS,
    batch_size=GROWTH_BATCH_SIZE,
    threads=threads,
  )
  shape = f'batch {GROWTH_BATCH_SIZE}, {_cores(threads)}'
  by_entities = [
    _group(
      f'Growth with V (random graphs, L={GROWTH_ENTITIES_LAYERS}, {shape})',
      f'V={count:,}',
      variants,
      dataclasses.replace(base, num_entities=count, random=True),
    )
    for count in GROWTH_ENTITIES
  ]
  by_layers = [
    _group(
      f'Growth with L ({GROWTH_DATASET}, {shape})',
      f'L={count}',
      variants,
      dataclasses.replace(base, num_layers=count),
    )
    for count in GROWTH_LAYERS
  ]
  return by_entities + by_layers


def smoke_groups(variants: Sequence[str]) -> list[Group]:
  """Something of everything, in seconds; of those in SMOKE_VARIANTS."""
  variants = [name for name in variants if name in SMOKE_VARIANTS]
  triples, paths = (
    Setting(
      'training',
      dataset=name,
      num_layers=1,
      batch_size=64,
      threads=1,  # more would wait for each other longer than they work
      steps=2,
      seconds=0.0,
    )
    for name in TINY
  )
  return [
    _group(f'Training on {paths.dataset}', 'L=1', variants, paths),
    _evaluation(triples),
  ]


def _group(
  section: str, title: str, variants: Sequence[str], base: Setting
) -> Group:
  """Ways to train in one setting, and the rate of large products there."""
  settings = [
    dataclasses.replace(base, kind='training', label=name, **VARIANTS[name])
    for name in variants
  ]
  settings += [
    dataclasses.replace(
      base, kind='matrices', label=f'{name} matrices', framework=name
    )
    for name in dict.fromkeys(setting.framework for setting in settings)
  ]
  return Group(section, title, tuple(settings))


def _evaluation(base: Setting) -> Group:
  shape = f'{base.dataset}, L={base.num_layers}, {_cores(base.threads)}'
  setting = dataclasses.replace(base, kind='evaluation', label='evaluation')
  return Group('Full filtered test evaluation', shape, (setting,))


def _cores(threads: int) -> str:
  if not threads:
    return 'all threads'
  return f'{threads} thread{"s" if threads > 1 else ""}'
