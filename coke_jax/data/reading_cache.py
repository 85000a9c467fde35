"""Caches the triples of large files of any format except OpenKE."""

import dataclasses
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from coke_jax.data import cache_files, graph_cache, reading, user_cache
from coke_jax.data import graph as graph_lib
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib

# Version of the cache format. The names of the cache files depend on it.
_VERSION = 'formats 2'


def read(
  parts: Mapping[str, Any],
  options: options_lib.Options,
  duplicates: str,
  *,
  progress: bool = False,
  cache_folder: pathlib.Path | None = None,
  min_bytes: int = graph_cache.MIN_BYTES,
) -> reading.Read:
  """Does the same as `reading.read`, but caches large files.

  The name of a cache file depends on the paths and contents of the files, on
  `options` and on `duplicates`. `cache_files.read` describes what happens if a
  cache file is damaged.

  Args:
    parts: as for `reading.read`.
    options: as for `reading.read`.
    duplicates: as for `reading.read`.
    progress: as for `reading.read`.
    cache_folder: the folder of the cache files. Default:
      `user_cache.folder('graphs')`.
    min_bytes: minimum total size of files that are cached. Default: 64 MiB.

  Raises:
    text_files.DataError: as in `reading.read`.
  """
  files = _files(parts, options)
  if not files or sum(path.stat().st_size for _, path in files) < min_bytes:
    return reading.read(parts, options, duplicates, progress=progress)

  def parse() -> tuple[graph_lib.KnowledgeGraph, Any]:
    found = reading.read(parts, options, duplicates, progress=progress)
    empty = np.zeros((0, 3), dtype=np.int32)
    splits = {
      split: found.splits.get(split, empty) for split in graph_lib.SPLITS
    }
    remarks = {
      'splits': list(found.splits),
      'sources': [dataclasses.asdict(source) for source in found.sources],
      'notes': found.notes,
    }
    return graph_lib.KnowledgeGraph('', found.vocabulary, **splits), remarks

  layout = [_VERSION, duplicates, dataclasses.asdict(options)]
  layout += [str(path) for _, path in files]
  key = cache_files.content_key(repr(layout), files)
  graph, remarks = cache_files.read_with_remarks(
    (cache_folder or user_cache.folder('graphs')) / f'{key}.npz',
    '',
    graph_lib.KnowledgeGraph,
    parse,
  )
  return reading.Read(
    graph.vocabulary,
    {split: graph.split(split) for split in remarks['splits']},
    tuple(_log(source) for source in remarks['sources']),
    remarks['notes'],
  )


def _files(
  parts: Mapping[str, Any], options: options_lib.Options
) -> list[tuple[str, pathlib.Path]]:
  """Returns the file of each split, or no files if a split cannot be cached.

  Data in memory and pipes are not cached. Files of OpenKE are not cached,
  because their labels are in other files.
  """
  files = []
  for split, data in parts.items():
    if not isinstance(data, str | os.PathLike):
      return []
    path = pathlib.Path(data)
    is_openke = options.format == 'openke' or path.name.endswith('2id.txt')
    if is_openke or not path.is_file():
      return []
    files.append((split, path))
  return files


def _log(source: dict[str, Any]) -> rows_lib.RowLog:
  """Restores the log of a source from its fields."""
  names = ('ignored_columns', 'assumed_columns', 'header')
  return rows_lib.RowLog(
    **{**source, **{name: tuple(source[name]) for name in names}}
  )
