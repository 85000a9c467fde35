"""The small model that ships with the package as `coke_jax.EXAMPLE_MODEL`.

python -m coke_jax.main --config=configs/example.py

The model has 0.49 million parameters. It is trained on paths with one or two
relations in the countries graph. On all paths of the test split, the mean
quantile is .966 and hits@10 is .911. For heads and tails of paths with one
relation, MRR is .370, hits@1 .238 and hits@10 .651 (seed 0). countries_paths.py
trains a larger model on longer paths.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'countries'
  config.data.kind = 'walks'
  config.data.max_path_length = 2
  config.data.walks_per_train_triple = 6
  config.model.num_layers = 3
  config.model.hidden_size = 64
  config.model.num_heads = 4
  config.model.feed_forward_size = 128
  config.train.target_mass = 0.9
  config.train.rows = 'query'
  config.train.batch_size = 256
  config.train.learning_rate = 2e-3
  config.train.num_epochs = 40
  config.train.validate_every_epochs = 4
  return config
