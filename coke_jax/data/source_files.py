"""Finds the files of a data set, and detects whether they have changed.

A work folder contains a copy of the data with which its run was started, and
the SHA-256 of each original file. When the run is continued, the SHA-256 shows
whether an original file has changed.
"""

import dataclasses
import hashlib
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from coke_jax.data import benchmarks, compression, deduction, graph, text_files

# The name of an array in `Sources.to_arrays` consists of one of these prefixes
# and the role of a file. The role is, for example, the split: 'source train'.
_DIGEST = 'source '
_PATH = 'path of source '


@dataclasses.dataclass(frozen=True)
class Sources:
  """The files from which the data of a run were read.

  Attributes:
    digests: the SHA-256 of the decompressed content of each file, by role. It
      is empty if the data were not read from files.
    paths: the absolute path of each file, by role. It is empty if
      `config.data.dir` or `config.data.name` determines the folder.
  """

  digests: Mapping[str, str] = dataclasses.field(default_factory=dict)
  paths: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def to_arrays(self) -> dict[str, np.ndarray]:
    """Returns each SHA-256, uint8 [32], and each path, uint8 [bytes]."""
    saved = {
      _DIGEST + role: bytes.fromhex(sha256)
      for role, sha256 in self.digests.items()
    }
    saved |= {_PATH + role: os.fsencode(p) for role, p in self.paths.items()}
    return {
      name: np.frombuffer(content, dtype=np.uint8)
      for name, content in saved.items()
    }


def from_arrays(arrays: Mapping[str, np.ndarray]) -> Sources:
  """Restores the sources from the arrays of `Sources.to_arrays`.

  Args:
    arrays: the arrays by name. Other names are ignored.
  """

  def contents(prefix: str) -> dict[str, bytes]:
    return {
      name.removeprefix(prefix): array.tobytes()
      for name, array in arrays.items()
      if name.startswith(prefix)
    }

  return Sources(
    {role: digest.hex() for role, digest in contents(_DIGEST).items()},
    {role: os.fsdecode(path) for role, path in contents(_PATH).items()},
  )


def of_files(files: Mapping[str, pathlib.Path]) -> Sources:
  """Returns the SHA-256 and the absolute path of each file by role.

  Raises:
    text_files.DataError: a file cannot be read.
  """
  paths = {role: os.path.abspath(path) for role, path in files.items()}
  return Sources(digests(files), paths)


def of_parts(parts: Mapping[str, Any]) -> dict[str, pathlib.Path]:
  """Returns the files of a graph by role.

  Args:
    parts: the file or the data in memory of each split, as for `reading.read`.

  Returns:
    A dict from role to file. The roles are the splits and, for OpenKE, `entity
    labels` and `relation labels`. The dict is empty if a part is in memory, a
    pipe or a device.
  """
  files: dict[str, pathlib.Path] = {}
  for split, data in parts.items():
    if not isinstance(data, str | os.PathLike):
      return {}
    path = pathlib.Path(data)
    if not path.is_file() or os.path.abspath(path).startswith('/dev/'):
      return {}
    files[split] = path
    for role in ('entity', 'relation'):
      labels = path.with_name(f'{role}2id.txt')
      if path.name.endswith('2id.txt') and labels.is_file():
        files[f'{role} labels'] = labels
  return files


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
    return compare(find(located, paths=paths), Sources(expected))
  except text_files.DataError:
    return []


def changes_of_paths(sources: Sources) -> list[str]:
  """Does the same as `changes` for the files in `sources.paths`."""
  files = {role: pathlib.Path(path) for role, path in sources.paths.items()}
  try:
    return compare(files, sources)
  except text_files.DataError:
    return []


def compare(files: Mapping[str, pathlib.Path], sources: Sources) -> list[str]:
  """Describes the files that differ from those of a run.

  Args:
    files: each file by role.
    sources: the files of the run.

  Returns:
    One line for each file with another SHA-256: its path, its SHA-256 and the
    expected SHA-256.

  Raises:
    text_files.DataError: a file cannot be read.
  """
  found = digests(files)
  lines = []
  for role, path in files.items():
    expected = sources.digests.get(role, found[role])
    if found[role] == expected:
      continue
    old = sources.paths.get(role, '')
    if old in ('', os.path.abspath(path)):
      lines.append(
        f'{path}: has changed: its SHA-256 is {found[role]}, expected '
        f'{expected}'
      )
    else:
      lines.append(
        f'{path}: its SHA-256 is {found[role]}, expected {expected}, the '
        f'SHA-256 of {old}'
      )
  return lines
