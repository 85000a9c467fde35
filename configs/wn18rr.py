"""WN18RR (Dettmers et al., 2018) with the paper's setting.

python -m coke_jax.main --config=configs/wn18rr.py

WN18RR is WN18 without inverse relations. The paper reports MRR .484 and hits@10
.553. Training 12 blocks for 1,000 epochs takes days to weeks on a CPU: use a
GPU or TPU. The graph is downloaded from https://github.com/TimDettmers/ConvE.
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
