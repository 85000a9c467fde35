"""Writes the files of the splits and the report of a prepared graph."""

import contextlib
import json
import os
import pathlib
from collections.abc import Iterable
from typing import Any

from coke_jax.data import atomic_files, text_files
from coke_jax.data import graph as graph_lib

REPORT = 'report.json'
FILES = {split: f'{split}.txt' for split in graph_lib.SPLITS}
_OVERWRITE = '--overwrite (in Python: overwrite=True)'


def check_folder(
  folder: pathlib.Path, sources: Iterable[Any] = (), *, overwrite: bool
) -> None:
  """Checks that the files of a prepared graph can be written to a folder.

  Args:
    folder: the folder. It need not exist.
    sources: the sources of the graph. Source files must not be replaced.
    overwrite: whether files of an earlier preparation may be replaced.

  Raises:
    text_files.DataError: `folder` is a file, a source would be replaced, or a
      report or the file of a split must not be replaced.
  """
  if folder.exists() and not folder.is_dir():
    raise text_files.DataError(f'{folder}: not a folder: expected a folder')
  written = {(folder / name).resolve() for name in (*FILES.values(), REPORT)}
  for source in sources:
    is_path = isinstance(source, str | os.PathLike)
    if is_path and pathlib.Path(source).resolve() in written:
      raise text_files.DataError(
        f'{source}: is both read and written: expected another output folder'
      )
  if (folder / REPORT).exists() and not overwrite:
    raise text_files.DataError(
      f'{folder / REPORT}: exists: expected a new folder, or {_OVERWRITE}'
    )
  for split, name in FILES.items():
    for path in text_files.split_files(folder, split):
      if path.name != name or not overwrite:
        raise text_files.DataError(
          f'{path}: exists: expected a new folder'
          + ('' if path.name != name else f', or {_OVERWRITE}')
        )


def write(
  folder: pathlib.Path,
  graph: graph_lib.KnowledgeGraph,
  report: dict[str, Any],
  *,
  overwrite: bool = False,
) -> None:
  """Writes train.txt, valid.txt, test.txt and report.json.

  All new files are written completely before the first old file is replaced. If
  the process ends while files are being replaced, train.txt is missing, so that
  the folder cannot be used by mistake.

  Args:
    folder: the folder, which is created if it does not exist.
    graph: the graph. Its labels contain no tab and no line break.
    report: the content of report.json.
    overwrite: whether files of an earlier preparation are replaced.

  Raises:
    text_files.DataError: as in `check_folder`.
    atomic_files.WriteError: a file cannot be written.
  """
  check_folder(folder, overwrite=overwrite)
  with atomic_files.writing(folder):
    folder.mkdir(parents=True, exist_ok=True)
  entities = graph.vocabulary.entities
  relations = graph.vocabulary.relations
  # The stack renames the files in reverse order, so train.txt is renamed last.
  with contextlib.ExitStack() as stack:
    for split, name in FILES.items():
      path = stack.enter_context(atomic_files.whole_file(folder / name))
      with path.open('w', encoding='utf-8', newline='\n') as file:
        file.writelines(
          f'{entities[head]}\t{relations[relation]}\t{entities[tail]}\n'
          for head, relation, tail in graph.split(split).tolist()
        )
    path = stack.enter_context(atomic_files.whole_file(folder / REPORT))
    path.write_text(to_text(report), encoding='utf-8')
    train = atomic_files.follow_links(folder / FILES['train'])
    if train.is_file():
      train.unlink()


def to_text(report: dict[str, Any]) -> str:
  """Returns a report as JSON text."""
  return json.dumps(report, indent=2) + '\n'
