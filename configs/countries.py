"""The countries of the world, a graph that ships with the package.

python -m coke_jax.main --config=configs/countries.py

Takes a few minutes on two CPU cores. Test split: MRR .363, hits@1 .255, hits@10
.570. The facts are from the Python package countryinfo, see
coke_jax/data/countries/README.md.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'countries'
  config.model.num_layers = 3
  config.model.dropout = 0.2
  config.train.rows = 'query'
  config.train.batch_size = 256
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.num_epochs = 60
  config.train.validate_every_epochs = 5
  return config
