"""Writes labels to .npz files as NumPy arrays of strings."""

import zipfile
from collections.abc import Sequence

import numpy as np

from coke_jax import errors
from coke_jax.data import text_files

_CHUNK_BYTES = 1 << 22
# NumPy stores every label with the width of the longest label. The maximum size
# of the array is 1 GiB, or 64 bytes per character of the labels, if that is
# more.
_ALWAYS_ALLOWED_BYTES = 1 << 30
_MAX_EXPANSION = 64


class EmbeddingError(errors.CokeError, ValueError):
  """Embeddings that cannot be written to the chosen kind of file."""


def write(archive: zipfile.ZipFile, labels: Sequence[str]) -> None:
  """Writes labels as a NumPy array of strings [M].

  The array is compressed, because a single long label makes it mostly padding.
  It is written in chunks, which limits the memory.
  """
  dtype: np.dtype = np.dtype(f'<U{_width(labels)}')
  rows = max(1, _CHUNK_BYTES // dtype.itemsize)
  member = zipfile.ZipInfo('labels.npy')
  member.compress_type = zipfile.ZIP_DEFLATED
  with archive.open(member, 'w', force_zip64=True) as out:
    header = {
      'descr': np.lib.format.dtype_to_descr(dtype),
      'fortran_order': False,
      'shape': (len(labels),),
    }
    np.lib.format.write_array_header_1_0(out, header)
    for start in range(0, len(labels), rows):
      out.write(np.array(labels[start : start + rows], dtype=dtype).tobytes())


def _width(labels: Sequence[str]) -> int:
  """Returns the number of characters of the longest label, at least 1."""
  return max(map(len, labels), default=0) or 1


def check(labels: Sequence[str]) -> None:
  """Checks that NumPy can store labels as an array of strings.

  Raises:
    EmbeddingError: a label ends in NUL, which NumPy would remove; or a label is
      so long that the array would be too large.
  """
  expected = (
    "expected a folder for TensorBoard's projector as the output, instead of "
    'an .npz file'
  )
  for label in labels:
    if label.endswith('\0'):
      raise EmbeddingError(
        f'label {label!r} ends in NUL, which an .npz file cannot store: '
        f'{expected}'
      )
  size = 4 * _width(labels) * len(labels)
  text = sum(map(len, labels))
  if size > max(_ALWAYS_ALLOWED_BYTES, _MAX_EXPANSION * text):
    longest = max(labels, key=len)
    raise EmbeddingError(
      f'label {text_files.show_line(longest)} has {len(longest):,} characters, '
      f'so the array of labels would have {size:,} bytes in an .npz file: '
      f'{expected}'
    )
