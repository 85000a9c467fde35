"""Computes checksums of the settings and labels of a run.

The checksums are stored in data.npz, which is written once and not changed.
"""

from typing import Any

import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.storage import checksums

# The names of the checksums in data.npz have this suffix, as in
# `config.json sha256`.
SUFFIX = ' sha256'


def of_run(
  settings: dict[str, Any], vocabulary: vocabulary_lib.Vocabulary
) -> dict[str, np.ndarray]:
  """Computes the SHA-256 of the settings and of the labels, uint8 [32] each.

  Fields in `config.RUNTIME_FIELDS` and the formatting of the files have no
  effect.
  """
  fixed = config_lib.flatten(ml_collections.ConfigDict(settings))
  for field in config_lib.RUNTIME_FIELDS:
    fixed.pop(field, None)
  contents = {
    'config.json': fixed,
    'vocabulary.json': [vocabulary.entities, vocabulary.relations],
  }
  return {
    name + SUFFIX: to_bytes(checksums.of_json(content))
    for name, content in contents.items()
  }


def to_bytes(sha256: str) -> np.ndarray:
  """Converts a SHA-256 to uint8 [32]."""
  return np.frombuffer(bytes.fromhex(sha256), dtype=np.uint8)
