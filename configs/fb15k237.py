"""FB15k-237 (Toutanova and Chen, 2015) with the paper's setting.

python -m coke_jax.main --config=configs/fb15k237.py

FB15k-237 is FB15k without inverse relations. The paper reports MRR .364 and
hits@10 .549. Training 12 blocks for 500 epochs takes about 74 hours on two CPU
cores: use a GPU or TPU, or fb15k237_cpu.py. The graph is downloaded from
https://github.com/TimDettmers/ConvE.
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
