"""Names of the files of work folders and exported models."""

from coke_jax.storage import checksums

# Split -> name of the file with its results.
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
  """Returns whether this package writes files with a given name."""
  return name in _FILES or name.endswith(_SUFFIX)
