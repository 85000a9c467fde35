r"""Settings for your own graph, with tens of thousands of entities.

python -m coke_jax.main --config=configs/own_large_graph.py \
  --workdir=runs/mine --config.data.name=mine --config.data.dir=path/to/folder

The model has no blocks: it is ComplEx with the N3 penalty. The settings go
beyond the paper; see docs/learning.md. For a training of an hour or more on a
graph with at least five triples per entity, `fb15k237_cpu.py` is better.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.factorization()
  config.data.name = 'mine'
  return config
