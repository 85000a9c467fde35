"""Reads triples from files or from memory as one labelled graph."""

import os
import pathlib
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from coke_jax.data import benchmarks, grouping, text_files, user_paths
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.data.formats import in_memory, readers
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib

DUPLICATES = ('drop', 'keep')


class Read(NamedTuple):
  """The triples of all sources.

  Attributes:
    vocabulary: the labels of all sources, sorted.
    splits: a dict from split name to int32 [N, 3]: head entity id, relation
      index, tail entity id.
    sources: the log of each source.
    notes: remarks about labels that may have been misread.
  """

  vocabulary: vocabulary_lib.Vocabulary
  splits: dict[str, np.ndarray]
  sources: tuple[rows_lib.RowLog, ...]
  notes: list[str]


def find_parts(
  source: Any, valid: Any, test: Any, options: options_lib.Options
) -> dict[str, Any]:
  """Finds the source of each split.

  Args:
    source: as in `prepare.prepare`.
    valid: as in `prepare.prepare`.
    test: as in `prepare.prepare`.
    options: the options of the readers.

  Returns:
    A dict from split name to the path of a file, or to data in memory. If the
    only split is train, the triples must still be divided into splits.

  Raises:
    text_files.DataError: `source` is None, does not exist, or is a folder
      without a file of train; `source` is a folder, and `valid` or `test` is
      also given; or an argument has a wrong type.
    errors.PathError: as in `user_paths.expand`.
  """
  if source is None:
    raise text_files.DataError(
      'the source is None: expected triples, such as a file or a data frame'
    )
  source, valid, test = (
    _usable_path(name, data)
    for name, data in (('source', source), ('valid', valid), ('test', test))
  )
  if isinstance(source, str) and not os.path.exists(source):
    if source not in benchmarks.names():
      raise text_files.DataError(
        f'{source}: no such file or folder: expected a file of triples, a '
        'folder of splits, or the name of a data set: '
        f'{", ".join(benchmarks.names())}'
      )
    source = benchmarks.locate(source)
  if isinstance(source, str | os.PathLike) and pathlib.Path(source).is_dir():
    if valid is not None or test is not None:
      raise text_files.DataError(
        f'{source}: is a folder, although valid or test is given: expected a '
        'file of train, or neither valid nor test'
      )
    return dict(readers.find_splits(pathlib.Path(source), options))
  given = {'train': source, 'valid': valid, 'test': test}
  return {split: data for split, data in given.items() if data is not None}


def _usable_path(name: str, data: Any) -> Any:
  """Checks the type of a source, and replaces `~` at the start of a path."""
  if not isinstance(data, str | os.PathLike):
    if data is not None and not in_memory.is_readable(data):
      raise text_files.DataError(
        f'{name} is {text_files.show_value(data)}: expected the path of a '
        'file, a data frame, an array or an iterable of triples'
      )
    return data
  path = user_paths.expand(data, name)
  return str(path) if os.fspath(data).startswith('~') else data


def read(
  parts: Mapping[str, Any],
  options: options_lib.Options,
  duplicates: str,
  *,
  progress: bool = False,
) -> Read:
  """Reads the triples of all splits.

  Args:
    parts: a dict from split name to source, as `find_parts` returns it.
    options: the options of the readers.
    duplicates: 'drop' keeps only the first of equal triples in a source, and
      'keep' keeps all of them.
    progress: whether to show a progress bar while a source is read.

  Raises:
    text_files.DataError: a source cannot be read, or no triple of train is
      left.
  """
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  splits: dict[str, np.ndarray] = {}
  logs: list[rows_lib.RowLog] = []
  for split, data in parts.items():
    opened = readers.open_source(data, options)
    triples, numbers = rows_lib.collect(
      opened,
      entities,
      relations,
      options,
      f'reading {opened.log.name}' if progress else '',
    )
    if duplicates == 'drop':
      triples = _distinct(triples, numbers, opened.log)
    if split == 'train' and not len(triples):
      raise text_files.DataError(
        f'{opened.log.name}: no triple is left of {opened.log.rows:,} rows: '
        f'expected at least one\n{opened.log}'
      )
    splits[split] = triples
    logs.append(opened.log)
  entity_labels, entity_places = vocabulary_lib.sort_labels(entities)
  relation_labels, relation_places = vocabulary_lib.sort_labels(relations)
  for split, triples in splits.items():
    head, relation, tail = triples.T
    splits[split] = np.stack(
      [entity_places[head], relation_places[relation], entity_places[tail]],
      axis=1,
    )
  words = vocabulary_lib.Vocabulary(entity_labels, relation_labels)
  notes = _column_notes(logs) + _header_notes(words, splits, logs)
  if any(log.unquoted for log in logs):
    notes += _quote_notes(words)
  return Read(words, splits, tuple(logs), notes)


def _distinct(
  triples: np.ndarray, numbers: np.ndarray, log: rows_lib.RowLog
) -> np.ndarray:
  """Keeps only the first of equal triples, and counts the others."""
  group, num_groups = grouping.group_rows(triples)
  if num_groups == len(triples):
    return triples
  first = np.zeros(len(triples), dtype=bool)
  first[np.unique(group, return_index=True)[1]] = True
  repeated = numbers[~first]
  log.leave_out(int(repeated[0]), 'duplicate', len(repeated))
  return triples[first]


def _column_notes(logs: list[rows_lib.RowLog]) -> list[str]:
  """Returns a note for each file whose columns have unknown names."""
  return [
    f'{log.name}: the columns {", ".join(map(repr, log.assumed_columns))} were '
    'read as head, relation and tail, in this order. For another order, use '
    'coke prepare with --columns (in Python: columns)'
    for log in logs
    if log.assumed_columns
  ]


def _header_notes(
  words: vocabulary_lib.Vocabulary,
  splits: Mapping[str, np.ndarray],
  logs: list[rows_lib.RowLog],
) -> list[str]:
  """Returns a note for each file whose first row may name the columns."""
  whole = np.concatenate(list(splits.values()))
  entities = np.bincount(whole[:, [0, 2]].ravel(), minlength=words.num_entities)
  relations = np.bincount(whole[:, 1], minlength=words.num_relations)
  notes = []
  for triples, log in zip(splits.values(), logs, strict=True):
    if not log.may_have_header or not len(triples) or len(whole) < 3:
      continue
    head, relation, tail = triples[0].tolist()
    once = [
      words.entities[entity] for entity in (head, tail) if entities[entity] == 1
    ]
    if once and relations[relation] == 1:
      labels = [repr(label) for label in (words.relations[relation], *once)]
      notes.append(
        f'{log.name}: the labels {", ".join(labels[:-1])} and {labels[-1]} of '
        'the first row occur nowhere else. If the first row contains the names '
        'of the columns, use coke prepare with --header=yes (in Python: '
        "header='yes')"
      )
  return notes


def _quote_notes(words: vocabulary_lib.Vocabulary) -> list[str]:
  """Returns a note if there are labels that start and end with a quote.

  In a file that was read without a quote character, such labels suggest that
  the file quotes its fields.
  """
  quoted = [
    label
    for label in (*words.entities, *words.relations)
    if len(label) > 1 and label[0] == label[-1] == '"'
  ]
  if not quoted:
    return []
  return [
    f'{len(quoted):,} labels start and end with a quote, such as '
    f'{text_files.show_line(quoted[0])}. If the file quotes its fields, use '
    "coke prepare with --quote='\"' (in Python: quote='\"')"
  ]
