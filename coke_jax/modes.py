"""What each --mode calls, and the errors whose text says all."""

from coke_jax import (
  checkpoint,
  embeddings,
  export,
  input_lines,
  parallel,
  questions,
  run,
  training_log,
  use,
  workdir,
)
from coke_jax import config as config_lib
from coke_jax.data import files
from coke_jax.plots import map_selection

# Errors that a user can cause and mend; their text says all.
EXPECTED_ERRORS = (
  files.DataError,
  workdir.WorkdirError,
  checkpoint.CheckpointError,
  training_log.TrainingError,
  config_lib.ConfigError,
  parallel.DeviceError,
  export.ExportError,
  embeddings.EmbeddingError,
  questions.QuestionError,
  input_lines.StreamError,
  map_selection.MapError,
  FloatingPointError,
  OSError,  # a full disk, a folder that may not be written
)

MODES = {
  'train': run.train,
  'evaluate': run.evaluate,
  'predict': use.predict,
  'embed': use.embed,
  'export': use.write_export,
  'plot': use.plot,
  'sample-paths': run.sample_paths,
}
