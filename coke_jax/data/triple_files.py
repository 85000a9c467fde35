"""Reads triple files. `text_files` describes which lines raise an error."""

import array
import dataclasses
import pathlib

import numpy as np

from coke_jax.data import graph, text_files
from coke_jax.data import vocabulary as vocabulary_lib

TRIPLE_COLUMNS = ('head', 'relation', 'tail')


@dataclasses.dataclass(frozen=True)
class TripleFormat:
  """The format of the lines of a triple file.

  Attributes:
    columns: the order of `head`, `relation` and `tail` on a line.
    delimiter: the text between two columns. Default: a tab.
    header: whether the first line is a header, which is skipped. An empty file
      needs no header. Default: False.

  Raises:
    text_files.DataError: the columns are not head, relation and tail, or the
      delimiter is empty or contains a line end.
  """

  columns: tuple[str, ...] = TRIPLE_COLUMNS
  delimiter: str = '\t'
  header: bool = False

  def __post_init__(self) -> None:
    if sorted(self.columns) != sorted(TRIPLE_COLUMNS):
      raise text_files.DataError(
        f'columns are {self.columns}: expected head, relation and tail, in the '
        'order of the files'
      )
    if not self.delimiter or '\n' in self.delimiter or '\r' in self.delimiter:
      raise text_files.DataError(
        f'delimiter is {self.delimiter!r}: expected at least one character '
        'and no line end'
      )


def read_triples(
  path: pathlib.Path,
  entities: text_files.LabelIndex,
  relations: text_files.LabelIndex,
  layout: TripleFormat,
) -> np.ndarray:
  """Reads the triples of one file as integers.

  Args:
    path: the file.
    entities: the index of entity labels. New labels are added.
    relations: the index of relation labels. New labels are added.
    layout: the format of the lines.

  Returns:
    int32 [lines, 3]: the head, relation and tail of each line, as the integers
    of `entities` and `relations`.

  Raises:
    text_files.DataError: the file or a line cannot be read, or a line does not
      have three non-empty fields.
  """
  head, relation, tail = (layout.columns.index(c) for c in TRIPLE_COLUMNS)
  delimiter = layout.delimiter
  flat = array.array('i')
  lines = text_files.read_lines(path, progress=path.name)
  if layout.header:
    next(lines, None)  # The file of an empty split needs no header.
  for number, line in lines:
    fields = line.split(delimiter)
    if len(fields) != 3 or not all(fields):
      raise text_files.DataError(
        f'{path}:{number}: {text_files.show_line(line)}: expected 3 '
        f'non-empty fields ({", ".join(layout.columns)}), separated by '
        f'{delimiter!r}, got {text_files.count_fields(fields)}'
      )
    flat.append(entities[fields[head]])
    flat.append(relations[fields[relation]])
    flat.append(entities[fields[tail]])
  return np.array(flat, dtype=np.int32).reshape(-1, 3)


def read_graph(
  folder: pathlib.Path,
  name: str,
  layout: TripleFormat,
) -> graph.KnowledgeGraph:
  """Reads the `train`, `valid` and `test` files of a folder.

  Args:
    folder: the folder of the files, named as in `text_files.find_split`.
    name: the name of the graph in results.
    layout: the format of the lines.

  Returns:
    The graph. Ids are assigned to labels in sorted order.

  Raises:
    text_files.DataError: a file is missing or ambiguous, a line cannot be read,
      or train is empty.
  """
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  paths = {
    split: text_files.find_split(folder, split) for split in graph.SPLITS
  }
  read = {
    split: read_triples(path, entities, relations, layout)
    for split, path in paths.items()
  }
  if not len(read['train']):
    raise text_files.DataError(
      f'{paths["train"]}: contains no triple: expected at least one'
    )
  entity_labels, entity_places = vocabulary_lib.sort_labels(entities)
  relation_labels, relation_places = vocabulary_lib.sort_labels(relations)

  def to_ids(triples: np.ndarray) -> np.ndarray:  # int32 [lines, 3]
    for column, places in enumerate((entity_places, relation_places)):
      triples[:, column::2] = places[triples[:, column::2]]
    return triples

  return graph.KnowledgeGraph(
    name=name,
    vocabulary=vocabulary_lib.Vocabulary(entity_labels, relation_labels),
    **{split: to_ids(triples) for split, triples in read.items()},
  )
