"""Writes embeddings as .npz files, or as folders for TensorBoard's projector.

An .npz file of contextual embeddings of N sequences with K tokens contains
  vectors  float32 [N, K, D], zero at PAD
  tokens   int32 [N, K], token ids, which are indices of `labels`
  labels   text [V + R + 2]: V entities, R relations, [MASK], [PAD]
  layer    int, the number of blocks applied

An .npz file of static embeddings of M entities and relations contains
  vectors       float32 [M, D]
  labels        text [M], entities first, then relations
  num_entities  int, the number of entities

A folder for the projector contains `tensors.tsv` and `metadata.tsv`, each
with one line per vector. `metadata.tsv` also has a header.
`projector_config.pbtxt` contains the names of the two files for TensorBoard.
Load `tensors.tsv` and `metadata.tsv` at https://projector.tensorflow.org, or
start TensorBoard with the folder as log directory.
"""

import contextlib
import os
import pathlib
import tempfile
import types
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np

from coke_jax.data import atomic_files, user_paths
from coke_jax.predict import label_arrays

_COPY_BYTES = 1 << 22
_PROJECTOR_CONFIG = (
  'embeddings {\n  tensor_path: "tensors.tsv"\n'
  '  metadata_path: "metadata.tsv"\n}\n'
)


EmbeddingError = label_arrays.EmbeddingError


def write_contextual(
  path: str | os.PathLike[str],
  batches: Iterable[tuple[np.ndarray, np.ndarray]],
  labels: tuple[str, ...],
  layer: int,
) -> pathlib.Path:
  """Writes contextual embeddings, with only one batch in memory at a time.

  Args:
    path: an .npz file if the name ends in `.npz`, else a folder for
      TensorBoard's projector.
    batches: pairs of tokens, int32 [B, K], and hidden states, float32
      [B, K, D].
    labels: the label of each token id; the last two are MASK and PAD.
    layer: the number of blocks applied.

  Returns:
    The path.

  Raises:
    OSError: the file or folder cannot be written.
    EmbeddingError: a label cannot be written to an .npz file.
  """
  path = user_paths.expand(path)
  pad = len(labels) - 1
  if path.suffix == '.npz':
    _write_npz(path, batches, labels, layer)
    return path
  names = ['label', 'position', 'sequence']
  with _Projector(path, names) as projector:
    for tokens, vectors in batches:
      real = tokens != pad
      projector.add(vectors[real], _describe(tokens, pad, labels))
  return path


def write_static(
  path: str | os.PathLike[str],
  vectors: np.ndarray,
  labels: tuple[str, ...],
  num_entities: int,
) -> pathlib.Path:
  """Writes static embeddings.

  Args:
    path: an .npz file if the name ends in `.npz`, else a folder for
      TensorBoard's projector.
    vectors: float32 [M, D].
    labels: M labels, entities first, then relations.
    num_entities: the number of entities.

  Returns:
    The path.

  Raises:
    OSError: the file or folder cannot be written.
    EmbeddingError: a label cannot be written to an .npz file.
  """
  path = user_paths.expand(path)
  if path.suffix == '.npz':
    label_arrays.check(labels)
    with (
      atomic_files.whole_file(path) as unfinished,
      zipfile.ZipFile(unfinished, 'w', allowZip64=True) as archive,
    ):
      _write_array(archive, 'vectors', vectors)
      label_arrays.write(archive, labels)
      _write_array(archive, 'num_entities', np.asarray(num_entities))
    return path
  kinds = np.where(np.arange(len(labels)) < num_entities, 'entity', 'relation')
  rows = zip(labels, kinds.tolist(), strict=True)
  with _Projector(path, ['label', 'kind']) as projector:
    projector.add(vectors, rows)
  return path


