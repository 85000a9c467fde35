"""Prepares a graph: reads triples of any format, splits them, finds leaks."""

import dataclasses
import inspect
import logging
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coke_jax.data import (
  argument_checks,
  label_checks,
  leak_table,
  leaks,
  prepared_files,
  reading,
  reading_cache,
  splitting,
  text_files,
  user_paths,
)
from coke_jax.data import graph as graph_lib
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib

_logger = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Prepared:
  """A graph with its splits, and reports about them.

  Attributes:
    graph: the graph.
    sources: for each source, the number of rows, and the number of rows that
      were left out for each reason.
    leaks: the hubs, the unseen labels, and the relations that give triples of
      valid and test away.
    notes: further remarks, for example that a split is smaller than its share.
  """

  graph: graph_lib.KnowledgeGraph
  sources: tuple[rows_lib.RowLog, ...]
  leaks: leaks.LeakReport
  notes: tuple[str, ...] = ()

  def __str__(self) -> str:
    """Returns the counts of rows and triples, and the leaks, as tables."""
    return self.to_text()

  def to_text(self, *, counts: bool = True) -> str:
    """Returns the reports as tables.

    Args:
      counts: whether to include the numbers of entities, relations and triples.
        Default: True.
    """
    parts = [str(source) for source in self.sources]
    parts += [self.graph.summary()] if counts else []
    parts += [leak_table.format_table(self.leaks)]
    parts += [f'note: {note}' for note in self.notes]
    return '\n'.join(parts)

  def to_json(self) -> dict[str, Any]:
    """Returns the reports as a dictionary for `json.dump`."""
    words = self.graph.vocabulary
    return {
      'entities': words.num_entities,
      'relations': words.num_relations,
      'triples': {s: len(self.graph.split(s)) for s in graph_lib.SPLITS},
      'sources': [
        {
          'name': source.name,
          'rows': source.rows,
          'left_out': source.left_out,
          'examples': source.examples,
          'ignored_columns': list(source.ignored_columns),
          'assumed_columns': list(source.assumed_columns),
          'header': list(source.header),
        }
        for source in self.sources
      ],
      'leaks': self.leaks.to_json(),
      'notes': list(self.notes),
    }

  def write(
    self, folder: str | os.PathLike[str], *, overwrite: bool = False
  ) -> None:
    """Writes train.txt, valid.txt, test.txt and report.json.

    Args:
      folder: the folder, which is created if it does not exist.
      overwrite: whether files of an earlier preparation are replaced. Default:
        False.

    Raises:
      text_files.DataError: the path is a file, or the folder contains a report
        or files of splits that must not be replaced.
      atomic_files.WriteError: a file cannot be written.
      errors.PathError: the path cannot exist.
      TypeError: `folder` is not a path.
    """
    argument_checks.check_truth('overwrite', overwrite)
    prepared_files.write(
      user_paths.expand(folder, 'folder'),
      self.graph,
      self.to_json(),
      overwrite=overwrite,
    )


