"""CoDEx-S, a part of Wikidata with 2,034 entities (Safavi and Koutra, 2020).

python -m coke_jax.main --config=configs/codex_s.py

Takes 2 minutes on two CPU cores. Test split: MRR .458, hits@1 .359, hits@10
.638. The settings go beyond the paper; see docs/learning.md. The graph is
downloaded from https://github.com/tsafavi/codex.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'CoDEx-S'
  return config
