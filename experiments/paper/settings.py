"""The config of each model of the paper, at each budget.

At the budget `paper`, the config is a file of `configs/`. At `cpu` and `smoke`,
it comes from configs/budgets/cpu.py and configs/budgets/smoke.py.
"""

import dataclasses
import pathlib
import runpy

import ml_collections

from coke_jax import config as config_lib

ROOT = pathlib.Path(__file__).resolve().parents[2]

BUDGETS = {
  'smoke': 'a tiny model is trained for some steps on the graph of countries, '
  'which replaces every data set. This shows that the script runs. The numbers '
  "cannot be compared with the paper's",
  'cpu': '20 to 65 minutes per model on two otherwise idle CPU cores. Models '
  'trained on triples have 3 blocks instead of 12, and less dropout and label '
  'smoothing. Models trained on paths have 3 blocks instead of 6, and half the '
  "width. All models are trained with `rows='query'`, a learning rate of 1e-3, "
  'and a small part of the epochs',
  'paper': 'the settings of the paper or of its released implementation, with '
  'all epochs',
}

# The paper's data sets and their files in configs/.
TRIPLES = {
  'FB15k': 'fb15k',
  'WN18': 'wn18',
  'FB15k-237': 'fb15k237',
  'WN18RR': 'wn18rr',
}
PATHS = {'PathQueryWN': 'pathquery_wn', 'PathQueryFB': 'pathquery_fb'}
# The values of k. A model of PATHS <= k is trained on paths with at most k
# relations. Long paths are slow to compile, so `smoke` has only short paths.
PATH_LENGTHS = (1, 2, 3, 4, 5)
SMOKE_PATH_LENGTHS = (1, 2)


@dataclasses.dataclass(frozen=True, eq=False)
class Run:
  """The training of one model.

  Attributes:
    dataset: the data set of the paper.
    budget: a key of BUDGETS.
    config: the settings.
  """

  dataset: str
  budget: str
  config: ml_collections.ConfigDict

  @property
  def stand_in(self) -> str:
    """The data set that replaces `dataset`; empty if none does."""
    return self.config.data.name if self.budget == 'smoke' else ''

  @property
  def seed(self) -> int:
    """The seed of the model's random numbers."""
    seed: int = self.config.train.seed
    return seed

  @property
  def max_path_length(self) -> int:
    """Maximum number of relations in a training path; 1 for triples."""
    length: int = self.config.data.max_path_length
    return length

  @property
  def title(self) -> str:
    """The name of the model in tables, such as `PathQueryWN, PATHS <= 3`."""
    if self.dataset in PATHS:
      return f'{self.dataset}, PATHS <= {self.max_path_length}'
    return self.dataset

  @property
  def key(self) -> str:
    """The name without the seed, such as `PathQueryWN-k3-cpu`.

    Data sets that the same stand-in replaces share a model.
    """
    name = self.stand_in or self.dataset
    if self.dataset in PATHS:
      name += f'-k{self.max_path_length}'
    return f'{name}-{self.budget}'

  @property
  def name(self) -> str:
    """The name of the run and work folder, like `PathQueryWN-k3-cpu-seed0`."""
    return f'{self.key}-seed{self.seed}'


def default_out(budget: str) -> pathlib.Path:
  """Returns the folder for the results of a budget."""
  return ROOT / 'experiments' / 'results' / budget


def path_lengths(budget: str) -> tuple[int, ...]:
  """Returns the values of k at a budget; see PATH_LENGTHS."""
  return SMOKE_PATH_LENGTHS if budget == 'smoke' else PATH_LENGTHS


def make_run(
  dataset: str, *, budget: str, seed: int = 0, max_path_length: int = 1
) -> Run:
  """Returns the run that trains one model of the paper.

  Args:
    dataset: a key of TRIPLES or PATHS.
    budget: a key of BUDGETS.
    seed: the seed of the model's random numbers.
    max_path_length: maximum number of relations in a training path; 1 for
      triples.
  """
  if budget == 'paper':
    config = load_config({**TRIPLES, **PATHS}[dataset])
    config.data.max_path_length = max_path_length
  else:
    length = f'-k{max_path_length}' if dataset in PATHS else ''
    config = load_config(f'budgets/{budget}', dataset + length)
  config.train.seed = seed
  config_lib.validate(config)
  return Run(dataset, budget, config)


def load_config(name: str, *argument: str) -> ml_collections.ConfigDict:
  """Returns the settings in configs/<name>.py.

  Args:
    name: the path of the file below configs/, without `.py`.
    *argument: the argument of its `get_config`, if it has one.
  """
  module = runpy.run_path(str(ROOT / 'configs' / f'{name}.py'))
  config: ml_collections.ConfigDict = module['get_config'](*argument)
  return config
