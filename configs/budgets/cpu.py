"""Models of the paper's tables, each trained in an hour on two CPU cores.

python -m coke_jax.main --config=configs/budgets/cpu.py:WN18RR

The text after the colon is FB15k, WN18, FB15k-237 or WN18RR. For path queries,
it is PathQueryWN or PathQueryFB, followed by -k and the maximum number of
relations in a training path (1 to 5), such as PathQueryWN-k3.

The learning rate is higher than in the paper because the trainings are short.
For triples, dropout and label smoothing are weaker because small models
underfit in a few epochs.
None of the settings was tuned on a test split.
"""

import pathlib
import runpy

import ml_collections

# For each data set, the number of epochs, and the number of epochs between two
# validations. An epoch has 276,399 rows for FB15k (2 minutes), 171,476 rows for
# WN18 and 103,620 rows for WN18RR. A row of WN18 or WN18RR takes about twice as
# long as a row of FB15k, because most of the time is spent on the product with
# 40,943 entities.
_EPOCHS = {'FB15k': (16, 4), 'WN18': (16, 4), 'WN18RR': (26, 5)}
# The number of epochs for each maximum number of relations, 1 to 5. All models
# of a data set are trained for about the same number of steps: 2,000 on
# PathQueryWN, and 1,000 on PathQueryFB, whose vocabulary is twice as large. An
# epoch has 139,258 to 3,538,633 rows (PathQueryWN) and 314,308 to 7,595,949
# rows (PathQueryFB).
_PATH_EPOCHS = {
  'PathQueryWN': (14.6, 2.85, 1.35, 0.82, 0.58),
  'PathQueryFB': (3.25, 0.76, 0.35, 0.19, 0.135),
}
_PATH_VALIDATIONS = 4  # number of validations in a training
_FILES = {
  'FB15k': 'fb15k',
  'WN18': 'wn18',
  'FB15k-237': 'fb15k237',
  'WN18RR': 'wn18rr',
  'PathQueryWN': 'pathquery_wn',
  'PathQueryFB': 'pathquery_fb',
}


def get_config(model: str = 'FB15k') -> ml_collections.ConfigDict:
  name, _, length = model.partition('-k')
  path = pathlib.Path(__file__).parents[1] / f'{_FILES[name]}.py'
  config: ml_collections.ConfigDict = runpy.run_path(str(path))['get_config']()
  config.model.num_layers = 3
  config.train.rows = 'query'
  config.train.learning_rate = 1e-3
  if name == 'FB15k-237':
    config.model.dropout = 0.3
    config.train.target_mass = 0.9
    config.train.weight_decay = 0.3
    config.train.num_epochs = 72
    config.train.validate_every_epochs = 8
    return config
  if length:
    config.data.max_path_length = int(length)
    config.model.hidden_size = 128
    config.model.feed_forward_size = 256
    # With the larger batches of the paper, there would be too few steps.
    config.train.batch_size = 1024
    epochs = _PATH_EPOCHS[name][int(length) - 1]
    config.train.num_epochs = epochs
    config.train.validate_every_epochs = epochs / _PATH_VALIDATIONS
  else:
    epochs, every = _EPOCHS[name]
    config.model.dropout = 0.1
    config.train.target_mass = 0.9
    config.train.num_epochs = epochs
    config.train.validate_every_epochs = every
  return config
