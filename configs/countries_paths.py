"""Paths of one to three relations in the countries graph.

python -m coke_jax.main --config=configs/countries_paths.py

The training takes a few minutes on two CPU cores. On all test paths, the model
reached a mean quantile of .932 and hits@10 of .789. The paths are sampled by
random walks from the graph, which ships with the package.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'countries'
  config.data.kind = 'walks'
  config.data.max_path_length = 3
  config.model.num_layers = 2
  config.model.hidden_size = 128
  config.model.feed_forward_size = 256
  config.train.rows = 'query'
  config.train.batch_size = 512
  config.train.learning_rate = 1e-3
  config.train.target_mass = 1.0
  config.train.num_epochs = 8
  config.train.validate_every_epochs = 2
  return config
