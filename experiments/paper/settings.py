"""Which model stands behind each number, at each budget.

`paper` is a file of `configs/` as it is. `cpu` is the same file with the
differences below. `smoke` puts a tiny model of the graph that ships with the
package in the place of every data set.
"""

import dataclasses
import importlib.util
import pathlib
from typing import Any

import ml_collections

from coke_jax import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parents[2]

BUDGETS = {
  'smoke': 'a tiny model of the graph of countries that ships with the package '
  'stands in for every data set and is trained for some steps. It shows that '
  "the script runs; its numbers say nothing about the paper's",
  'cpu': 'about 45 minutes a model on two CPU cores: 3 blocks (in full: 12, '
  'paths 6), paths also half the width, rows of whole queries, a learning rate '
  'of 1e-3, less dropout and smoothing, and a small part of the epochs',
  'paper': "the paper's settings, or its released implementation's, in full "
  'length',
}

# The paper's data sets and their files in configs/.
TRIPLES = {
  'FB15k': 'fb15k',
  'WN18': 'wn18',
  'FB15k-237': 'fb15k237',
  'WN18RR': 'wn18rr',
}
PATHS = {'PathQueryWN': 'pathquery_wn', 'PathQueryFB': 'pathquery_fb'}
# PATHS <= k of the paper; the smoke budget leaves out those slow to compile.
PATH_LENGTHS = (1, 2, 3, 4, 5)
SMOKE_PATH_LENGTHS = (1, 2)

# What differs from configs/ at the cpu budget. The learning rate is higher
# because the runs are short; dropout and smoothing are weaker because a few
# epochs of a small model underfit. None of it was tuned on the test split.
_CPU_ALL: dict[str, Any] = {
  'model.num_layers': 3,
  'train.rows': 'query',
  'train.learning_rate': 1e-3,
}
_CPU: dict[str, dict[str, Any]] = {
  # 276,399 rows an epoch, 2 minutes.
  'FB15k': {
    'model.dropout': 0.1,
    'train.target_mass': 0.9,
    'train.num_epochs': 16.0,
    'train.validate_every_epochs': 4.0,
  },
  # 171,476 rows an epoch. The product with 40,943 entities takes most of the
  # time, so that a row costs about twice as much as one of FB15k.
  'WN18': {
    'model.dropout': 0.1,
    'train.target_mass': 0.9,
    'train.num_epochs': 16.0,
    'train.validate_every_epochs': 4.0,
  },
  # 151,199 rows an epoch, 1 minute. Fewer triples than FB15k for as many
  # entities: more dropout.
  'FB15k-237': {
    'model.dropout': 0.2,
    'train.target_mass': 0.9,
    'train.num_epochs': 38.0,
    'train.validate_every_epochs': 5.0,
  },
  # 103,620 rows an epoch, each as dear as one of WN18.
  'WN18RR': {
    'model.dropout': 0.1,
    'train.target_mass': 0.9,
    'train.num_epochs': 26.0,
    'train.validate_every_epochs': 5.0,
  },
}
# Paths: half the width as well, and smaller batches, so that the few steps are
# not fewer still.
_CPU_PATHS: dict[str, Any] = {
  'model.hidden_size': 128,
  'model.feed_forward_size': 256,
  'train.batch_size': 1024,
}
# Epochs by data set and by the most relations in a training path: about 2,000
# steps each on PathQueryWN and 1,000 on PathQueryFB, whose vocabulary is twice
# as large. So all rows of a table are trained on as many queries, whatever
# their lengths; one epoch is 139,258 to 3,538,633 rows (PathQueryWN) and
# 314,308 to 7,595,949 (PathQueryFB).
_CPU_PATH_EPOCHS: dict[str, dict[int, float]] = {
  'PathQueryWN': {1: 14.6, 2: 2.85, 3: 1.35, 4: 0.82, 5: 0.58},
  'PathQueryFB': {1: 3.25, 2: 0.76, 3: 0.35, 4: 0.19, 5: 0.135},
}
_CPU_PATH_VALIDATIONS = 4  # in a run

