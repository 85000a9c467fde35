"""Checksums of files; SHA256SUMS, as `sha256sum --check` reads it."""

import hashlib
import pathlib
import re

from coke_jax import errors
from coke_jax.data import atomic_files, text_files

NAME = 'SHA256SUMS'

# No folders, and no characters that the tool would have to escape.
_LINE = re.compile(r'([0-9a-f]{64})  ([^/\\\x00-\x1f]+)\n')


class ChecksumError(errors.CokeError, RuntimeError):
  """A folder that does not hold what its SHA256SUMS lists."""


def write(folder: pathlib.Path) -> None:
  """Lists all files of a folder, by name."""
  lines = [f'{_sha256(path)}  {path.name}\n' for path in _listable(folder)]
  with atomic_files.whole_file(folder / NAME) as temporary:
    temporary.write_text(''.join(lines), encoding='utf-8')


def check(folder: pathlib.Path) -> None:
  """Checks that a folder holds the files of its list, unchanged, and no other.

  Hidden files may be there: file managers and version control leave them.

  Raises:
    ChecksumError: names the first file that is missing, changed or too many.
  """
  listed = _read(folder / NAME)
  compare(folder, listed, NAME)
  for path in _listable(folder):
    if path.name not in listed:
      raise ChecksumError(f'{path}: expected only the files that {NAME} lists')


def of_tree(folder: pathlib.Path) -> dict[str, str]:
  """The SHA-256 of all files below a folder, by their path from there."""
  return {
    path.relative_to(folder).as_posix(): _sha256(path)
    for path in sorted(folder.rglob('*'))
    if path.is_file()
  }


def compare(folder: pathlib.Path, listed: dict[str, str], source: str) -> None:
  """Checks files against their checksums.

  Args:
    folder: where they are.
    listed: the SHA-256 by the path from there.
    source: what lists them, for errors.

  Raises:
    ChecksumError: names the first file that is missing or changed.
  """
  for name, expected in listed.items():
    try:
      got = _sha256(folder / name)
    except FileNotFoundError:
      raise ChecksumError(
        f'{folder}: no {name}: expected it, as {source} lists it'
      ) from None
    except OSError as error:
      raise ChecksumError(
        f'{folder / name}: cannot be read: {error}'
      ) from error
    if got != expected:
      raise ChecksumError(
        f'{folder / name}: is damaged: its SHA-256 is {got}, expected '
        f'{expected}, as {source} says'
      )


def _read(path: pathlib.Path) -> dict[str, str]:
  """The checksums by the names of the files."""
  try:
    text = path.read_bytes().decode()
  except FileNotFoundError:
    raise ChecksumError(f'{path.parent}: no {NAME}: expected one') from None
  except (OSError, ValueError) as error:
    raise ChecksumError(f'{path}: cannot be read: {error}') from error
  listed = {}
  for number, line in enumerate(text.splitlines(keepends=True), start=1):
    match = _LINE.fullmatch(line)
    if not match:
      raise ChecksumError(
        f'{path}:{number}: {text_files.show_line(line)}: expected a SHA-256, '
        'two spaces and the name of a file'
      )
    listed[match[2]] = match[1]
  return listed


def _listable(folder: pathlib.Path) -> list[pathlib.Path]:
  """All that is in a folder, by name, but the list and what is hidden."""
  return sorted(
    path
    for path in folder.iterdir()
    if path.name != NAME and not path.name.startswith('.')
  )


def _sha256(path: pathlib.Path) -> str:
  with path.open('rb') as stream:
    return hashlib.file_digest(stream, 'sha256').hexdigest()
