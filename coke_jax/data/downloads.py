"""Downloads data sets and checks their SHA-256."""

import hashlib
import pathlib
import tarfile
import tempfile
import urllib.request
from collections.abc import Mapping

from coke_jax import progress_bar

# Maximum number of bytes of a download, and of each file in an archive.
MAX_BYTES = 64 << 20

_TIMEOUT_SECONDS = 60
_CHUNK_BYTES = 1 << 16


def fill_folder(
  folder: pathlib.Path, address: str, sha256: Mapping[str, str]
) -> None:
  """Downloads files into a new folder.

  The files are downloaded into a temporary folder. This folder is renamed when
  every checksum is right, and deleted after an error. If another process
  creates `folder` in the meantime, the files of that process are kept.

  Args:
    folder: the folder to create.
    address: the URL of a folder of plain files, if it ends with `/`. Otherwise
      the URL of a .tar.gz archive, which may contain the files in any folder.
    sha256: file name -> the SHA-256 of its content, in hexadecimal.

  Raises:
    OSError, http.client.HTTPException: the address cannot be read, or the
      folder cannot be written.
    EOFError, tarfile.TarError, zlib.error: the archive is damaged.
    ValueError: a download is too large or too short, a file is missing from the
      archive, or a checksum is wrong.
  """
  folder.parent.mkdir(parents=True, exist_ok=True)
  with tempfile.TemporaryDirectory(
    dir=folder.parent, prefix=f'.{folder.name}-'
  ) as temporary:
    complete = pathlib.Path(temporary) / folder.name
    complete.mkdir()
    if address.endswith('/'):
      for name in sha256:
        fetch(address + name, complete / name)
    else:
      archive = pathlib.Path(temporary) / 'archive'
      fetch(address, archive)
      _unpack(archive, complete, list(sha256))
    for name, expected in sha256.items():
      got = hashlib.sha256((complete / name).read_bytes()).hexdigest()
      if got != expected:
        raise ValueError(f'{name}: SHA-256 is {got}, expected {expected}')
    try:
      complete.rename(folder)
    except OSError:
      # Another process may have renamed its own copy first.
      if not folder.is_dir():
        raise


def fetch(address: str, path: pathlib.Path) -> None:
  """Downloads one file, with a progress bar if stderr is a terminal.

  Args:
    address: the URL.
    path: the file to write.

  Raises:
    OSError, http.client.HTTPException: the address cannot be read, or the file
      cannot be written.
    ValueError: the file has more than MAX_BYTES, or fewer bytes than announced.
  """
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
        if out.tell() > MAX_BYTES:
          raise ValueError(f'{label}: more than {MAX_BYTES:,} bytes')
    if total is not None and out.tell() != total:
      raise ValueError(f'{label}: got {out.tell():,} of {total:,} bytes')


def _unpack(
  path: pathlib.Path, folder: pathlib.Path, wanted: list[str]
) -> None:
  """Extracts files by name from any folder of an archive."""
  with tarfile.open(path, 'r:gz') as tar:
    for member in tar:
      if member.size > MAX_BYTES:
        raise ValueError(f'{member.name}: more than {MAX_BYTES:,} bytes')
      name = pathlib.PurePosixPath(member.name).name
      stream = tar.extractfile(member) if member.isfile() else None
      if name in wanted and stream:
        (folder / name).write_bytes(stream.read())
  for name in wanted:
    if not (folder / name).exists():
      raise ValueError(f'the archive has no {name}')
