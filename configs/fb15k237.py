"""FB15k-237 with the paper's setting (reported: MRR .364, hits@10 .549).

python -m coke_jax.main --config=configs/fb15k237.py
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'FB15k-237'
  config.model.num_layers = 12
  config.model.dropout = 0.5
  config.train.target_mass = 0.25
  config.train.num_epochs = 500
  config.train.validate_every_epochs = 20
  return config
