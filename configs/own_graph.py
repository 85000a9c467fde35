r"""Settings for your own graph, of up to some ten thousand entities.

python -m coke_jax.main --config=configs/own_graph.py --workdir=runs/mine \
  --config.data.name=mine --config.data.dir=path/to/folder

The settings go beyond the paper, see docs/learning.md. A lower number of epochs
makes the training shorter; `model.input_dropout` of .3 to .6 is worth trying
first if the valid split stays far below the training data.
"""

import ml_collections

from coke_jax import config as config_lib


def get_config() -> ml_collections.ConfigDict:
  config = config_lib.recommended_config()
  config.data.name = 'mine'
  return config
