"""Writes the report of a run as one HTML file.

    write.write_report('runs/countries', 'report.html')

The file contains its style sheet, script and figures, so it can be opened from
disk, sent and printed.
"""

import os
import pathlib
from collections.abc import Sequence

from coke_jax import config as config_lib
from coke_jax.data import atomic_files, user_paths
from coke_jax.report import collect, page


def write_report(
  folder: str | os.PathLike[str],
  output: str | os.PathLike[str],
  *,
  split: str = 'valid',
  entity: str | None = None,
  relations: Sequence[str] = (),
  names: str | os.PathLike[str] | None = None,
  progress: bool = False,
) -> pathlib.Path:
  """Ranks a split with a trained model, and writes a report as an HTML file.

  The report has the metrics, the hardest relations, training curves, the
  calibration, maps, counts and leaks of the data, settings, versions and times.
  A section whose files are missing shows the command that creates them. Two
  reports of a run differ only in their times.

  Args:
    folder: a work folder, or the folder of an exported model.
    output: the HTML file.
    split: the split to rank, `train`, `valid` or `test`.
    entity: the entity that a map shows. Default: one with many training
      triples.
    relations: the one or two relations that a map shows. Default: one relation
      with many training triples.
    names: a file with `label TAB name` on each line. The report shows the names
      instead of the labels.
    progress: whether to show progress bars.

  Returns:
    The path of the HTML file.

  Raises:
    config.ConfigError: `split` is unknown, or `output` is a folder or is in a
      folder that does not exist.
    workdir.WorkdirError: the folder contains no run, or a damaged file.
    checkpoints.CheckpointError, export.ExportError: the model cannot be loaded.
    map_selection.MapError: a label of a map is unknown or has too few triples.
    text_files.DataError: `names` or `metrics.jsonl` cannot be read.
    errors.NonFiniteError: a score or hidden state is NaN or infinite.
    atomic_files.WriteError: the file cannot be written.
  """
  path = user_paths.expand(output)
  if path.is_dir() or not path.parent.is_dir():
    problem = 'is a folder' if path.is_dir() else 'its folder does not exist'
    raise config_lib.ConfigError(
      f'output is {path}: {problem}: expected an HTML file in a folder that '
      'exists'
    )
  report = collect.collect(
    folder,
    split=split,
    entity=entity,
    relations=relations,
    names=names,
    progress=progress,
  )
  with atomic_files.whole_file(path) as temporary:
    temporary.write_text(page.render(report), encoding='utf-8')
  return path
