"""UMLS: 135 medical concepts and their relations (McCray, 2003).

python -m coke_jax.main --config=configs/umls.py

Takes less than a minute on two CPU cores. Test split: MRR .922, hits@1 .862,
hits@10 .996. The settings go beyond the paper; see
docs/learning.md. The graph is downloaded from https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'UMLS'
  config.train.num_epochs = 200.0
  config.train.embedding_learning_rate_factor = 5.0
  config.train.validate_every_epochs = 20.0
  return config
