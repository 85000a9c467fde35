"""A cache of path data, so that path files are parsed only once."""

import dataclasses
import hashlib
import logging
import pathlib

import numpy as np

from coke_jax.data import (
  arrays,
  atomic_files,
  deduction,
  graph,
  path_files,
  text_files,
  user_cache,
)
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

_VERSION = 1  # version of the cache format, part of each cache file's name

_logger = logging.getLogger(__name__)


def read_paths_cached(
  folder: pathlib.Path,
  name: str,
  layout: paths_lib.PathFormat,
  cache_folder: pathlib.Path | None = None,
) -> paths_lib.PathData:
  """Does the same as `path_files.read_paths`, but reads the cache if possible.

  The name of a cache file depends on the content of the path files and their
  format. If either changes, the path files are read again. If the cache file is
  damaged, a warning is logged and the file is replaced. If the cache cannot be
  written, a warning is logged and the next call reads the path files again.
  Several processes can use the same cache at once.

  Args:
    folder: the folder of the path files, as in `path_files.read_paths`.
    name: the name of the data set in results.
    layout: the format of the lines.
    cache_folder: the folder of the cache files. Default: `paths` in the user's
      cache folder.

  Raises:
    text_files.DataError: as in `path_files.read_paths`.
  """
  folder_of_caches = cache_folder or user_cache.folder('paths')
  cache = folder_of_caches / f'{_content_key(folder, layout)}.npz'
  try:
    return _load(cache, name)
  except FileNotFoundError:
    pass
  except Exception as error:  # The path files are read after any error.
    _logger.warning('%s: damaged and will be replaced: %s', cache, error)
  _logger.info('%s: reading the path files', folder)
  data = path_files.read_paths(folder, name, layout)
  try:
    _save(cache, data)
  except OSError as error:
    _logger.warning('%s: cannot be written: %s', cache, error)
  return data


def _content_key(folder: pathlib.Path, layout: paths_lib.PathFormat) -> str:
  """Returns a SHA-256 of the path files, their format and _VERSION."""
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  roles = [*found.items()]
  for split, pair in deduction.find_files(found).items():
    roles.extend((f'{split} part', path) for path in pair)
  parts = [f'{_VERSION} {dataclasses.asdict(layout)!r}']
  for role, path in roles:
    try:
      with path.open('rb') as stream:
        digest = hashlib.file_digest(stream, 'sha256').hexdigest()
    except OSError as error:
      raise text_files.DataError(f'{path}: cannot be read: {error}') from error
    parts.append(f'{role} {digest}')
  return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _save(cache: pathlib.Path, data: paths_lib.PathData) -> None:
  """Writes a cache file completely or not at all."""
  packed = {
    'entities': _pack(data.vocabulary.entities),
    'relations': _pack(data.vocabulary.relations),
    **arrays.to_arrays(data),
  }
  cache.parent.mkdir(parents=True, exist_ok=True)
  with atomic_files.whole_file(cache) as path, path.open('wb') as stream:
    np.savez(stream, allow_pickle=False, **packed)


def _load(cache: pathlib.Path, name: str) -> paths_lib.PathData:
  """Reads a cache file. The checksums in the archive detect damage."""
  with (
    cache.open('rb') as stream,
    np.load(stream, allow_pickle=False) as packed,
  ):
    vocabulary = vocabulary_lib.Vocabulary(
      _unpack(packed['entities']), _unpack(packed['relations'])
    )
    data = arrays.from_arrays(name, vocabulary, packed)
  if not isinstance(data, paths_lib.PathData):
    raise ValueError('contains triples: expected paths')
  return data


def _pack(labels: tuple[str, ...]) -> np.ndarray:
  """Returns labels as lines of UTF-8: uint8 [bytes].

  This works because no label contains a line end.
  """
  return np.frombuffer('\n'.join(labels).encode(), dtype=np.uint8)


def _unpack(packed: np.ndarray) -> tuple[str, ...]:
  return tuple(packed.tobytes().decode().split('\n'))
