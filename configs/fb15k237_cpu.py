"""FB15k-237 (Toutanova and Chen, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/fb15k237_cpu.py

Trains four models side by side. They have no blocks: each is ComplEx with the
N3 penalty. The training took 18 minutes on one core, while other programs ran
on the other core. Test split: MRR .333, hits@1 .242, hits@10 .513. The settings
go beyond the paper; see docs/learning.md. The graph is downloaded from
https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.factorization()
  config.data.name = 'FB15k-237'
  config.model.num_members = 4
  config.train.validate_every_epochs = 7.0
  return config
