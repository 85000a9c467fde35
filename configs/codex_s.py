"""CoDEx-S (2,034 entities), a small part of Wikidata.

python -m coke_jax.main --config=configs/codex_s.py

Not in the paper. The best of a handful of settings, by the valid split, that
train within ten minutes on two CPU cores; docs/performance.md has the others.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'CoDEx-S'
  config.model.num_layers = 3
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.batch_size = 128
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.num_epochs = 80
  config.train.validate_every_epochs = 8
  return config
