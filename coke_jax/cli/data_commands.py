"""Commands that use data, but no model."""

import os
import pathlib
import shlex

import ml_collections

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.cli import flags
from coke_jax.data import (
  atomic_files,
  path_files,
  paths,
  prepared_files,
  user_paths,
)
from coke_jax.data import prepare as prepare_lib

_STANDARD_INPUT = '/dev/stdin'


def prepare(
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str],
  *,
  input: str,
  output: str,
  report: str,
  input_format: str,
  columns: str,
  column_delimiter: str,
  quote: str,
  header: str,
  weight: str,
  min_weight: float,
  literals: str,
  on_bad_line: str,
  duplicates: str,
  escape_labels: bool,
  valid_share: float,
  test_share: float,
  seed: int,
  keep_together: str,
  overwrite: bool,
) -> None:
  r"""Reads triples of any format, splits them and reports leaks.

  Args:
    config: not used.
    workdir: not used.
    input: a file, a folder with files of splits, or the name of a data set.
    output: the folder to write. If it is empty or '-', no triples are written.
    report: the JSON file for the counts and leaks. If it is empty, there is
      no such file.
    input_format: the format of the input, or 'auto'.
    columns: the columns of head, relation and tail, separated by commas.
    column_delimiter: the text between two columns, in which \t is a tab.
    quote: as in `formats.options.Options`.
    header: as in `formats.options.Options`.
    weight: as in `formats.options.Options`.
    min_weight: as in `formats.options.Options`.
    literals: as in `formats.options.Options`.
    on_bad_line: as in `formats.options.Options`.
    duplicates: as in `prepare.prepare`.
    escape_labels: as in `formats.options.Options`.
    valid_share: as in `prepare.prepare`.
    test_share: as in `prepare.prepare`.
    seed: as in `prepare.prepare`.
    keep_together: as in `prepare.prepare`.
    overwrite: as in `prepare.prepare`.

  Raises:
    config.ConfigError: there is no input, or --report is a folder or the input
      file.
    text_files.DataError: an option is not valid, or the input cannot be read
      or split.
    OSError: a file cannot be written.
  """
  del config, workdir
  if input == flags.STANDARD and _has_standard_input():
    input = _STANDARD_INPUT
  elif input in ('', flags.STANDARD):
    raise config_lib.ConfigError(
      'no --input: expected a file of triples, a folder of splits or the name '
      'of a data set'
    )
  folder = None if output in ('', flags.STANDARD) else pathlib.Path(output)
  if report and os.path.isdir(report):
    raise config_lib.ConfigError(
      f'--report={report} is a folder: expected a file'
    )
  if report and os.path.realpath(report) == os.path.realpath(input):
    raise config_lib.ConfigError(
      f'--report={report} is the --input: expected another file'
    )
  prepared = prepare_lib.prepare(
    input,
    folder,
    format='' if input_format == 'auto' else input_format,
    columns=columns,
    delimiter=flags.unescape(column_delimiter),
    quote=quote,
    header=header,
    weight=weight,
    min_weight=min_weight,
    literals=literals,
    on_bad_line=on_bad_line,
    duplicates=duplicates,
    escape_labels=escape_labels,
    valid_share=valid_share,
    test_share=test_share,
    seed=seed,
    keep_together=keep_together,
    overwrite=overwrite,
    progress=True,
  )
  print(prepared)
  if report:
    with atomic_files.whole_file(pathlib.Path(report)) as path:
      text = prepared_files.to_text(prepared.to_json())
      path.write_text(text, encoding='utf-8')
  if folder is None:
    print('no triples are written: --output=FOLDER writes them')
  else:
    command = shlex.join(['coke', 'train', str(folder)])
    print(f'written to {folder}; train with: {command}')


def _has_standard_input() -> bool:
  """Returns whether standard input is a pipe or a file."""
  path = pathlib.Path(_STANDARD_INPUT)
  return path.is_fifo() or path.is_file()


def sample_paths(
  config: ml_collections.ConfigDict, workdir: str | os.PathLike[str]
) -> None:
  """Samples paths from a graph of triples and writes them as path files.

  Args:
    config: the settings; `data.kind` must be 'walks'.
    workdir: the folder for the files train, dev and test. It must not contain
      path data.

  Raises:
    config.ConfigError: a setting is not valid, or `data.kind` is not 'walks'.
    text_files.DataError: the triples cannot be read, or the folder contains
      path data.
    OSError: a file cannot be written.
  """
  config_lib.validate(config)
  if config.data.kind != 'walks':
    raise config_lib.ConfigError(
      f"config.data.kind is {config.data.kind!r}: expected 'walks' for this "
      'command'
    )
  data = tasks.read_data(config)
  assert isinstance(data, paths.PathData), 'random walks are paths'
  folder = user_paths.expand(workdir)
  path_files.write_paths(folder, data, tasks.path_format(config))
  print(f'written to {workdir}')
