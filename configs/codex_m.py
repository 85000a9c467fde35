"""CoDEx-M, a part of Wikidata with 17,050 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_m.py

The paper does not use this graph. The setting is an untuned starting point with
values between the paper's settings for other graphs. Time and metrics have not
been measured. The graph is downloaded from https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'CoDEx-M'
  config.model.num_layers = 6
  config.model.dropout = 0.3
  config.train.target_mass = 0.5
  config.train.num_epochs = 200
  config.train.validate_every_epochs = 10
  return config
