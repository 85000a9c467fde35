"""Wikidata5M with 4.6 million entities (Wang et al., 2021), transductive split.

python -m coke_jax.main --config=configs/wikidata5m.py

The paper does not use this graph. The settings are an untuned starting point,
based on `recipes.factorization`. Time and metrics have not been measured. Use a
GPU or TPU with at least 16 GB. The guide docs/guides/scaling.md explains how
much memory a step needs.

The archive (168 MB) is downloaded from a copy of the published files at
https://huggingface.co/datasets/intfloat/wikidata5m.
"""

import ml_collections

from coke_jax import recipes


def get_config() -> ml_collections.ConfigDict:
  config = recipes.factorization()
  config.data.name = 'Wikidata5M'
  config.model.hidden_size = 128
  config.train.batch_size = 1024
  config.train.candidates = 1 << 16
  config.train.num_epochs = 10.0
  config.train.validate_every_epochs = 1.0
  return config
