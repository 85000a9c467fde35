"""A model that starts and steps in no time, for `small_runs.py`."""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  """The settings; the caller says where the data are."""
  config = config_lib.default_config()
  config.data.name = 'tiny'
  config.model.num_layers = 1
  config.model.hidden_size = 16
  config.model.num_heads = 2
  config.model.feed_forward_size = 32
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.batch_size = 32
  config.train.num_epochs = 400
  config.train.validate_every_epochs = 10
  config.train.checkpoint_every_minutes = 0.01
  config.train.log_every_steps = 7
  return config
