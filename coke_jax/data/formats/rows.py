"""Converts rows of any format to integer triples.

A reader returns a `Source`, which yields rows. `collect` checks the labels and
weights of these rows, and converts labels to integers. For a row that cannot be
read, `RowLog` raises an error or counts the row and the reason.
"""

import array
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coke_jax import progress_bar
from coke_jax.data import text_files
from coke_jax.data.formats import columns as columns_lib
from coke_jax.data.formats import options as options_lib
from coke_jax.data.formats import values as values_lib


@dataclasses.dataclass
class RowLog:
  """Counts the rows of one source, and the rows that were left out.

  Attributes:
    name: the name of the source in messages, such as the path of a file.
    skip: whether a row that cannot be read is left out. Otherwise, such a row
      raises an error.
    unit: the text between the name and the number of a row. Default: a colon,
      for the lines of a file.
    rows: number of rows read, including those left out.
    left_out: a dict from a reason to the number of rows left out for it.
    examples: a dict from a reason to the place of the first of these rows.
    ignored_columns: the names of the columns that were not read.
    assumed_columns: see `columns.Selection.assumed`.
    header: the fields of the first line, if they are the names of the columns.
      Otherwise empty.
    may_have_header: whether the first row was read as a triple, but may contain
      the names of the columns.
    unquoted: whether quotes around fields were kept as part of the labels.
    windows_ends: number of rows of csv, tsv and openke that end with CR LF.
    unix_ends: number of rows of csv, tsv and openke that end with LF only.
  """

  name: str
  skip: bool = False
  unit: str = ':'
  rows: int = 0
  left_out: dict[str, int] = dataclasses.field(default_factory=dict)
  examples: dict[str, str] = dataclasses.field(default_factory=dict)
  ignored_columns: tuple[str, ...] = ()
  assumed_columns: tuple[str, ...] = ()
  header: tuple[str, ...] = ()
  may_have_header: bool = False
  unquoted: bool = False
  windows_ends: int = 0
  unix_ends: int = 0

  def place(self, number: int) -> str:
    """Returns the place of a row for messages, such as `graph.csv:12`."""
    return f'{self.name}{self.unit}{number}'

  def set_columns(self, selection: columns_lib.Selection) -> None:
    """Records which columns are read."""
    self.ignored_columns = selection.ignored
    self.assumed_columns = selection.assumed

  def count_line_end(self, line: str) -> None:
    """Counts the line end of a row."""
    if line.endswith('\r\n'):
      self.windows_ends += 1
    elif line.endswith('\n'):
      self.unix_ends += 1

  def leave_out(self, number: int, reason: str, count: int = 1) -> None:
    """Counts rows that are left out.

    Args:
      number: the number of the first of these rows.
      reason: the reason. Rows with the same reason are counted together.
      count: number of rows. Default: 1.
    """
    self.left_out[reason] = self.left_out.get(reason, 0) + count
    self.examples.setdefault(reason, self.place(number))

  def __str__(self) -> str:
    """Returns the counts of rows, and the reasons for leaving rows out."""
    left = sum(self.left_out.values())
    lines = [f'{self.name}: {self.rows:,} rows, {left:,} left out']
    lines += [
      f'  {count:,} left out: {reason} (first: {self.examples[reason]})'
      for reason, count in self.left_out.items()
    ]
    if self.header:
      lines.append(f'  first line, read as names: {", ".join(self.header)}')
    if self.ignored_columns:
      lines.append(f'  columns not read: {", ".join(self.ignored_columns)}')
    return '\n'.join(lines)

  def bad(self, number: int, value: Any, reason: str, detail: str) -> None:
    """Raises an error for a row that cannot be read, or counts it.

    Args:
      number: the number of the row.
      value: the line or value for the error message.
      reason: the kind of problem.
      detail: the problem and the expectation for the error message.

    Raises:
      text_files.DataError: `skip` is false.
    """
    if not self.skip:
      raise text_files.DataError(
        f'{self.place(number)}: {values_lib.show(value)}: {detail}'
      )
    self.leave_out(number, reason)


@dataclasses.dataclass(frozen=True)
class Source:
  """Rows of any format, and the log of the rows that were left out.

  Attributes:
    rows: yields the number and the values of each row. The values are head,
      relation and tail, and maybe a weight. Values can have any type.
    log: the log, which is filled while `rows` is iterated over.
  """

  rows: Iterable[tuple[int, Sequence[Any]]]
  log: RowLog


def collect(
  source: Source,
  entities: text_files.LabelIndex,
  relations: text_files.LabelIndex,
  options: options_lib.Options,
  progress: str = '',
) -> tuple[np.ndarray, np.ndarray]:
  """Reads all rows of a source, and converts labels to integers.

  A label is a text or an integer. A row with a missing value (None, NaN, empty
  text) or a value of another type raises an error or is left out.

  Args:
    source: the rows.
    entities: the index of entity labels. New labels are added.
    relations: the index of relation labels. New labels are added.
    options: the options.
    progress: the label of a progress bar, which is shown after a second.
      Default: no bar.

  Returns:
    int32 [N, 3]: head, relation and tail of each row that was not left out.
    int64 [N]: the numbers of these rows.

  Raises:
    text_files.DataError: a row cannot be read exactly and `on_bad_line` is
      'stop'.
  """
  log = source.log
  # The ids of labels that were already checked.
  entity_ids: dict[Any, int] = {}
  relation_ids: dict[Any, int] = {}
  flat, numbers = array.array('i'), array.array('q')
  for number, row in progress_bar.create(
    progress, iterable=source.rows, unit=' rows', unit_scale=True, delay=1
  ):
    log.rows += 1
    try:
      if options.weight and values_lib.to_weight(row[3]) < options.min_weight:
        log.leave_out(number, f'weight below {options.min_weight:g}')
        continue
      try:
        triple = entity_ids[row[0]], relation_ids[row[1]], entity_ids[row[2]]
      except (KeyError, TypeError):
        # A label is new, or a value is not a text.
        labels = [
          values_lib.to_label(value, options.escape_labels) for value in row[:3]
        ]
        ids = [
          index[label]
          for index, label in zip(
            (entities, relations, entities), labels, strict=True
          )
        ]
        for known, value, new in zip(
          (entity_ids, relation_ids, entity_ids), row[:3], ids, strict=True
        ):
          if isinstance(value, str):
            known[value] = new
        triple = ids[0], ids[1], ids[2]
    except values_lib.BadValueError as error:
      log.bad(number, tuple(row), error.reason, error.detail)
      continue
    flat.extend(triple)
    numbers.append(number)
  triples = np.array(flat, dtype=np.int32).reshape(-1, 3)
  return triples, np.array(numbers, dtype=np.int64)
