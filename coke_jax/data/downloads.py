"""Downloads data sets and checks their SHA-256."""

import hashlib
import pathlib
import shutil
import tarfile
import tempfile
import urllib.request
from collections.abc import Mapping

from coke_jax import progress_bar

# Default for the maximum size of a download, and of each file in an archive.
MAX_BYTES = 64 << 20

_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 16


def fill_folder(
  folder: pathlib.Path,
  address: str,
  sha256: Mapping[str, str],
  *,
  archive_sha256: str = '',
  prefix: str = '',
  max_bytes: int = 0,
) -> None:
  """Downloads files into a new folder.

  The files are downloaded into a temporary folder. This folder is renamed when
  every checksum is right, and deleted after an error. If another process
  creates `folder` in the meantime, the files of that process are kept.

  Args:
    folder: the folder to create.
    address: the URL of a folder of plain files, if it ends with `/`. Otherwise
      the URL of a .tar.gz archive, which may contain the files in any folder.
    sha256: a dict from the name of a file to the SHA-256 of its content, in
      hexadecimal. With an empty text, the file is not checked.
    archive_sha256: the SHA-256 of the archive. Default: not checked.
    prefix: the start of the file names in the archive, which is removed.
      Default: empty.
    max_bytes: the maximum size of a download, and of each file in the archive.
      Default: MAX_BYTES.

  Raises:
    OSError, http.client.HTTPException: the address cannot be read, or the
      folder cannot be written.
    EOFError, tarfile.TarError, zlib.error: the archive is damaged.
    ValueError: a download is too large or too short, a file is missing from the
      archive, or a checksum is wrong.
  """
  most = max_bytes or MAX_BYTES
  folder.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
    dir=folder.parent, prefix=f'.{folder.name}-'
  ) as temporary:
    complete = pathlib.Path(temporary) / folder.name
    complete.mkdir()
    if address.endswith('/'):
      for name in sha256:
        fetch(address + name, complete / name, most)
    else:
      archive = pathlib.Path(temporary) / 'archive'
      fetch(address, archive, most)
      _check(archive, archive_sha256)
      _unpack(archive, complete, {prefix + name: name for name in sha256}, most)
    for name, expected in sha256.items():
      _check(complete / name, expected)
    try:
      complete.rename(folder)
    except OSError:
      # Another process may have created the folder first.
      if not folder.is_dir():
        raise


def fetch(address: str, path: pathlib.Path, max_bytes: int = 0) -> None:
  """Downloads one file, with a progress bar if stderr is a terminal.

  Args:
    address: the URL.
    path: the file to write.
    max_bytes: the maximum size of the file. Default: MAX_BYTES.

  Raises:
    OSError, http.client.HTTPException: the address cannot be read, or the file
      cannot be written.
    ValueError: the file is larger than `max_bytes`, or its size differs from
      the announced size.
  """
  most = max_bytes or MAX_BYTES
  with (
    urllib.request.urlopen(address, timeout=_TIMEOUT_SECONDS) as response,
    path.open('wb') as out,
  ):
    length = response.headers.get('Content-Length')
    total = int(length) if length else None
    label = address.rsplit('/', 1)[-1]
    with progress_bar.create(
      label, total=total, unit='B', unit_scale=True, disable=None
    ) as bar:
      while chunk := response.read(_CHUNK_BYTES):
        out.write(chunk)
        bar.update(len(chunk))
        if out.tell() > most:
          raise ValueError(f'{label}: more than {most:,} bytes')
    if total is not None and out.tell() != total:
      raise ValueError(f'{label}: got {out.tell():,} of {total:,} bytes')


def _check(path: pathlib.Path, expected: str) -> None:
  """Checks the SHA-256 of a file, unless the expected value is empty."""
  if not expected:
    return
  with path.open('rb') as stream:
    got = hashlib.file_digest(stream, 'sha256').hexdigest()
  if got != expected:
    raise ValueError(f'{path.name}: SHA-256 is {got}, expected {expected}')


def _unpack(
  path: pathlib.Path,
  folder: pathlib.Path,
  wanted: Mapping[str, str],
  max_bytes: int,
) -> None:
  """Extracts files from any folder of an archive.

  Args:
    path: the archive.
    folder: the folder for the files.
    wanted: a dict from a name in the archive to the name of the file to write.
    max_bytes: the maximum size of each file in the archive.
  """
  with tarfile.open(path, 'r:gz') as tar:
    for member in tar:
      if member.size > max_bytes:
        raise ValueError(f'{member.name}: more than {max_bytes:,} bytes')
      name = pathlib.PurePosixPath(member.name).name
      stream = tar.extractfile(member) if member.isfile() else None
      if name in wanted and stream:
        with (folder / wanted[name]).open('wb') as out:
          shutil.copyfileobj(stream, out)
  for name, written in wanted.items():
    if not (folder / written).exists():
      raise ValueError(f'the archive has no {name}')
