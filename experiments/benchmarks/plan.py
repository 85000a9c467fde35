"""The settings that are measured. The settings of a group are compared."""

import dataclasses
from collections.abc import Sequence
from typing import Any

PARTS = ('training', 'evaluation')
DATASET = 'FB15k-237'
TINY = 'tiny'  # random data and a small model, for tests and `--smoke`

# Ways to train. `rows` is `config.train.rows`; bfloat16 in PyTorch is autocast.
VARIANTS: dict[str, dict[str, Any]] = {
  f'torch-{dtype}': {'framework': 'torch', 'dtype': dtype}
  for dtype in ('float32', 'bfloat16')
} | {
  f'coke-{rows}-{dtype}': {
    'framework': 'coke_jax',
    'dtype': dtype,
    'rows': rows,
  }
  for rows in ('instance', 'query')
  for dtype in ('float32', 'bfloat16')
}
BASELINE = 'torch-float32'  # All variants are compared with this one.
# Each variant in query mode is also compared with a variant in instance mode.
INSTANCE_MODE = {
  f'coke-query-{dtype}': f'coke-instance-{dtype}'
  for dtype in ('float32', 'bfloat16')
}
SMOKE_VARIANTS = ('torch-float32', 'coke-query-bfloat16')

# A training whose step takes more than SLOW_SECONDS is measured only in the
# first round. In PyTorch, bfloat16 is that slow on processors without bfloat16
# instructions.
SLOW_SECONDS = 20.0


@dataclasses.dataclass(frozen=True)
class Setting:
  """What one process measures.

  Attributes:
    kind: `training`, `evaluation`, `matrices` (the rate of large products) or
      `machine` (a description of the machine).
    label: the name of the setting within its group.
    framework: `coke_jax` or `torch`.
    dataset: a key of `data_sets.COUNTS`.
    random: whether to use random data with the counts of the data set.
    num_layers: the number of blocks.
    batch_size: rows in a batch.
    threads: the number of cores to use; 0 for all.
    dtype: the type of the operands in the model's products, float32 or
      bfloat16.
    rows: `config.train.rows`.
    seconds: minimum duration of a training round.
  """

  kind: str
  label: str = ''
  framework: str = 'coke_jax'
  dataset: str = DATASET
  random: bool = False
  num_layers: int = 12
  batch_size: int = 512
  threads: int = 0
  dtype: str = 'float32'
  rows: str = 'instance'
  seconds: float = 5.0


@dataclasses.dataclass(frozen=True)
class Group:
  """Settings that are compared, and therefore measured in turns.

  Attributes:
    section: the title of the table. A table may contain several groups.
    title: what the settings of this group have in common.
    settings: the settings; each is measured in its own process.
  """

  section: str
  title: str
  settings: tuple[Setting, ...]


def training_group(base: Setting, variants: Sequence[str]) -> Group:
  """Returns a group that measures variants and the rates of large products.

  Args:
    base: the setting without its variant.
    variants: keys of `VARIANTS`.
  """
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
  title = f'L={base.num_layers}, batch {base.batch_size}, {_cores(base)}'
  return Group(f'Training on {base.dataset}', title, tuple(settings))


def evaluation_group(base: Setting) -> Group:
  """Returns a group with the full test evaluation."""
  setting = dataclasses.replace(base, kind='evaluation', label='evaluation')
  title = f'{base.dataset}, L={base.num_layers}, {_cores(base)}'
  return Group('Full filtered test evaluation', title, (setting,))


def smoke_groups(variants: Sequence[str]) -> list[Group]:
  """Returns a training group and an evaluation group that take seconds.

  Args:
    variants: keys of `VARIANTS`. Only those in `SMOKE_VARIANTS` are measured.
  """
  base = Setting(
    'training',
    dataset=TINY,
    random=True,
    num_layers=1,
    batch_size=64,
    threads=1,  # More threads would mostly wait for each other.
    seconds=0.0,
  )
  chosen = [name for name in variants if name in SMOKE_VARIANTS]
  return [training_group(base, chosen), evaluation_group(base)]


def _cores(setting: Setting) -> str:
  if not setting.threads:
    return 'all threads'
  return f'{setting.threads} thread{"s" * (setting.threads > 1)}'
