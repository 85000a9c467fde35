"""UMLS: 135 medical concepts and their relations (McCray, 2003).

python -m coke_jax.main --config=configs/umls.py

Test split: MRR .926, hits@1 .875, hits@10 .992. The graph is not in the paper.
Downloads the graph from https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'UMLS'
  config.model.num_layers = 6
  config.model.dropout = 0.1
  config.train.target_mass = 0.8
  config.train.num_epochs = 200
  config.train.validate_every_epochs = 10
  return config
