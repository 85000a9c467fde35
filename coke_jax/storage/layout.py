"""Names of the files of work folders and exported models."""

from coke_jax.storage import checksums

# The results of each split.
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
_SUFFIX = '.safetensors'  # of the parameters and data of an exported model


def is_own_file(name: str) -> bool:
  """Returns whether a name is that of a file which this package writes."""
  return name in _FILES or name.endswith(_SUFFIX)
