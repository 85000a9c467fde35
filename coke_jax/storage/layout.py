"""Names of the files of work folders and exported models."""

from coke_jax.storage import checksums

# For each split, the name of the file with its results.
RESULTS = {
  'train': 'results_train.json',
  'valid': 'results_valid.json',
  'test': 'results.json',
}

_FILES = (
  'calibration.json',
  'config.json',
  'data.npz',
  'format.json',
  'metrics.jsonl',
  'vocabulary.json',
  checksums.NAME,
  *RESULTS.values(),
)
# An exported model has two files with this suffix: parameters and data.
_SUFFIX = '.safetensors'


def is_own_file(name: str) -> bool:
  """Returns whether this package writes files of this name."""
  return name in _FILES or name.endswith(_SUFFIX)