def _describe(
  tokens: np.ndarray, pad: int, labels: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
  """Yields label, position and sequence of each token that is not PAD."""
  for row in tokens.tolist():
    words = [labels[token] for token in row if token != pad]
    for position, word in enumerate(words):
      yield word, str(position), ' | '.join(words)


def _write_npz(
  path: pathlib.Path,
  batches: Iterable[tuple[np.ndarray, np.ndarray]],
  labels: tuple[str, ...],
  layer: int,
) -> None:
  """Writes an .npz file of arrays whose length is not known in advance."""
  label_arrays.check(labels)
  with (
    atomic_files.whole_file(path) as unfinished,
    _Spool(path.parent) as tokens,
    _Spool(path.parent) as vectors,
  ):
    for some_tokens, some_vectors in batches:
      tokens.add(some_tokens.astype(np.int32))
      vectors.add(some_vectors.astype(np.float32))
    with zipfile.ZipFile(unfinished, 'w', allowZip64=True) as archive:
      tokens.copy_to(archive, 'tokens.npy')
      vectors.copy_to(archive, 'vectors.npy')
      label_arrays.write(archive, labels)
      _write_array(archive, 'layer', np.asarray(layer))


class _Spool:
  """Collects the rows of one array in a temporary file without a name."""

  def __init__(self, folder: pathlib.Path):
    self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    self._rows = 0
    self._like = np.zeros((0, 0))

  def __enter__(self) -> '_Spool':
    return self

  def __exit__(self, *_: object) -> None:
    self._file.close()

  def add(self, rows: np.ndarray) -> None:
    """Adds rows [B, ...], with the same dtype and inner shape in every call."""
    self._like = rows[:0]
    self._rows += len(rows)
    self._file.write(np.ascontiguousarray(rows).data)

  def copy_to(self, archive: zipfile.ZipFile, name: str) -> None:
    """Writes the array of all rows to an .npz file."""
    self._file.seek(0)
    header = {
      'descr': np.lib.format.dtype_to_descr(self._like.dtype),
      'fortran_order': False,
      'shape': (self._rows, *self._like.shape[1:]),
    }
    with archive.open(name, 'w', force_zip64=True) as out:
      np.lib.format.write_array_header_2_0(out, header)
      while block := self._file.read(_COPY_BYTES):
        out.write(block)


class _Projector:
  """Writes the files of a folder for the projector, line by line.

  Use it as a context manager. The files have temporary names until the context
  ends without an error. After an error, a folder created by this object is
  removed.
  """

  def __init__(self, folder: pathlib.Path, columns: Sequence[str]):
    self._folder = folder
    self._columns = columns

  def __enter__(self) -> '_Projector':
    with contextlib.ExitStack() as stack:
      if not self._folder.exists():
        with atomic_files.writing(self._folder):
          self._folder.mkdir(parents=True)
        stack.push(self._remove_folder)
      self._tensors, self._metadata, config = (
        self._open(stack, name)
        for name in ('tensors.tsv', 'metadata.tsv', 'projector_config.pbtxt')
      )
      config.write(_PROJECTOR_CONFIG)
      self._metadata.write('\t'.join(self._columns) + '\n')
      self._stack = stack.pop_all()
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: types.TracebackType | None,
  ) -> None:
    self._stack.__exit__(kind, error, trace)

  def _open(self, stack: contextlib.ExitStack, name: str) -> IO[str]:
    unfinished = stack.enter_context(
      atomic_files.whole_file(self._folder / name)
    )
    return stack.enter_context(
      unfinished.open('w', encoding='utf-8', newline='\n')
    )

  def _remove_folder(self, kind: type[BaseException] | None, *_: Any) -> None:
    if kind is not None:
      # `rmdir` raises OSError if the folder contains other files.
      with contextlib.suppress(OSError):
        self._folder.rmdir()

  def add(self, vectors: np.ndarray, rows: Iterable[Sequence[str]]) -> None:
    """Adds vectors [M, D] and their M rows of metadata."""
    for vector in vectors.tolist():
      self._tensors.write('\t'.join(f'{value:.7g}' for value in vector) + '\n')
    for row in rows:
      self._metadata.write('\t'.join(map(_one_field, row)) + '\n')


def _one_field(text: str) -> str:
  r"""Escapes characters that are not printable, for example a tab as \t."""
  if text.isprintable():
    return text
  return ''.join(
    char if char.isprintable() else repr(char)[1:-1] for char in text
  )


def _write_array(
  archive: zipfile.ZipFile, name: str, array: np.ndarray
) -> None:
  with archive.open(f'{name}.npy', 'w', force_zip64=True) as out:
    np.lib.format.write_array(out, array, allow_pickle=False)
