"""Countries of the world, the graph that ships with the package.

python -m coke_jax.main --config=configs/countries.py
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'countries'
  config.model.num_layers = 3
  config.train.num_epochs = 40
  return config
