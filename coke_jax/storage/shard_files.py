"""Writes and reads checkpoint arrays if the vocabulary is cut into shards.

Each item of the checkpoint, such as `params`, is a folder that contains:

whole.npy       the arrays that all devices have: first an array of their names,
                then the arrays, in the same order
<name>.<i>.npy  the shard of device i, which is row i of an array
                [devices, S, ...], see `placement`

Each process writes the shards of its devices, and process 0 also writes
whole.npy. The shards can be read with any number of devices.
"""

import contextlib
import hashlib
import os
import pathlib
from collections.abc import Callable
from typing import Any, BinaryIO

import jax
import numpy as np

from coke_jax import hosts, parallel
from coke_jax.shards import placement as placement_lib
from coke_jax.storage import checksums

_WHOLE = 'whole.npy'
_ENDING = '.npy'


def write(folder: pathlib.Path | None, state: dict[str, Any]) -> dict[str, str]:
  """Writes the arrays of this process.

  Args:
    folder: the folder of the checkpoint, which contains a folder for each item.
      If None, only the checksums are computed.
    state: for each item, a cut tree on the devices, see `placement`.

  Returns:
    The SHA-256 of each file of this process, by relative path.

  Raises:
    OSError: a file cannot be written.
  """
  written = {}
  for item, tree in state.items():
    whole = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
      if not placement_lib.is_shard(path):
        whole[_name(path)] = leaf
        continue
      for device, shard in placement_lib.own_shards(leaf):
        file = _shard_file(item, _name(path), device)
        written[file] = _write_arrays(folder, file, [shard])
    if hosts.is_main():
      arrays = [np.array(list(whole)), *map(np.asarray, whole.values())]
      file = f'{item}/{_WHOLE}'
      written[file] = _write_arrays(folder, file, arrays)
  return written


def describe(placement: placement_lib.Placement) -> dict[str, int]:
  """Returns the value of `shards` in the metadata, see `Reader.of`."""
  return {
    'devices': placement.num_devices,
    'entities': placement.num_entities,
  }