def prepare(
  source: Any,
  output: str | os.PathLike[str] | None = None,
  *,
  valid: Any = None,
  test: Any = None,
  valid_share: float = 0.05,
  test_share: float = 0.05,
  seed: int = 0,
  keep_together: str = 'symmetric',
  duplicates: str = 'drop',
  overwrite: bool = False,
  name: str = '',
  columns: str | Sequence[str | int] = (),
  progress: bool = False,
  **options: Any,
) -> Prepared:
  """Reads triples, divides them into splits, and reports leaks.

  Labels are exact: they are not trimmed, converted or treated as missing
  values. Each row that is left out is counted with its reason. A row that
  cannot be read exactly raises an error, unless `on_bad_line` is 'skip'. Large
  files are parsed once, see `reading_cache`. A warning is logged for each sign
  of a mistake, such as suspicious labels (see `label_checks`).

  Args:
    source: the triples, as one of these:
      the path of a file (CSV, TSV, JSON lines, Parquet, N-Triples, Turtle),
      the path of a folder with files for train, valid and test,
      the path of a folder with the files of OpenKE,
      the name of a data set, see `benchmarks.names`,
      a pandas or polars data frame, a NumPy array, or an iterable of triples.
    output: the folder to write. To train on it, set `config.data.dir` to its
      path. Default: nothing is written.
    valid: the triples of valid, as a file or data in memory. If `valid` or
      `test` is given, `source` contains the triples of train. If neither is
      given and `source` has no splits, its triples are split at random.
      Default: None.
    test: the triples of test, as for `valid`. Default: None.
    valid_share: share of valid, if the triples are split. Default: .05.
    test_share: share of test, if the triples are split. Default: .05.
    seed: the seed of the split. Default: 0.
    keep_together: as in `splitting.Shares`. Default: 'symmetric'.
    duplicates: whether to 'drop' or 'keep' repeated triples of a source.
      Default: 'drop'.
    overwrite: whether to replace the files of an earlier preparation in
      `output`. Default: False.
    name: the name of the graph in reports. Default: the name of the source.
    columns: the columns of head, relation and tail, as names or as positions
      from 1, in a sequence or in a text with commas. Default: as in
      `formats.options.Options`.
    progress: whether to show a progress bar while a source is read. Default:
      False.
    **options: the other fields of `formats.options.Options`: `format`,
      `delimiter`, `quote`, `header`, `weight`, `min_weight`, `literals`,
      `on_bad_line` and `escape_labels`.

  Returns:
    The prepared graph. `print` shows its reports.

  Raises:
    text_files.DataError: an option is not valid, a source cannot be read, or
      there is no triple for train.
    atomic_files.WriteError: a file cannot be written.
    errors.PathError: a path cannot exist.
    TypeError: `output` is not a path, or an argument is unknown.
  """
  argument_checks.check_text('name', name)
  for argument, value in (('overwrite', overwrite), ('progress', progress)):
    argument_checks.check_truth(argument, value)
  if output is not None:
    output = user_paths.expand(output, 'output')
  if duplicates not in reading.DUPLICATES:
    raise text_files.DataError(
      f'duplicates is {duplicates!r}: expected one of '
      f'{", ".join(reading.DUPLICATES)}'
    )
  fields = {field.name for field in dataclasses.fields(options_lib.Options)}
  if unknown := set(options) - fields:
    known = fields.union(inspect.signature(prepare).parameters) - {'options'}
    raise TypeError(
      f'unknown arguments of prepare: {", ".join(sorted(unknown))}: expected '
      f'only {", ".join(sorted(known))}'
    )
  if isinstance(options.get('weight'), int):  # a position
    options['weight'] = str(options['weight'])
  chosen = options_lib.Options(columns=_columns(columns), **options)
  shares = splitting.Shares(valid_share, test_share, seed, keep_together)
  parts = reading.find_parts(source, valid, test, chosen)
  if output is not None:
    prepared_files.check_folder(output, parts.values(), overwrite=overwrite)
  words, splits, sources, notes = reading_cache.read(
    parts, chosen, duplicates, progress=progress
  )
  if len(splits) == 1:
    splits = _split(splits['train'], shares, notes)
  empty = np.zeros((0, 3), dtype=np.int32)
  graph = graph_lib.KnowledgeGraph(
    name or _name(source),
    words,
    **{split: splits.get(split, empty) for split in graph_lib.SPLITS},
  )
  for log in sources:
    text_files.warn_of_line_ends(log.name, log.windows_ends, log.unix_ends)
  for warning in label_checks.warnings(graph):
    _logger.warning('%s: %s', graph.name, warning)
  prepared = Prepared(graph, sources, leaks.find(graph), tuple(notes))
  if output is not None:
    prepared.write(output, overwrite=overwrite)
  return prepared


def _columns(columns: Any) -> tuple[str, ...]:
  """Returns the names or positions of columns as texts."""
  if isinstance(columns, str):
    columns = columns.split(',') if columns else ()
  if not isinstance(columns, Iterable):
    raise text_files.DataError(
      f'columns is {columns!r}: expected three names, or positions from 1'
    )
  return tuple(map(str, columns))


def _split(
  triples: np.ndarray, shares: splitting.Shares, notes: list[str]
) -> dict[str, np.ndarray]:
  """Splits triples, and adds a note if a split is smaller than its share."""
  splits = {
    split: triples[rows]
    for split, rows in splitting.split(triples, shares).items()
  }
  for split, share in (('valid', shares.valid), ('test', shares.test)):
    wanted = round(share * len(triples))
    if len(splits[split]) < 0.9 * wanted:
      notes.append(
        f'{split} has {len(splits[split]):,} triples instead of {wanted:,}, so '
        'that every entity and relation occurs in train'
      )
  return splits


def _name(source: Any) -> str:
  """Returns a name for the graph in reports."""
  if isinstance(source, str | os.PathLike):
    return pathlib.Path(source).name.partition('.')[0] or 'graph'
  return 'graph'
