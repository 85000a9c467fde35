"""Caches parsed data sets, so that their text files are parsed only once."""

import hashlib
import json
import logging
import pathlib
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from coke_jax.data import arrays, atomic_files, text_files
from coke_jax.data import vocabulary as vocabulary_lib

_logger = logging.getLogger(__name__)

_Data = TypeVar('_Data', bound=arrays.DataSet)


def read(
  cache: pathlib.Path,
  name: str,
  kind: type[_Data],
  parse: Callable[[], _Data],
) -> _Data:
  """Reads the cache file. If it is missing, calls `parse` and writes the file.

  If the cache file is damaged, a warning is logged and the file is replaced. If
  the cache file cannot be written, a warning is logged. Several processes can
  use the same file at once.

  Args:
    cache: the cache file. Its name should contain the result of `content_key`,
      so that a change of the text files leads to another cache file.
    name: the name of the data set in results.
    kind: the class of the data set.
    parse: a function that parses the files of the data set.

  Raises:
    text_files.DataError: raised by `parse`.
  """
  return read_with_remarks(cache, name, kind, lambda: (parse(), None))[0]


def read_with_remarks(
  cache: pathlib.Path,
  name: str,
  kind: type[_Data],
  parse: Callable[[], tuple[_Data, Any]],
) -> tuple[_Data, Any]:
  """Does the same as `read`, but also caches a JSON value about the data set.

  Args:
    cache: as for `read`.
    name: as for `read`.
    kind: as for `read`.
    parse: a function that parses the files of the data set. It returns the data
      set and the JSON value.

  Returns:
    The data set and the JSON value.

  Raises:
    text_files.DataError: raised by `parse`.
  """
  try:
    return _load(cache, name, kind)
  except FileNotFoundError:
    pass
  except Exception as error:  # After any error, the text files are parsed.
    _logger.warning('%s: damaged and will be replaced: %s', cache, error)
  data, remarks = parse()
  try:
    _save(cache, data, remarks)
  except OSError as error:
    _logger.warning('%s: cannot be written: %s', cache, error)
  return data, remarks


def content_key(layout: str, files: Iterable[tuple[str, pathlib.Path]]) -> str:
  """Returns a SHA-256 of the content of files and of their line format.

  Args:
    layout: the version of the cache format, and the format of the lines.
    files: pairs (role, path). A role is for example the name of a split.

  Raises:
    text_files.DataError: a file cannot be read.
  """
  parts = [layout]
  for role, path in files:
    try:
      with path.open('rb') as stream:
        digest = hashlib.file_digest(stream, 'sha256').hexdigest()
    except OSError as error:
      raise text_files.DataError(f'{path}: cannot be read: {error}') from error
    parts.append(f'{role} {digest}')
  return hashlib.sha256('\n'.join(parts).encode()).hexdigest()


def _save(cache: pathlib.Path, data: arrays.DataSet, remarks: Any) -> None:
  """Writes a cache file completely or not at all."""
  packed = {
    'entities': _pack(data.vocabulary.entities),
    'relations': _pack(data.vocabulary.relations),
    **arrays.to_arrays(data),
  }
  if remarks is not None:
    packed['remarks'] = _pack((json.dumps(remarks),))
  cache.parent.mkdir(parents=True, exist_ok=True)
  with atomic_files.whole_file(cache) as path, path.open('wb') as stream:
    np.savez(stream, allow_pickle=False, **packed)


def _load(
  cache: pathlib.Path, name: str, kind: type[_Data]
) -> tuple[_Data, Any]:
  """Reads a cache file. The checksums in the file detect damage."""
  with (
    cache.open('rb') as stream,
    np.load(stream, allow_pickle=False) as packed,
  ):
    vocabulary = vocabulary_lib.Vocabulary(
      _unpack(packed['entities']), _unpack(packed['relations'])
    )
    data = arrays.from_arrays(name, vocabulary, packed)
    remarks = None
    if 'remarks' in packed:
      remarks = json.loads(packed['remarks'].tobytes())
  if not isinstance(data, kind):
    raise ValueError(
      f'contains {type(data).__name__}: expected {kind.__name__}'
    )
  return data, remarks


def _pack(labels: tuple[str, ...]) -> np.ndarray:
  """Returns labels as lines of UTF-8: uint8 [bytes].

  This works because no label contains a line end.
  """
  return np.frombuffer('\n'.join(labels).encode(), dtype=np.uint8)


def _unpack(packed: np.ndarray) -> tuple[str, ...]:
  return tuple(packed.tobytes().decode().split('\n'))
