"""Finds the files of a data set, and detects whether they have changed.

A work folder contains a copy of the data with which its run was started, and
the SHA-256 of each original file. When the run is continued, the SHA-256 shows
whether an original file has changed.
"""

import hashlib
import pathlib
from collections.abc import Mapping

from coke_jax.data import benchmarks, compression, deduction, graph, text_files


def find(folder: pathlib.Path, *, paths: bool) -> dict[str, pathlib.Path]:
  """Finds the files of a data set by their roles.

  Args:
    folder: the folder of the files.
    paths: whether the files contain paths. If so, files of deduction and
      induction paths also belong to the data set.

  Returns:
    A dict from role to file. The roles are the splits and, for path files,
    names such as `valid deduction`.

  Raises:
    text_files.DataError: a file is missing or ambiguous.
  """
  found = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  parts = {}
  if paths:
    for split, pair in deduction.find_files(found).items():
      parts[f'{split} deduction'], parts[f'{split} induction'] = pair
  return {**found, **parts}


def digests(files: Mapping[str, pathlib.Path]) -> dict[str, str]:
  """Returns the SHA-256 of the decompressed content of each file by role.

  Raises:
    text_files.DataError: a file cannot be read.
  """
  computed = {}
  for role, path in files.items():
    try:
      with compression.open_file(path) as stream:
        computed[role] = hashlib.file_digest(stream, 'sha256').hexdigest()  # type: ignore[arg-type]
    except compression.ERRORS as error:
      raise text_files.DataError(f'{path}: cannot be read: {error}') from error
  return computed


def changes(
  name: str, folder: str | None, *, paths: bool, expected: Mapping[str, str]
) -> list[str]:
  """Describes the files of a data set that have changed.

  Nothing is downloaded.

  Args:
    name: as in `benchmarks.locate`.
    folder: as in `benchmarks.locate`.
    paths: as in `find`.
    expected: the SHA-256 of each file by role, see `digests`.

  Returns:
    One line for each changed file: its path, its SHA-256 and the expected
    SHA-256. The list is empty if the files are missing or unreadable.
  """
  try:
    located = benchmarks.locate(name, folder, download=False)
    files = find(located, paths=paths)
    found = digests(files)
  except text_files.DataError:
    return []
  return [
    f'{files[role]}: has changed: its SHA-256 is {found[role]}, expected '
    f'{expected[role]}'
    for role in files
    if role in expected and found[role] != expected[role]
  ]
