"""CoDEx-M, a part of Wikidata with 17,050 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_m.py

The model has one block. The training took 46 minutes on one core, while other
programs ran on the other core. Test split: MRR .334, hits@1/3/10
.257/.366/.480. The settings go beyond the paper; see docs/learning.md. The
graph is downloaded from https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block_of_many_entities()
  config.data.name = 'CoDEx-M'
  config.train.num_epochs = 70.0
  config.train.validate_every_epochs = 10.0
  return config
