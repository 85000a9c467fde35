"""FB15k-237 (Toutanova and Chen, 2015) on two CPU cores.

python -m coke_jax.main --config=configs/fb15k237_cpu.py

The training took 93 minutes on a machine that also ran other programs. The
steps alone take about 65 minutes. Metrics of the test split: MRR .325, hits@1
.234, hits@10 .508. docs/performance.md has the learning curve.

In comparison with the paper's setting in fb15k237.py, the model has a quarter
of the depth, and a row is a query with all its answers. This gives fewer and
larger steps, so the learning rate and the weight decay are higher, and dropout
and label smoothing are lower. The graph is downloaded from
https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  config.data.name = 'FB15k-237'
  config.model.num_layers = 3
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.learning_rate = 1e-3
  config.train.target_mass = 0.9
  config.train.weight_decay = 0.3
  config.train.num_epochs = 72
  config.train.validate_every_epochs = 8
  return config