_STAND_IN = 'countries'
_SMOKE: dict[str, Any] = {
  'model.num_layers': 1,
  'model.hidden_size': 32,
  'model.num_heads': 2,
  'model.feed_forward_size': 64,
  'model.dropout': 0.0,  # compiles faster
  'train.rows': 'query',
  'train.batch_size': 256,
  'train.num_epochs': 0.5,
  'train.validate_every_epochs': 0.0,
  'train.log_every_steps': 10,
}
_SMOKE_WALKS: dict[str, Any] = {
  'data.max_path_length': max(SMOKE_PATH_LENGTHS),
  'data.walks_per_train_triple': 1,
  'data.walks_per_evaluation_triple': 2,
}


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """One model to train.

  Attributes:
    dataset: the data set that the paper trains it on.
    budget: one of BUDGETS.
    stand_in: the data set it is trained on instead; empty: none.
    config: the settings.
  """

  dataset: str
  budget: str
  stand_in: str
  config: ml_collections.ConfigDict

  @property
  def seed(self) -> int:
    """What decides its random numbers."""
    seed: int = self.config.train.seed
    return seed

  @property
  def max_path_length(self) -> int:
    """Relations in the longest path it is trained on; triples: 1."""
    length: int = self.config.data.max_path_length
    return length

  @property
  def key(self) -> str:
    """Its name but for the seed, such as `PathQueryWN-k3-cpu`.

    Data sets that share a stand-in share a model.
    """
    name = self.stand_in or self.dataset
    if self.dataset in PATHS:
      name += f'-k{self.max_path_length}'
    return f'{name}-{self.budget}'

  @property
  def name(self) -> str:
    """Its name, such as `PathQueryWN-k3-cpu-seed0`; of its work folder, too."""
    return f'{self.key}-seed{self.seed}'


def default_out(budget: str) -> pathlib.Path:
  """Where the results of a budget are kept."""
  return ROOT / 'experiments' / 'results' / budget


def path_lengths(budget: str) -> tuple[int, ...]:
  """The k of PATHS <= k that a budget has."""
  return SMOKE_PATH_LENGTHS if budget == 'smoke' else PATH_LENGTHS


def make_run(
  dataset: str,
  *,
  budget: str,
  seed: int,
  out: pathlib.Path,
  max_path_length: int = 1,
) -> Run:
  """The model that a number of the paper needs.

  Args:
    dataset: of TRIPLES or PATHS.
    budget: of BUDGETS.
    seed: decides the model's random numbers.
    out: where results go; the smoke budget keeps its sampled paths there.
    max_path_length: relations in the longest training path; triples: 1.
  """
  paths = dataset in PATHS
  stand_in = ''
  if budget == 'smoke':
    stand_in = _STAND_IN
    config = load_config('countries')
    config.update_from_flattened_dict(_SMOKE)
    if paths:
      config.data.name = f'{_STAND_IN}-paths'
      config.data.kind = 'paths'
      config.data.dir = str(smoke_paths_folder(out))
      config.train.target_mass = 1.0
  else:
    config = load_config((PATHS if paths else TRIPLES)[dataset])
    if budget == 'cpu':
      config.update_from_flattened_dict(_CPU_ALL)
      if paths:
        epochs = _CPU_PATH_EPOCHS[dataset][max_path_length]
        config.update_from_flattened_dict(_CPU_PATHS)
        config.train.num_epochs = epochs
        config.train.validate_every_epochs = epochs / _CPU_PATH_VALIDATIONS
      else:
        config.update_from_flattened_dict(_CPU[dataset])
  if paths:
    config.data.max_path_length = max_path_length
  config.train.seed = seed
  config_lib.validate(config)
  return Run(dataset, budget, stand_in, config)


def smoke_paths_folder(out: pathlib.Path) -> pathlib.Path:
  """Where the smoke budget keeps the paths it samples."""
  return out.resolve() / 'runs' / f'{_STAND_IN}-paths'


def smoke_walks_config() -> ml_collections.ConfigDict:
  """How the smoke budget samples its paths."""
  config = load_config('countries_paths')
  config.update_from_flattened_dict(_SMOKE_WALKS)
  return config


def load_config(name: str) -> ml_collections.ConfigDict:
  """What a file of configs/ describes, by the file's name without `.py`."""
  path = ROOT / 'configs' / f'{name}.py'
  spec = importlib.util.spec_from_file_location(name, path)
  assert spec is not None
  assert spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  config: ml_collections.ConfigDict = module.get_config()
  return config
