"""CoDEx-M, a part of Wikidata with 17,050 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_m.py

Trains two models side by side, each with one block. The training took 28
minutes on one core, while other programs ran on the other core. Test split: MRR
.342, hits@1/3/10 .264/.375/.487. The settings go beyond the paper; see
docs/learning.md. The graph is downloaded from
https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block_of_many_entities()
  config.data.name = 'CoDEx-M'
  config.model.num_members = 2
  config.train.num_epochs = 60.0
  config.train.validate_every_epochs = 10.0
  return config
