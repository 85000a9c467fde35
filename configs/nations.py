"""Nations (14 entities): what countries do to one another.

python -m coke_jax.main --config=configs/nations.py
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'Nations'
  config.model.num_layers = 6
  config.model.dropout = 0.1
  config.train.target_mass = 0.8
  config.train.num_epochs = 200
  config.train.validate_every_epochs = 10
  return config
