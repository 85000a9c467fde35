"""A cache of large graphs, so that their files are parsed only once."""

import dataclasses
import pathlib

from coke_jax.data import (
  cache_files,
  graph,
  text_files,
  triple_files,
  user_cache,
)

# Smaller graphs are parsed in seconds, so they are not cached.
MIN_BYTES = 64 << 20

# The version of the cache format. The names of the cache files depend on it.
_VERSION = 1


def read_graph_cached(
  folder: pathlib.Path,
  name: str,
  layout: triple_files.TripleFormat,
  cache_folder: pathlib.Path | None = None,
  *,
  min_bytes: int = MIN_BYTES,
) -> graph.KnowledgeGraph:
  """Does the same as `triple_files.read_graph`, but caches large graphs.

  If the content or the format of the triple files changes, they are parsed
  again. See `cache_files.read` about damaged cache files.

  Args:
    folder: the folder of the triple files, as in `triple_files.read_graph`.
    name: the name of the graph in results.
    layout: the format of the lines.
    cache_folder: the folder of the cache files. Default: `graphs` in the user's
      cache folder.
    min_bytes: minimum total size of triple files that are cached. Default:
      64 MiB.

  Raises:
    text_files.DataError: as in `triple_files.read_graph`.
  """

  def parse() -> graph.KnowledgeGraph:
    return triple_files.read_graph(folder, name, layout)

  files = [
    (split, text_files.find_split(folder, split)) for split in graph.SPLITS
  ]
  if sum(path.stat().st_size for _, path in files) < min_bytes:
    return parse()
  key = cache_files.content_key(
    f'{_VERSION} {dataclasses.asdict(layout)!r}', files
  )
  return cache_files.read(
    (cache_folder or user_cache.folder('graphs')) / f'{key}.npz',
    name,
    graph.KnowledgeGraph,
    parse,
  )
