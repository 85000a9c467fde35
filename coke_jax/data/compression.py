"""Strict reading of .gz, .bz2 and .xz files as streams of bytes."""

import bz2
import io
import lzma
import pathlib
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

# The decompressed content may be up to MAX_EXPANSION times as large as the
# file. Content of up to ALWAYS_ALLOWED_BYTES is always allowed. Files of labels
# usually expand to 3 to 20 times their size.
MAX_EXPANSION = 200
ALWAYS_ALLOWED_BYTES = 1 << 26
# Maximum memory for decompressing .xz, in bytes. A file that was compressed
# with `xz -9` needs a quarter of this.
_MAX_XZ_MEMORY = 1 << 28
_CHUNK_BYTES = 1 << 18

_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
  '.gz': lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
  '.bz2': bz2.BZ2Decompressor,
  '.xz': lambda: lzma.LZMADecompressor(memlimit=_MAX_XZ_MEMORY),
}

# The first bytes of a compressed file, by its suffix.
_STARTS = {'.gz': b'\x1f\x8b', '.bz2': b'BZh', '.xz': b'\xfd7zXZ\0'}

SUFFIXES = tuple(_DECOMPRESSORS)
# The errors that can occur when a stream of `open_file` is read.
ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


def open_file(path: pathlib.Path) -> BinaryIO:
  """Opens a file for reading bytes, and decompresses it by its suffix.

  Args:
    path: the file. If its suffix is not one of SUFFIXES, its bytes are not
      changed.

  Returns:
    The decompressed stream. Reading from it raises one of ERRORS if the
    compressed data are damaged, end too early, are followed by other bytes or
    expand too much.

  Raises:
    OSError: the file cannot be opened.
  """
  raw = path.open('rb')
  if path.suffix not in _DECOMPRESSORS:
    return raw
  return io.BufferedReader(_Decompressed(raw, path.suffix), _CHUNK_BYTES)


def position(stream: BinaryIO) -> int:
  """Returns how many bytes a stream of `open_file` has read from its file."""
  raw = getattr(stream, 'raw', None)
  return raw.position() if isinstance(raw, _Decompressed) else stream.tell()


class _Decompressed(io.RawIOBase):
  """The content of a file that consists of one or more compressed streams.

  Raises an error if other bytes follow a stream or if the file has 0 bytes. In
  the standard library, `bz2` and `lzma` ignore such bytes, and `gzip` accepts
  an empty file.
  """

  def __init__(self, raw: BinaryIO, suffix: str):
    self._raw = raw
    self._suffix = suffix
    self._new = _DECOMPRESSORS[suffix]
    self._decompressor = self._new()
    self._compressed = b''
    self._bytes_in = self._bytes_out = 0

  def readable(self) -> bool:
    """Returns True."""
    return True

  def position(self) -> int:
    """Returns the number of compressed bytes that were read."""
    return self._bytes_in

  def readinto(self, buffer: Any) -> int:
    """Reads into a buffer. Returns the number of bytes, 0 at the end."""
    while True:
      wants_input = getattr(self._decompressor, 'needs_input', True)
      if not self._compressed and (wants_input or self._decompressor.eof):
        self._compressed = self._raw.read(_CHUNK_BYTES)
        if not self._bytes_in:
          self._check_start()
        self._bytes_in += len(self._compressed)
      exhausted = wants_input and not self._compressed
      if self._decompressor.eof:
        if not self._compressed:
          return 0
        self._decompressor = self._new()
      data = self._decompressor.decompress(self._compressed, len(buffer))
      self._compressed = self._left_over()
      if data:
        self._bytes_out += len(data)
        self._check_expansion()
        buffer[: len(data)] = data
        return len(data)
      if exhausted and not self._decompressor.eof:
        raise EOFError('the compressed data end too early')

  def _check_start(self) -> None:
    expected = _STARTS[self._suffix]
    start = self._compressed[: len(expected)]
    if start and not expected.startswith(start):
      raise OSError(
        f'starts with {start!r}: expected {expected!r}, because the name ends '
        f'in {self._suffix}. If the file is not compressed, rename it'
      )

  def _check_expansion(self) -> None:
    most = max(MAX_EXPANSION * self._bytes_in, ALWAYS_ALLOWED_BYTES)
    if self._bytes_out > most:
      raise OSError(
        f'{self._bytes_in:,} compressed bytes expand to more than {most:,}: '
        f'expected an expansion of at most {MAX_EXPANSION} times. If the file '
        'is not damaged, decompress it first'
      )

  def _left_over(self) -> bytes:
    """Returns the input that the decompressor has not consumed."""
    left: bytes = self._decompressor.unused_data
    return left or getattr(self._decompressor, 'unconsumed_tail', b'')

  def close(self) -> None:
    """Closes the stream and the file that it reads."""
    self._raw.close()
    super().close()
