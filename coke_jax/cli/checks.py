"""Checks the work folder and flags before a command starts."""

import os

import ml_collections

from coke_jax import compilation_cache
from coke_jax import config as config_lib
from coke_jax.cli import flags
from coke_jax.data import vocabulary
from coke_jax.predict import export
from coke_jax.storage import layout
from coke_jax.storage import workdir as workdir_lib


def trained_workdir(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  may_be_exported: bool = True,
) -> None:
  """Checks that a folder contains a model with the expected settings.

  Also turns on the compilation cache if `config.compilation_cache_dir` is set.

  Args:
    config: the expected settings.
    workdir: the path of a work folder or an exported model.
    may_be_exported: whether an exported model is allowed.

  Raises:
    config.ConfigError: a setting is not valid.
    workdir.WorkdirError: the folder has no config.json, has other settings, or
      contains an exported model although `may_be_exported` is false.
  """
  config_lib.validate(config)
  compilation_cache.use(config.compilation_cache_dir)
  files = workdir_lib.Workdir(workdir)
  if not files.exists:
    raise workdir_lib.WorkdirError(
      f'{files.folder}: no config.json: expected a folder written by training'
    )
  if export.is_export(workdir) and not may_be_exported:
    raise workdir_lib.WorkdirError(
      f'{files.folder}: is an exported model, which is read-only: expected the '
      'work folder it was exported from'
    )
  files.check_config(config)


def require_output(output: str, expected: str) -> None:
  """Raises ConfigError if --output is missing or is standard output.

  Args:
    output: the value of --output.
    expected: the text after "expected" in the error message.
  """
  if output in ('', flags.STANDARD):
    raise config_lib.ConfigError(f'no --output: expected {expected}')


def protect_files(
  output: str, input: str, workdir: str | os.PathLike[str]
) -> None:
  """Checks that writing --output does not overwrite --input or model files.

  Args:
    output: the value of --output.
    input: the value of --input.
    workdir: the path of the work folder or exported model.

  Raises:
    config.ConfigError: --output is the --input or a file of the model.
  """
  if not os.path.isfile(output):
    return
  kept = {input: 'the --input'}
  for name in os.listdir(workdir):
    if layout.is_own_file(name):
      kept[os.path.join(workdir, name)] = f'a file of {workdir}'
  for path, what in kept.items():
    if os.path.isfile(path) and os.path.samefile(path, output):
      raise config_lib.ConfigError(
        f'--output={output} is {what}: expected another file'
      )


def split_relations(
  words: vocabulary.Vocabulary, relation: str
) -> list[str] | None:
  """Splits the value of --relation at commas. Returns None if it is empty.

  If the whole value is the label of a relation, it is not split.
  """
  if not relation:
    return None
  if relation in words.relation_ids:
    return [relation]
  return relation.split(',')