class Reader:
  """Reads the arrays of a checkpoint whose vocabulary is cut."""

  def __init__(
    self,
    folder: pathlib.Path,
    written: placement_lib.Placement,
    files: dict[str, str],
  ):
    """Stores the arguments.

    Args:
      folder: the folder of the checkpoint.
      written: the placement with which the checkpoint was written.
      files: the SHA-256 of each file, by relative path.
    """
    self._folder = folder
    self._written = written
    self._files = files

  @classmethod
  def of(cls, folder: pathlib.Path, metadata: dict[str, Any]) -> 'Reader':
    """Returns a reader for the checkpoint in a folder.

    Args:
      folder: the folder of the checkpoint.
      metadata: the metadata of the checkpoint. Its key `shards` contains the
        result of `describe`.
    """
    shards = metadata['shards']
    written = placement_lib.Placement(
      shards['entities'], shards['devices'], is_cut=True
    )
    return cls(folder, written, metadata['files'])

  def read_whole(self, shapes: dict[str, Any]) -> dict[str, Any]:
    """Reads whole trees.

    Args:
      shapes: for each item, a whole tree of shapes and dtypes.

    Returns:
      For each item, a whole tree of NumPy arrays.

    Raises:
      checksums.ChecksumError: a file is missing or damaged.
      OSError: a file cannot be read.
      ValueError: the arrays have other names or shapes.
    """

    def read(item: str, name: str, shape: tuple[int, ...]) -> np.ndarray:
      rows = self._rows(item, name, 0, (shape[0] * shape[1], *shape[2:]))
      return rows.reshape(shape)

    size = self._written.num_devices * self._written.shard_size
    self._verify(shapes, np.arange(size))
    joined: dict[str, Any] = self._written.join(
      self._read(shapes, self._written, read, np.asarray)
    )
    return joined

  def read_placed(
    self, shapes: dict[str, Any], placement: placement_lib.Placement
  ) -> dict[str, Any]:
    """Reads and places the arrays of this process's devices.

    Reads only the shards that contain entities of these devices. Errors are
    those of `read_whole`.

    Args:
      shapes: for each item, a whole tree of shapes and dtypes.
      placement: how to distribute the arrays over the devices. It must cut the
        vocabulary.

    Returns:
      For each item, a cut tree on the devices, see `placement`.
    """

    def read(item: str, name: str, shape: tuple[int, ...]) -> jax.Array:
      return parallel.place_rows(
        shape,
        lambda device: self._rows(item, name, device * shape[1], shape[1:]),
      )

    own, size = parallel.own_devices(), placement.shard_size
    self._verify(shapes, own[:, None] * size + np.arange(size)[None])
    return self._read(shapes, placement, read, parallel.replicate)

  def _verify(self, shapes: dict[str, Any], entities: np.ndarray) -> None:
    """Checks the SHA-256 of whole.npy and of the shards that contain entities.

    Args:
      shapes: a dictionary whose keys are the items.
      entities: the ids of the entities.
    """
    devices = np.unique(entities // self._written.shard_size).astype(str)
    needed = {*devices.tolist(), _WHOLE.removesuffix(_ENDING)}
    listed = {
      file: sha256
      for file, sha256 in self._files.items()
      if pathlib.PurePath(file).parts[0] in shapes
      and file.removesuffix(_ENDING).replace('/', '.').split('.')[-1] in needed
    }
    checksums.compare(self._folder, listed, 'its metadata')

  def _read(
    self,
    shapes: dict[str, Any],
    placement: placement_lib.Placement,
    read: Callable[[str, str, tuple[int, ...]], Any],
    convert: Callable[[np.ndarray], Any],
  ) -> dict[str, Any]:
    """Reads cut trees. `read` reads shards. `convert` converts other arrays."""
    if placement.num_entities != self._written.num_entities:
      raise ValueError(
        f'it has {self._written.num_entities} entities: expected '
        f'{placement.num_entities}'
      )
    found = {}
    for item, tree in jax.eval_shape(placement.cut, shapes).items():
      whole = self._whole_arrays(item)

      def leaf_at(
        path: Any, leaf: Any, item: str = item, whole: Any = whole
      ) -> Any:
        name = _name(path)
        if placement_lib.is_shard(path):
          return read(item, name, leaf.shape)
        if name not in whole or whole[name].shape != leaf.shape:
          raise ValueError(f'{name}: expected an array of shape {leaf.shape}')
        return convert(whole[name])

      found[item] = jax.tree_util.tree_map_with_path(leaf_at, tree)
    return found

  def _whole_arrays(self, item: str) -> dict[str, np.ndarray]:
    with (self._folder / item / _WHOLE).open('rb') as stream:
      names = np.load(stream, allow_pickle=False).tolist()
      return {name: np.load(stream, allow_pickle=False) for name in names}

  def _rows(
    self, item: str, name: str, start: int, shape: tuple[int, ...]
  ) -> np.ndarray:
    """Reads consecutive rows of a table of entities. Missing rows are 0."""
    size, found = self._written.shard_size, np.zeros(shape, np.float32)
    stop = min(start + shape[0], self._written.num_devices * size)
    for device in range(start // size, -(-stop // size)):
      path = self._folder / _shard_file(item, name, device)
      rows = np.load(path, mmap_mode='r', allow_pickle=False)
      if rows.shape != (size, *shape[1:]) or rows.dtype != found.dtype:
        raise ValueError(
          f'{path.name} contains {rows.dtype} {rows.shape}: expected '
          f'{found.dtype} {(size, *shape[1:])}'
        )
      first = device * size
      part = slice(max(start, first), min(stop, first + size))
      found[part.start - start : part.stop - start] = rows[
        part.start - first : part.stop - first
      ]
    return found


class _Sink:
  """Computes the SHA-256 of data. Also writes the data to `file`, if any."""

  def __init__(self, file: BinaryIO | None):
    self.sha = hashlib.sha256()
    self._file = file

  def write(self, data: bytes) -> None:
    self.sha.update(data)
    if self._file is not None:
      self._file.write(data)


def _write_arrays(
  folder: pathlib.Path | None, file: str, arrays: list[np.ndarray]
) -> str:
  """Writes arrays to a file. Returns the SHA-256 of the file."""
  with contextlib.ExitStack() as stack:
    out = stack.enter_context((folder / file).open('xb')) if folder else None
    sink: Any = _Sink(out)
    for array in arrays:
      np.lib.format.write_array(sink, array, allow_pickle=False)
    if out is not None:
      out.flush()
      os.fsync(out.fileno())
  return str(sink.sha.hexdigest())


def _name(path: Any) -> str:
  """Returns the name of a leaf, such as `optimizer_state.0.mu.entity_bias`."""
  return jax.tree_util.keystr(path, simple=True, separator='.')


def _shard_file(item: str, name: str, device: int) -> str:
  return f'{item}/{name}.{device}{_ENDING}'
