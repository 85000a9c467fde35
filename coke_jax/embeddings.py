"""Embeddings as files: .npz for programs, a folder for TensorBoard's projector.

An .npz of contextual embeddings holds
  vectors  float32 [N, K, D], zero where a sequence has ended
  tokens   int32 [N, K], ids of `labels`
  labels   text [ids]: entities, relations, [MASK], [PAD]
  layer    int: after how many blocks
and one of static embeddings
  vectors       float32 [M, D]
  labels        text [M]
  num_entities  int: the first labels are entities, the others relations

The projector reads `tensors.tsv` and `metadata.tsv`, a line a vector:
https://projector.tensorflow.org, or TensorBoard with the folder as log
directory.
"""

import dataclasses
import os
import pathlib
import tempfile
import types
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import files

_COPY_BYTES = 1 << 22
_PROJECTOR_CONFIG = (
  'embeddings {\n  tensor_path: "tensors.tsv"\n'
  '  metadata_path: "metadata.tsv"\n}\n'
)


@dataclasses.dataclass(frozen=True, eq=False)
class Contextual:
  """Hidden states of sequences.

  Attributes:
    vectors: float32 [N, K, D]; zero behind the end of a sequence.
    tokens: int32 [N, K], ids of `labels`.
    labels: the label of each token id; the last two are MASK and PAD.
    layer: after how many blocks.
  """

  vectors: np.ndarray
  tokens: np.ndarray
  labels: tuple[str, ...]
  layer: int

  def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes an .npz, or a folder for the projector if the name is another."""
    batches = [(self.tokens, self.vectors)]
    return write_contextual(path, batches, self.labels, self.layer)


@dataclasses.dataclass(frozen=True, eq=False)
class Static:
  """The embeddings of entities and relations that the model takes in.

  Attributes:
    vectors: float32 [M, D].
    labels: M labels, entities first.
    num_entities: how many of them are entities.
  """

  vectors: np.ndarray
  labels: tuple[str, ...]
  num_entities: int

  @property
  def entities(self) -> np.ndarray:
    """float32 [V, D]."""
    return self.vectors[: self.num_entities]

  @property
  def relations(self) -> np.ndarray:
    """float32 [R, D]."""
    return self.vectors[self.num_entities :]

  def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes an .npz, or a folder for the projector if the name is another."""
    path = pathlib.Path(path)
    if path.suffix == '.npz':
      with files.whole_file(path) as unfinished, unfinished.open('wb') as out:
        np.savez(
          out,
          vectors=self.vectors,
          labels=_text(self.labels),
          num_entities=self.num_entities,
        )
      return path
    kinds = np.where(
      np.arange(len(self.labels)) < self.num_entities, 'entity', 'relation'
    )
    rows = zip(self.labels, kinds.tolist(), strict=True)
    with _Projector(path, ['label', 'kind']) as projector:
      projector.add(self.vectors, rows)
    return path


def write_contextual(
  path: str | os.PathLike[str],
  batches: Iterable[tuple[np.ndarray, np.ndarray]],
  labels: tuple[str, ...],
  layer: int,
) -> pathlib.Path:
  """Writes contextual embeddings batch by batch, in the memory of one batch.

  Args:
    path: an .npz file, or else a folder for the projector.
    batches: tokens int32 [B, K] and hidden states float32 [B, K, D].
    labels: the label of each token id; the last two are MASK and PAD.
    layer: after how many blocks.

  Returns:
    What was written.

  Raises:
    OSError: it cannot be written.
  """
  path = pathlib.Path(path)
  pad = len(labels) - 1
  cleared = (
    (tokens, np.where((tokens != pad)[..., None], vectors, 0))
    for tokens, vectors in batches
  )
  if path.suffix == '.npz':
    _write_npz(path, cleared, labels, layer)
    return path
  names = ['label', 'position', 'sequence']
  with _Projector(path, names) as projector:
    for tokens, vectors in cleared:
      real = tokens != pad
      projector.add(vectors[real], _describe(tokens, pad, labels))
  return path


def _describe(
  tokens: np.ndarray, pad: int, labels: tuple[str, ...]
) -> Iterator[tuple[str, ...]]:
  """The label, position and sequence of each token of [B, K] but PAD."""
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
  """Arrays of a length that is known only in the end, as one .npz."""
  with (
    _Spool(path.parent) as tokens,
    _Spool(path.parent) as vectors,
    files.whole_file(path) as unfinished,
  ):
    for some_tokens, some_vectors in batches:
      tokens.add(some_tokens.astype(np.int32))
      vectors.add(some_vectors.astype(np.float32))
    with zipfile.ZipFile(unfinished, 'w', allowZip64=True) as archive:
      tokens.copy_to(archive, 'tokens.npy')
      vectors.copy_to(archive, 'vectors.npy')
      for name, array in (('labels', _text(labels)), ('layer', layer)):
        with archive.open(f'{name}.npy', 'w') as out:
          np.save(out, np.asarray(array), allow_pickle=False)


class _Spool:
  """Rows of one array, kept in an unnamed file until all are there."""

  def __init__(self, folder: pathlib.Path):
    self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
    self._rows = 0
    self._like = np.zeros((0, 0))

  def __enter__(self) -> '_Spool':
    return self

  def __exit__(self, *_: object) -> None:
    self._file.close()

  def add(self, rows: np.ndarray) -> None:
    """Adds rows [B, ...], all of one type and inner shape."""
    self._like = rows[:0]
    self._rows += len(rows)
    self._file.write(np.ascontiguousarray(rows).data)

  def copy_to(self, archive: zipfile.ZipFile, name: str) -> None:
    """Adds the array to an .npz."""
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
  """tensors.tsv and metadata.tsv, line by line."""

  def __init__(self, folder: pathlib.Path, columns: Sequence[str]):
    folder.mkdir(parents=True, exist_ok=True)
    self._tensors = (folder / 'tensors.tsv').open('w', encoding='utf-8')
    self._metadata = (folder / 'metadata.tsv').open('w', encoding='utf-8')
    (folder / 'projector_config.pbtxt').write_text(_PROJECTOR_CONFIG)
    self._metadata.write('\t'.join(columns) + '\n')

  def __enter__(self) -> '_Projector':
    return self

  def __exit__(
    self,
    kind: type[BaseException] | None,
    error: BaseException | None,
    trace: types.TracebackType | None,
  ) -> None:
    self._tensors.close()
    self._metadata.close()

  def add(self, vectors: np.ndarray, rows: Iterable[Sequence[str]]) -> None:
    """Adds vectors [M, D] and what they are of."""
    for vector in vectors.tolist():
      self._tensors.write('\t'.join(f'{value:.7g}' for value in vector) + '\n')
    for row in rows:
      self._metadata.write('\t'.join(map(_one_field, row)) + '\n')


def _one_field(text: str) -> str:
  r"""A text in a column of its own: tabs and line ends as \t, \n and so on."""
  if text.isprintable():
    return text
  return ''.join(
    char if char.isprintable() else repr(char)[1:-1] for char in text
  )


def _text(labels: Sequence[str]) -> np.ndarray:
  """Labels as a NumPy array of texts [M].

  Raises:
    ValueError: NumPy would change one.
  """
  array: Any = np.array(labels, dtype=np.str_)
  for label, kept in zip(labels, array.tolist(), strict=True):
    if label != kept:
      raise ValueError(f'label {label!r} ends in NUL, which NumPy cannot keep')
  return array
