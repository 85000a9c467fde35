"""FB15k-237 in less than 100 minutes on two CPU cores.

python -m coke_jax.main --config=configs/fb15k237_cpu.py

A quarter of the paper's depth and rows of whole queries; for the fewer and
larger steps a higher learning rate, less dropout and smoothing, and more weight
decay. Test MRR .325, see docs/performance.md.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'FB15k-237'
  config.model.num_layers = 3
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.weight_decay = 0.3
  config.train.num_epochs = 72
  config.train.validate_every_epochs = 8
  return config
