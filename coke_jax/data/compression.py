"""Compressed files as streams of bytes: .gz, .bz2 and .xz, read strictly."""

import bz2
import io
import lzma
import pathlib
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO

# A file may hold this many times its size, or this many bytes if that is more.
# Texts of labels are compressed to a third or a twentieth.
MOST_EXPANSION = 200
FREE_EXPANSION_BYTES = 1 << 26
_MOST_XZ_MEMORY = 1 << 28  # bytes; `xz -9` asks for a quarter of it
_CHUNK_BYTES = 1 << 18

_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
  '.gz': lambda: zlib.decompressobj(16 + zlib.MAX_WBITS),
  '.bz2': bz2.BZ2Decompressor,
  '.xz': lambda: lzma.LZMADecompressor(memlimit=_MOST_XZ_MEMORY),
}


SUFFIXES = tuple(_DECOMPRESSORS)

# What reading a file that `open_file` has opened can raise.
ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)


def open_file(path: pathlib.Path) -> BinaryIO:
  """Opens a file for reading bytes, decompressed by its suffix.

  Raises:
    OSError: it cannot be opened.
  """
  raw = path.open('rb')
  if path.suffix not in _DECOMPRESSORS:
    return raw
  return io.BufferedReader(
    _Decompressed(raw, _DECOMPRESSORS[path.suffix]), _CHUNK_BYTES
  )


class _Decompressed(io.RawIOBase):
  """The content of one or more compressed streams, and nothing beside them.

  The standard library's readers pass over bytes that follow a stream, and take
  a file of no bytes for an empty one; here both are errors.
  """

  def __init__(self, raw: BinaryIO, new_decompressor: Callable[[], Any]):
    self._raw = raw
    self._new = new_decompressor
    self._decompressor = new_decompressor()
    self._compressed = b''
    self._bytes_in = self._bytes_out = 0

  def readable(self) -> bool:
    """True."""
    return True

  def readinto(self, buffer: Any) -> int:
    """Fills a buffer; 0 at the end of the last stream."""
    while True:
      wants_input = getattr(self._decompressor, 'needs_input', True)
      if not self._compressed and (wants_input or self._decompressor.eof):
        self._compressed = self._raw.read(_CHUNK_BYTES)
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

  def _check_expansion(self) -> None:
    most = max(MOST_EXPANSION * self._bytes_in, FREE_EXPANSION_BYTES)
    if self._bytes_out > most:
      raise OSError(
        f'{self._bytes_in:,} compressed bytes expand to more than {most:,}: '
        f'expected at most {MOST_EXPANSION} times as many; decompress the file '
        'yourself if this is no mistake'
      )

  def _left_over(self) -> bytes:
    """Input that the decompressor has not taken."""
    left: bytes = self._decompressor.unused_data
    return left or getattr(self._decompressor, 'unconsumed_tail', b'')

  def close(self) -> None:
    """Closes the file below, too."""
    self._raw.close()
    super().close()
