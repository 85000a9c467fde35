"""A tiny model with which the scripts for the paper's tables can be tested.

python -m coke_jax.main --config=configs/budgets/smoke.py:FB15k

Every training uses the countries graph and takes seconds. The metrics mean
nothing. The text after the colon is the same as for configs/budgets/cpu.py.
Models of path queries are trained on paths that are sampled from the graph.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config(model: str = 'FB15k') -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'countries'
  config.model.num_layers = 1
  config.model.hidden_size = 32
  config.model.num_heads = 2
  config.model.feed_forward_size = 64
  config.model.dropout = 0.0  # Without dropout, the step compiles faster.
  config.train.rows = 'query'
  config.train.batch_size = 256
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.num_epochs = 0.5
  config.train.validate_every_epochs = 0.0
  config.train.log_every_steps = 10
  _, _, length = model.partition('-k')
  if length:
    config.data.kind = 'walks'
    config.data.max_path_length = int(length)
    config.data.walks_per_train_triple = 1
    config.data.walks_per_evaluation_triple = 2
    config.train.target_mass = 1.0
  return config
