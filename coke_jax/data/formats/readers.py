"""Chooses the reader of a file or of data in memory."""

import os
import pathlib
from typing import Any

from coke_jax.data import compression, text_files
from coke_jax.data.formats import (
  delimited,
  in_memory,
  json_lines,
  openke,
  parquet,
  rdf,
)
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import rows as rows_lib

EXTENSIONS = {
  '.csv': 'csv',
  '.tsv': 'tsv',
  '.txt': 'tsv',
  '.jsonl': 'jsonl',
  '.ndjson': 'jsonl',
  '.parquet': 'parquet',
  **dict.fromkeys(rdf.SYNTAXES, 'rdf'),
}
# An error message lists at most this many files.
_SHOWN_FILES = 5
# Maps each extension that cannot be read to the advice in the error message.
_REMEDIES = {
  '.json': 'if each line is one JSON object or array, use coke prepare with '
  "--input-format=jsonl (in Python: format='jsonl'). `jq -c '.[]' FILE.json` "
  'converts an array to such lines',
  **dict.fromkeys(
    ('.pt', '.pth', '.npy', '.npz', '.pkl', '.pickle', '.mat', '.h5'),
    'load the triples in Python, and pass an array to coke_jax.prepare',
  ),
  **dict.fromkeys(
    ('.xlsx', '.xls', '.ods', '.feather', '.dta', '.sqlite', '.db'),
    'load the table with pandas, and pass the data frame to coke_jax.prepare',
  ),
  **dict.fromkeys(
    ('.zip', '.tar', '.tgz', '.7z', '.rar'),
    'extract the files first',
  ),
  '.zst': 'decompress it, as in `zstd -dc FILE.tsv.zst | coke prepare '
  '--input=- --input-format=tsv`',
  **dict.fromkeys(
    ('.graphml', '.gml', '.gexf'),
    'load the graph with networkx, and pass the edges to coke_jax.prepare',
  ),
  **dict.fromkeys(
    ('.jsonld', '.n3', '.hdt', '.ttls'),
    'convert it to N-Triples (.nt)',
  ),
}
_SPLIT_STEMS = {
  'train': ('train',),
  'valid': ('valid', 'dev', 'validation'),
  'test': ('test',),
}


def open_source(data: Any, options: options_lib.Options) -> rows_lib.Source:
  """Opens a file or data in memory.

  Args:
    data: the path of a file, a data frame, an array or an iterable of triples.
      See `in_memory.read`.
    options: the options.

  Raises:
    text_files.DataError: the format is unknown, or the reader of the format
      raises an error.
  """
  if not isinstance(data, str | os.PathLike):
    return in_memory.read(data, options)
  path = pathlib.Path(data)
  if not (path.is_file() or path.is_fifo()):
    kind = 'a folder' if path.is_dir() else 'no such file'
    raise text_files.DataError(f'{path}: {kind}: expected a file of triples')
  format = options.format or _format(path)
  if format == 'parquet':
    return parquet.read(path, options)
  if format == 'jsonl':
    return json_lines.read(path, options)
  if format == 'openke':
    return openke.read(path, options)
  if format == 'rdf':
    extension = _extension(path)
    syntax = extension if extension in rdf.SYNTAXES else '.nt'
    return rdf.read(path, syntax, options)
  return delimited.read(path, format, options)


def is_delimited(data: Any, format: str = '') -> bool:
  """Returns whether data are a CSV or TSV file.

  Args:
    data: as for `open_source`.
    format: the format of a file. Default: chosen by the file name.

  Raises:
    text_files.DataError: the format is unknown.
  """
  if not isinstance(data, str | os.PathLike):
    return False
  return (format or _format(pathlib.Path(data))) in delimited.DELIMITERS


def find_splits(
  folder: pathlib.Path, options: options_lib.Options
) -> dict[str, pathlib.Path]:
  """Finds the file of each split in a folder.

  Args:
    folder: the folder. Its files are called `train`, `valid` (or `dev` or
      `validation`) and `test`, followed by the extension of a format. A folder
      with the files of OpenKE is valid, too.
    options: the options. If `format` is set, any extension is valid.

  Returns:
    A dict from the name of a split to its file. `valid` and `test` may be
    missing.

  Raises:
    text_files.DataError: there is no file of train, or more than one file of a
      split.
  """
  if openke.is_openke(folder):
    files = {split: folder / f'{split}2id.txt' for split in _SPLIT_STEMS}
    return {split: path for split, path in files.items() if path.is_file()}
  found: dict[str, pathlib.Path] = {}
  for path in sorted(folder.iterdir()):
    stem = path.name.partition('.')[0]
    for split, stems in _SPLIT_STEMS.items():
      usable = options.format or _extension(path) in EXTENSIONS
      if stem in stems and usable and path.is_file():
        if split in found:
          raise text_files.DataError(
            f'{folder}: more than one file of {split}: {found[split].name} and '
            f'{path.name}: expected one'
          )
        found[split] = path
  if 'train' not in found:
    names = [path.name for path in sorted(folder.iterdir())]
    more = ', ...' if len(names) > _SHOWN_FILES else ''
    raise text_files.DataError(
      f'{folder}: no file of train: expected a file such as train.csv or '
      'train.txt in this folder. To read a single file, pass its path instead '
      'of the folder. The folder contains '
      f'{", ".join(names[:_SHOWN_FILES]) or "no files"}{more}'
    )
  return {split: found[split] for split in _SPLIT_STEMS if split in found}


def _extension(path: pathlib.Path) -> str:
  """Returns the extension of a file name, before any compression suffix."""
  suffixes = path.suffixes
  if suffixes and suffixes[-1] in compression.SUFFIXES:
    suffixes = suffixes[:-1]
  return suffixes[-1].lower() if suffixes else ''


def _format(path: pathlib.Path) -> str:
  """Derives the format of a file from its name."""
  if path.name.endswith('2id.txt') and openke.is_openke(path.parent):
    return 'openke'
  extension = _extension(path)
  if extension in _REMEDIES:
    raise text_files.DataError(
      f'{path}: files of {extension} cannot be read: {_REMEDIES[extension]}'
    )
  if extension not in EXTENSIONS:
    raise text_files.DataError(
      f'{path}: the format of {extension or "a file without extension"} is '
      f'unknown: expected one of {", ".join(EXTENSIONS)}. To state the format, '
      'use for example coke prepare with --input-format=tsv (in Python: '
      "format='tsv')"
    )
  return EXTENSIONS[extension]
