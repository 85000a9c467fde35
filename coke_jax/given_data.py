"""Reads the data for `coke train DATA` and `coke_jax.train`."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import ml_collections

from coke_jax import config as config_lib
from coke_jax.data import graph as graph_lib
from coke_jax.data import (
  prepare,
  reading,
  source_files,
  text_files,
  triple_files,
)
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import readers
from coke_jax.storage import workdir as workdir_lib


class Given(NamedTuple):
  """The data of a run.

  Attributes:
    graph: the graph.
    files: the files from which the graph was read, by role, see
      `source_files.of_parts`.
    prepared: the result of `prepare.prepare`. None if the graph is the copy in
      a work folder.
  """

  graph: graph_lib.KnowledgeGraph
  files: dict[str, pathlib.Path]
  prepared: prepare.Prepared | None


def read(
  source: Any,
  *,
  valid: Any = None,
  test: Any = None,
  config: ml_collections.ConfigDict | None,
  workdir: str | os.PathLike[str] | None,
  **options: Any,
) -> Given:
  """Reads the data, or the copy of the data in a work folder.

  If a file of the data is missing and the work folder contains a run with this
  data, the copy is used and a note is printed.

  Args:
    source: as in `prepare.prepare`.
    valid: as in `prepare.prepare`.
    test: as in `prepare.prepare`.
    config: the settings. Its fields `data.columns`, `data.delimiter` and
      `data.header` determine how CSV and TSV files are read.
    workdir: the work folder of the run, or None.
    **options: other arguments of `prepare.prepare`.

  Raises:
    config.ConfigError: one of the three fields is not valid, contradicts
      `options`, or is not the default. The latter is an error if a part of the
      data is not a CSV or TSV file.
    text_files.DataError: the data cannot be read.
    workdir.WorkdirError: the work folder cannot be read.
  """
  form = options_lib.Options(format=options.get('format', ''))
  given = source, valid, test
  try:
    parts = reading.find_parts(*given, form)
  except text_files.DataError:
    if copy := _copy_of_missing(given, {}, workdir):
      return Given(copy, {}, None)
    raise
  files = source_files.of_parts(parts)
  if copy := _copy_of_missing(given, files, workdir):
    return Given(copy, {}, None)
  if config is not None:
    options = options | _layout(config, parts, options)
  prepared = prepare.prepare(source, valid=valid, test=test, **options)
  return Given(prepared.graph, files, prepared)


def _copy_of_missing(
  given: tuple[Any, ...],
  files: Mapping[str, pathlib.Path],
  workdir: str | os.PathLike[str] | None,
) -> graph_lib.KnowledgeGraph | None:
  """Returns the copy of the data in a work folder if given files are missing.

  Args:
    given: the arguments `source`, `valid` and `test`.
    files: the files that exist, by role.
    workdir: the work folder, or None.

  Returns:
    The graph. None if no file is missing, or if the work folder has no run with
    this data.
  """
  paths = [path for path in given if path is not None]
  if not all(isinstance(path, str | os.PathLike) for path in paths):
    return None
  if workdir is None or not workdir_lib.Workdir(workdir).exists:
    return None
  run = workdir_lib.Workdir(workdir)
  data, sources = run.data_and_sources()
  missing = [p for role, p in sources.paths.items() if role not in files]
  if not missing or not isinstance(data, graph_lib.KnowledgeGraph):
    return None
  folders = [os.path.abspath(path) for path in paths]
  for path in sources.paths.values():
    if not any(path == f or path.startswith(f + os.sep) for f in folders):
      return None
  print(
    f'note: {run.folder}: using the copy of the data in this folder, because '
    f'files of the data are missing: {", ".join(missing)}'
  )
  return data


def _layout(
  config: ml_collections.ConfigDict,
  parts: Mapping[str, Any],
  options: Mapping[str, Any],
) -> dict[str, Any]:
  """Returns the arguments of `prepare` for the fields of `config.data`."""
  default = config_lib.default_config().data
  fields = [
    field
    for field in ('columns', 'delimiter', 'header')
    if config.data[field] != default[field]
  ]
  if not fields:
    return {}
  config_lib.validate(config)
  for part, data in parts.items():
    if not readers.is_delimited(data, options.get('format', '')):
      shown = data if isinstance(data, str | os.PathLike) else 'data in memory'
      raise config_lib.ConfigError(
        '\n'.join(
          f'config.data.{field} is {config.data[field]!r}: expected '
          f'{default[field]!r}, the default, because {part} is not a CSV or '
          f'TSV file: {shown}'
          for field in fields
        )
      )
  words = config.data.columns.split()
  values = {
    # The field is the order of the columns. The argument contains the positions
    # of head, relation and tail.
    'columns': [str(words.index(c) + 1) for c in triple_files.TRIPLE_COLUMNS],
    'delimiter': config.data.delimiter,
    'header': 'yes',
  }
  for field in fields:
    other = options.get(field)
    if isinstance(other, str) and field == 'columns':
      other = other.split(',') if other else ()
    if field == 'columns' and other is not None:
      other = list(map(str, other))
    if other not in (None, '', [], 'auto', values[field]):
      raise config_lib.ConfigError(
        f'config.data.{field} is {config.data[field]!r}, and {field} is '
        f'{options[field]!r}: expected only one of them, or '
        f'{field}={values[field]!r}'
      )
  return {field: values[field] for field in fields}
