"""CoDEx-S, a part of Wikidata with 2,034 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_s.py

Takes 8 minutes on two CPU cores. Test split: MRR .395, hits@1 .284, hits@10
.608. The graph is not in the paper; of the settings that train within ten
minutes, this is the best that was found on the valid split, see
docs/performance.md. Downloads the graph from https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'CoDEx-S'
  config.model.num_layers = 3
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.batch_size = 128
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.num_epochs = 80
  config.train.validate_every_epochs = 8
  return config
