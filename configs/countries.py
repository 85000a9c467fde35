"""The countries of the world, a graph that ships with the package.

python -m coke_jax.main --config=configs/countries.py

Trains two models side by side. This takes 100 seconds on two CPU cores. Test
split: MRR .426, hits@1 .287, hits@10 .745. The settings go beyond the paper;
see docs/learning.md. The facts are from the Python package countryinfo; see
coke_jax/data/countries/README.md.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'countries'
  config.model.num_members = 2
  config.train.num_epochs = 25.0
  config.train.validate_every_epochs = 5.0
  return config
