r"""Settings for your own graph, with up to ten thousand entities.

python -m coke_jax.main --config=configs/own_graph.py --workdir=runs/mine \
  --config.data.name=mine --config.data.dir=path/to/folder

The settings go beyond the paper; see docs/learning.md. For a shorter training,
reduce `train.num_epochs`. If valid triples are ranked much worse than training
triples, first try values of `model.input_dropout` between .3 and .6.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.one_block()
  config.data.name = 'mine'
  return config
