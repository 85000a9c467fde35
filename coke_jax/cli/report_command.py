"""The command that writes a report of a run."""

import os

import ml_collections

from coke_jax.cli import checks, output_lines
from coke_jax.report import write
from coke_jax.storage import json_files
from coke_jax.storage import workdir as workdir_lib


def report(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  split: str,
  entity: str,
  relation: str,
  names: str,
) -> None:
  """Writes a report of a work folder or of an exported model as HTML."""
  checks.trained_workdir(config, workdir)
  checks.require_output(output, 'an HTML file')
  checks.protect_files(output, names, workdir)
  folder = workdir_lib.Workdir(workdir).folder
  words = json_files.read_vocabulary(folder / 'vocabulary.json')
  written = write.write_report(
    workdir,
    output,
    split=split,
    entity=entity or None,
    relations=checks.split_relations(words, relation) or (),
    names=names or None,
    progress=True,
  )
  size = written.stat().st_size / 1e6
  output_lines.report([f'report of {size:.2f} MB'], 0, output)
