"""PathQueryWN: paths of one to five relations (Guu, Miller and Liang, 2015).

python -m coke_jax.main --config=configs/pathquery_wn.py

This is the setting of the paper's released implementation. Use a GPU or TPU.
The paper reports a mean quantile of .942 and hits@10 of .679. The flag
--config.data.max_path_length=k limits training to paths with at most k
relations. The paper's table has one row for each k.

The paths were sampled from WordNet. The files cannot be downloaded: put
`train`, `dev` and `test` into $COKE_DATA_DIR/PathQueryWN.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'PathQueryWN'
  config.data.kind = 'paths'
  config.data.max_path_length = 5
  config.model.num_layers = 6
  config.train.batch_size = 2048
  config.train.learning_rate = 3e-4
  config.train.target_mass = 1.0
  config.train.num_epochs = 5
  config.train.validate_every_epochs = 1
  return config
