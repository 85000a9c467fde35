"""A cache of path data, so that path files are parsed only once."""

import dataclasses
import logging
import pathlib

from coke_jax.data import (
  cache_files,
  deduction,
  graph,
  path_files,
  text_files,
  user_cache,
)
from coke_jax.data import paths as paths_lib

# Version of the cache format. The names of the cache files depend on it.
_VERSION = 1

_logger = logging.getLogger(__name__)


def read_paths_cached(
  folder: pathlib.Path,
  name: str,
  layout: paths_lib.PathFormat,
  cache_folder: pathlib.Path | None = None,
) -> paths_lib.PathData:
  """Does the same as `path_files.read_paths`, but reads the cache if possible.

  If the content or the format of the path files changes, they are read again.
  See `cache_files.read` about damaged cache files.

  Args:
    folder: the folder of the path files, as in `path_files.read_paths`.
    name: the name of the data set in results.
    layout: the format of the lines.
    cache_folder: the folder of the cache files. Default:
      `user_cache.folder('paths')`.

  Raises:
    text_files.DataError: as in `path_files.read_paths`.
  """
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  files = [*found.items()]
  for split, pair in deduction.find_files(found).items():
    files.extend((f'{split} part', path) for path in pair)
  key = cache_files.content_key(
    f'{_VERSION} {dataclasses.asdict(layout)!r}', files
  )

  def parse() -> paths_lib.PathData:
    _logger.info('%s: reading the path files', folder)
    return path_files.read_paths(folder, name, layout)

  return cache_files.read(
    (cache_folder or user_cache.folder('paths')) / f'{key}.npz',
    name,
    paths_lib.PathData,
    parse,
  )
