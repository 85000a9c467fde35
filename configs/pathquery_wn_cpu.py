"""PathQueryWN (Guu, Miller and Liang, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/pathquery_wn_cpu.py

The model has no blocks. It rotates the known entity by each relation of the
path, as in RotatE. The settings go beyond the paper; see docs/learning.md. The
training took 10 minutes on one core, while other programs ran on the other
core. Test split: mean quantile .936, hits@10 .620. The flag
--config.data.max_path_length=k limits training to paths with at most k
relations.

The files cannot be downloaded: put `train`, `dev` and `test` into
$COKE_DATA_DIR/PathQueryWN.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.paths()
  config.data.name = 'PathQueryWN'
  config.data.kind = 'paths'
  config.data.max_path_length = 5
  config.model.composition = 'rotation'
  config.model.relation_directions = True
  config.model.invert_head_queries = False
  config.train.num_epochs = 1.5
  config.train.learning_rate = 0.1
  config.train.n3_penalty = 0.5
  config.train.candidates = 4096
  return config
