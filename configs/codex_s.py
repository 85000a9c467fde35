"""CoDEx-S (2,034 entities), a small part of Wikidata.

Not in the paper; a starting point between its settings, not a tuned one.

  python -m coke_jax.main --config=configs/codex_s.py
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'CoDEx-S'
  config.model.num_layers = 6
  config.model.dropout = 0.3
  config.train.target_mass = 0.5
  config.train.num_epochs = 200
  config.train.validate_every_epochs = 10
  return config
