"""Strict reading of files of labelled triples."""

import dataclasses
import pathlib

import numpy as np

from coke_jax.data import graph, text_files
from coke_jax.data import vocabulary as vocabulary_lib

TRIPLE_COLUMNS = ('head', 'relation', 'tail')


@dataclasses.dataclass(frozen=True)
class TripleFormat:
  """How the lines of a triple file are laid out.

  Attributes:
    columns: the order of `head`, `relation`, `tail` on a line.
    delimiter: the text between two columns.
    header: whether the first line names the columns and is not a triple.
  """

  columns: tuple[str, ...] = TRIPLE_COLUMNS
  delimiter: str = '\t'
  header: bool = False

  def __post_init__(self) -> None:
    if sorted(self.columns) != sorted(TRIPLE_COLUMNS):
      raise text_files.DataError(
        f'columns are {self.columns}: expected head, relation and tail, each '
        'once, in the order of the files'
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
  """The triples of one file, as integers by first appearance of each label.

  Args:
    path: the file, see `find_split`.
    entities: grows by the entity labels met for the first time.
    relations: grows by the relation labels met for the first time.
    layout: how the lines are laid out.

  Returns:
    int32 [lines, 3]: head, relation, tail.

  Raises:
    DataError: with file, line number, line and expectation.
  """
  head, relation, tail = (layout.columns.index(c) for c in TRIPLE_COLUMNS)
  delimiter = layout.delimiter
  flat: list[int] = []
  lines = text_files.read_lines(path)
  if layout.header and next(lines, None) is None:
    raise text_files.DataError(f'{path}: empty: expected a header line')
  for number, line in lines:
    fields = line.split(delimiter)
    if len(fields) != 3 or not all(fields):
      raise text_files.DataError(
        f'{path}:{number}: {text_files.show_line(line)}: expected 3 '
        f'non-empty fields ({", ".join(layout.columns)}) between '
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
    folder: where the files are; see `text_files.find_split` for their names.
    name: what results call this graph.
    layout: how the lines are laid out.

  Returns:
    The graph, its labels sorted, so that the same files give the same ids.

  Raises:
    text_files.DataError: a file is missing, a line is wrong, or train is empty.
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
    raise text_files.DataError(f'{paths["train"]}: holds no triple to train on')
  entity_labels, entity_places = vocabulary_lib.sort_labels(entities)
  relation_labels, relation_places = vocabulary_lib.sort_labels(relations)

  def to_ids(triples: np.ndarray) -> np.ndarray:  # int32 [lines, 3]
    head, relation, tail = triples.T
    return np.stack(
      [entity_places[head], relation_places[relation], entity_places[tail]],
      axis=1,
    )

  return graph.KnowledgeGraph(
    name=name,
    vocabulary=vocabulary_lib.Vocabulary(entity_labels, relation_labels),
    **{split: to_ids(triples) for split, triples in read.items()},
  )
