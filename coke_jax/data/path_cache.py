"""Path data read once, and from then on from one array file in a cache."""

import dataclasses
import hashlib
import logging
import pathlib

import numpy as np

from coke_jax.data import (
  arrays,
  atomic_files,
  graph,
  path_files,
  text_files,
  user_cache,
)
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

_VERSION = 1  # of what a cache file holds; a new one leaves the old ones unread

_logger = logging.getLogger(__name__)


def read_paths_cached(
  folder: pathlib.Path,
  name: str,
  layout: paths_lib.PathFormat,
  cache_folder: pathlib.Path | None = None,
) -> paths_lib.PathData:
  """What `path_files.read_paths` returns, from the cache when it is there.

  A cache file belongs to the content of the files and to the format: when
  either changes, the files are read again. One that is damaged is named in a
  warning and made again; a cache that cannot be written costs a warning and the
  time to read the files next time. Several processes may do this at once.

  Args:
    folder: where the files are; see `path_files.read_paths`.
    name: what results call this data set.
    layout: how the lines are laid out.
    cache_folder: where cache files are; None is the user's own cache.

  Raises:
    text_files.DataError: as `path_files.read_paths`.
  """
  folder_of_caches = cache_folder or user_cache.folder('paths')
  cache = folder_of_caches / f'{_content_key(folder, layout)}.npz'
  try:
    return _load(cache, name)
  except FileNotFoundError:
    pass
  except Exception as error:  # whatever is wrong with it, the files are there
    _logger.warning('%s: damaged, to be made again: %s', cache, error)
  _logger.info('%s: reading the paths, once', folder)
  data = path_files.read_paths(folder, name, layout)
  try:
    _save(cache, data)
  except OSError as error:
    _logger.warning('%s: cannot be written: %s', cache, error)
  return data


def _content_key(folder: pathlib.Path, layout: paths_lib.PathFormat) -> str:
  """SHA-256 of the files' content, the format and the cache's version."""
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  roles = [*found.items()]
  for split, pair in path_files.find_deduction(found).items():
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
  """Writes a cache file whole: under another name first, then renamed."""
  packed = {
    'entities': _pack(data.vocabulary.entities),
    'relations': _pack(data.vocabulary.relations),
    **arrays.to_arrays(data),
  }
  cache.parent.mkdir(parents=True, exist_ok=True)
  with atomic_files.whole_file(cache) as path, path.open('wb') as stream:
    np.savez(stream, allow_pickle=False, **packed)


def _load(cache: pathlib.Path, name: str) -> paths_lib.PathData:
  """Reads a cache file; the archive's checksums find damage."""
  with (
    cache.open('rb') as stream,
    np.load(stream, allow_pickle=False) as packed,
  ):
    vocabulary = vocabulary_lib.Vocabulary(
      _unpack(packed['entities']), _unpack(packed['relations'])
    )
    data = arrays.from_arrays(name, vocabulary, packed)
  if not isinstance(data, paths_lib.PathData):
    raise ValueError('holds triples: expected paths')
  return data


def _pack(labels: tuple[str, ...]) -> np.ndarray:
  """Labels as bytes, one a line; no label holds a line end: uint8 [bytes]."""
  return np.frombuffer('\n'.join(labels).encode(), dtype=np.uint8)


def _unpack(packed: np.ndarray) -> tuple[str, ...]:
  return tuple(packed.tobytes().decode().split('\n'))
