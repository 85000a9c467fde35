"""Computes SHA-256 checksums; writes and checks SHA256SUMS files.

The command `sha256sum -c SHA256SUMS` can check the listed files, too.
"""

import hashlib
import json
import pathlib
import re
from typing import Any

import jax
import numpy as np

from coke_jax import errors
from coke_jax.data import atomic_files, text_files

NAME = 'SHA256SUMS'

# Accepts only file names without a folder and without characters that sha256sum
# would escape.
_LINE = re.compile(r'([0-9a-f]{64})  ([^/\\\x00-\x1f]+)\n')


class ChecksumError(errors.CokeError, RuntimeError):
  """A file is missing, changed or not listed in SHA256SUMS."""


def write(folder: pathlib.Path) -> None:
  """Writes the SHA256SUMS file of a folder, sorted by file name.

  Hidden files are not listed.
  """
  lines = [f'{of_file(path)}  {path.name}\n' for path in _listable(folder)]
  with atomic_files.whole_file(folder / NAME) as temporary:
    temporary.write_text(''.join(lines), encoding='utf-8')


def check(folder: pathlib.Path) -> None:
  """Checks that a folder contains exactly the files of its SHA256SUMS.

  Hidden files are ignored, since file managers and version control create them.

  Raises:
    ChecksumError: a file is missing, changed or not listed. The message names
      the first such file.
  """
  listed = _read(folder / NAME)
  compare(folder, listed, NAME)
  for path in _listable(folder):
    if path.name not in listed:
      raise ChecksumError(
        f'{path}: not listed in {NAME}: expected only listed files'
      )


def of_json(value: Any) -> str:
  """Returns the SHA-256 of a JSON value, independent of the order of keys."""
  return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def of_arrays(tree: Any, metadata: dict[str, Any] | None = None) -> str:
  """Returns one SHA-256 of a tree of arrays and a JSON object.

  Args:
    tree: the arrays. Their names, dtypes, shapes and bytes are included.
    metadata: the JSON object. The order of its keys has no effect. Default:
      an empty object.
  """
  sha = hashlib.sha256(json.dumps(metadata or {}, sort_keys=True).encode())
  for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
    array = np.ascontiguousarray(leaf)
    name = jax.tree_util.keystr(path)
    sha.update(f'{name} {array.dtype} {array.shape}\n'.encode())
    sha.update(array.tobytes())
  return sha.hexdigest()


def of_file(path: pathlib.Path) -> str:
  """Returns the SHA-256 of a file's content."""
  with path.open('rb') as stream:
    return hashlib.file_digest(stream, 'sha256').hexdigest()


def of_tree(folder: pathlib.Path) -> dict[str, str]:
  """Returns the SHA-256 of each file below a folder, by relative path."""
  return {
    path.relative_to(folder).as_posix(): of_file(path)
    for path in sorted(folder.rglob('*'))
    if path.is_file()
  }


def compare(folder: pathlib.Path, listed: dict[str, str], source: str) -> None:
  """Checks files against their checksums.

  Args:
    folder: the folder that contains the files.
    listed: the expected SHA-256 of each file, by relative path.
    source: where the checksums are listed, for error messages.

  Raises:
    ChecksumError: a file is missing or changed. The message names the first
      such file.
  """
  for name, expected in listed.items():
    try:
      got = of_file(folder / name)
    except FileNotFoundError:
      raise ChecksumError(
        f'{folder}: no {name}: expected all files listed in {source}'
      ) from None
    except OSError as error:
      raise ChecksumError(
        f'{folder / name}: cannot be read: {error}'
      ) from error
    if got != expected:
      raise ChecksumError(
        f'{folder / name}: is damaged: its SHA-256 is {got}, expected '
        f'{expected}, as in {source}'
      )


def _read(path: pathlib.Path) -> dict[str, str]:
  """Reads a SHA256SUMS file. Returns the checksums by file name."""
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
  """Returns all visible files except SHA256SUMS, sorted by name."""
  return sorted(
    path
    for path in folder.iterdir()
    if path.name != NAME and not path.name.startswith('.')
  )
