"""WN18RR with the paper's setting (reported there: MRR .484, hits@10 .553).

python -m coke_jax.main --config=configs/wn18rr.py
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'WN18RR'
  config.model.num_layers = 12
  config.model.dropout = 0.3
  config.train.target_mass = 0.15
  config.train.num_epochs = 1000
  config.train.validate_every_epochs = 50
  return config
