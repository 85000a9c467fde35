"""FB15k-237 (Toutanova and Chen, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/fb15k237_cpu.py

TO BE MEASURED
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.factorization()
  config.data.name = 'FB15k-237'
  config.model.num_members = 4
  config.train.validate_every_epochs = 7.0
  return config
