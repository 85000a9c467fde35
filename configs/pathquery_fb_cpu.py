"""PathQueryFB (Guu, Miller and Liang, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/pathquery_fb_cpu.py

The model has no blocks, and every epoch samples new walks; see
docs/learning.md. The training took 40 minutes on one core, while other programs
ran. Test split: mean quantile .932, hits@10 .681. The flag
--config.data.max_path_length=k limits training to paths with at most k
relations. With k=1, --config.train.walks_per_epoch=0 is needed as well.

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
