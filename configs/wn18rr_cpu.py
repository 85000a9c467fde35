"""WN18RR (Dettmers et al., 2018) on two CPU cores.

python -m coke_jax.main --config=configs/wn18rr_cpu.py

The model has no blocks. Its two members are ComplEx models, trained with the
DURA penalty and Adagrad. The training took 13 minutes on one core, while other
programs ran on both cores. Test split: MRR .485, hits@1/3/10 .442/.504/.567.
The settings go beyond the paper; see docs/learning.md. The graph is downloaded
from https://github.com/TimDettmers/ConvE.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.factorization()
  config.data.name = 'WN18RR'
  config.model.hidden_size = 512
  config.model.num_members = 2
  config.train.learning_rate_decay = 'none'
  config.train.n3_penalty = 0.0
  config.train.dura_penalty = 0.1
  config.train.rare_answer_weight = 0.1
  config.train.candidates = 2048
  config.train.num_epochs = 20.0
  config.train.validate_every_epochs = 5.0
  return config
