"""FB15k-237 (Toutanova and Chen, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/fb15k237_cpu.py

The model has one block. The training took 52 minutes on one core, while other
programs ran on the other core. Test split: MRR .352, hits@1 .257, hits@10 .540.
The settings go beyond the paper; see docs/learning.md. The graph is downloaded
from https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block_of_many_entities()
  config.data.name = 'FB15k-237'
  config.train.validate_every_epochs = 50.0
  return config
