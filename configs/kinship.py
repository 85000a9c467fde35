"""Kinship: 104 members of an Alyawarra community and their kinship terms.

python -m coke_jax.main --config=configs/kinship.py

The data are those of Denham (1973). The graph is not in the paper; time and
metrics of this setting have not been measured. Downloads the graph from
https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'Kinship'
  config.model.num_layers = 6
  config.model.dropout = 0.1
  config.train.target_mass = 0.8
  config.train.num_epochs = 200
  config.train.validate_every_epochs = 10
  return config
