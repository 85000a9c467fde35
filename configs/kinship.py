"""Kinship: 104 members of an Alyawarra community and their kinship terms.

python -m coke_jax.main --config=configs/kinship.py

Takes a minute on two CPU cores. Test split: MRR .864, hits@1 .784, hits@10
.988. The data are from Denham (1973). The settings go beyond the paper; see
docs/learning.md. The graph is downloaded from
https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'Kinship'
  config.train.num_epochs = 200.0
  config.train.embedding_learning_rate_factor = 5.0
  config.train.validate_every_epochs = 20.0
  return config
