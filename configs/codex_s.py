"""CoDEx-S, a part of Wikidata with 2,034 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_s.py

Trains six models side by side. This takes 7 minutes on two CPU cores with
bfloat16 instructions. Test split: MRR .480, hits@1 .382, hits@10 .668. One
model (--config.model.num_members=1) has an MRR of .458. The settings go beyond
the paper; see docs/learning.md. The graph is downloaded from
https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'CoDEx-S'
  config.model.dtype = 'bfloat16'
  config.model.num_members = 6
  config.train.validate_every_epochs = 20.0
  return config
