"""PathQueryFB (Guu, Miller and Liang, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/pathquery_fb_cpu.py

The model has no blocks, and the settings go beyond the paper; see
docs/learning.md. The training took 15 minutes on one core, while other programs
ran. Valid split: mean quantile .912, hits@10 .586. The flag
--config.data.max_path_length=k limits training to paths with at most k
relations.

The files cannot be downloaded: put `train`, `dev` and `test` into
$COKE_DATA_DIR/PathQueryFB.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.paths()
  config.data.name = 'PathQueryFB'
  config.data.kind = 'paths'
  config.data.max_path_length = 5
  config.model.hidden_size = 512
  config.train.walks_per_epoch = 400_000
  config.train.num_epochs = 36.0
  config.train.validate_every_epochs = 6.0
  return config
