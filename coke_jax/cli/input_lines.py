"""Reads questions and sequences from lines of text.

A line contains the labels of one question: `head TAB relation TAB ?` or
`? TAB relation TAB tail`. The relations of a path have one column each, or
share one column as in path files: `Mali TAB borders,currency TAB ?`. A sequence
to embed need not contain `?`. A byte-order mark at the start of the input is
ignored.
"""

import dataclasses
import os
import pathlib
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import ml_collections

from coke_jax import errors, progress_bar
from coke_jax.cli import flags
from coke_jax.data import text_files
from coke_jax.predict import questions

# Maximum number of bad lines for which similar labels are suggested. Finding
# similar labels takes time.
_MAX_HINTS = 20

# Delimiters that an error message suggests, and the flags as typed in a shell.
_HINTED = {
  '\t': r"--delimiter='\t'",
  ',': '--delimiter=,',
  ';': "--delimiter=';'",
}

Parsed = TypeVar('Parsed')


class StreamError(errors.CokeError, ValueError):
  """An input line or --delimiter is not valid, or answers cannot be written."""


@dataclasses.dataclass(frozen=True)
class LineFormat:
  """The columns of a line.

  Attributes:
    delimiter: the text between two columns.
    relation_delimiter: the text between two relations in one column. Default:
      every relation has its own column.
  """

  delimiter: str = '\t'
  relation_delimiter: str = ''

  def labels(self, line: str, known_relations: dict[str, int]) -> list[str]:
    """Splits a line into labels.

    Args:
      line: the text without its line end.
      known_relations: the relation labels of the vocabulary. These labels are
        not split, even if they contain `relation_delimiter`.

    Returns:
      The labels in order.
    """
    fields = line.split(self.delimiter)
    relations: list[str] = []
    for field in fields[1:-1]:
      if field in known_relations or not self.relation_delimiter:
        relations.append(field)
      else:
        relations += field.split(self.relation_delimiter)
    return [*fields[:1], *relations, *fields[1:][-1:]]


@dataclasses.dataclass
class Lines:
  """Lines of input, read in batches so that memory use stays constant.

  Attributes:
    path: a file, or `-` for standard input.
    line_format: the columns of a line.
    skip_bad: whether to report and skip a bad line instead of raising an error.
    read: the number of lines read so far, including bad lines.
    skipped: the number of bad lines skipped so far.
  """

  path: str
  line_format: LineFormat
  skip_bad: bool = False
  read: int = 0
  skipped: int = 0

  @property
  def name(self) -> str:
    """The name of the input in messages."""
    return '<stdin>' if self.path == flags.STANDARD else self.path

  def batches(
    self,
    parse: Callable[..., Parsed],
    known_relations: dict[str, int],
    size: int,
    progress: str,
  ) -> Iterator[list[tuple[int, list[str], Parsed]]]:
    """Yields batches of (line number, labels, parsed labels).

    If a line raises an error, the batch of the lines before it is yielded
    first.

    Args:
      parse: called as `parse(labels, hints=...)`. It raises `QuestionError` for
        labels that are not valid. The error suggests similar labels if `hints`
        is true.
      known_relations: see `LineFormat.labels`.
      size: the number of lines in a batch. If the input is a terminal, a batch
        has one line.
      progress: the label of the progress bar. If it is empty, there is no bar.

    Raises:
      StreamError: a line is not valid and `skip_bad` is false, or standard
        input is closed.
      text_files.DataError: the input cannot be read.
    """
    if self.path == flags.STANDARD and _is_terminal(sys.stdin):
      size = 1  # An interactive user expects an answer after each line.
    batch: list[tuple[int, list[str], Parsed]] = []
    failure: ValueError | None = None
    with progress_bar.create(progress, unit='line', total=self._count()) as bar:
      try:
        for number, line in self._lines():
          self.read += 1
          labels = self.line_format.labels(line, known_relations)
          try:
            parsed = parse(labels, hints=self.skipped < _MAX_HINTS)
          except questions.QuestionError as error:
            hint = self._other_delimiter(line)
            self._bad(StreamError(f'{self.name}:{number}: {error}{hint}'))
            continue
          batch.append((number, labels, parsed))
          if len(batch) == size:
            yield batch
            bar.update(self.read - bar.n)
            batch = []
      except (StreamError, text_files.DataError) as error:
        failure = error  # First yield the valid lines.
      if batch:
        yield batch
      bar.update(self.read - bar.n)
    if failure is not None:
      raise failure

  def _other_delimiter(self, line: str) -> str:
    """Returns a hint if another delimiter divides a line into three columns."""
    if self.line_format.delimiter in line:
      return ''
    for delimiter, typed in _HINTED.items():
      if line.count(delimiter) == 2:
        return f'. If {delimiter!r} separates the columns, use {typed}'
    return ''

  def _lines(self) -> Iterator[tuple[int, str]]:
    if self.path == flags.STANDARD:
      check_open(sys.stdin, 'input')
      return text_files.read_stream(
        sys.stdin.buffer, self.name, self._not_text, allow_mark=True
      )
    return text_files.read_lines(
      pathlib.Path(self.path), self._not_text, allow_mark=True
    )

  def _not_text(self, error: ValueError) -> None:
    """Counts a line that is not UTF-8 text, and passes its error to `_bad`."""
    self.read += 1
    self._bad(error)

  def _bad(self, error: ValueError) -> None:
    """Raises the error of a bad line, or reports and counts it."""
    if not self.skip_bad:
      raise error from None
    self.skipped += 1
    progress_bar.say(f'skipped {error}', sys.stderr)

  def _count(self) -> int | None:
    """Returns the number of lines for the progress bar.

    Returns None if the input is not a regular file, or if it cannot be read to
    its end. In both cases, `batches` still yields the lines that can be read.
    """
    if self.path == flags.STANDARD or not is_regular(self.path):
      return None
    # Count bad lines silently, because `batches` reports them.
    bad: list[text_files.DataError] = []
    lines = text_files.read_lines(
      pathlib.Path(self.path), bad.append, warn=False, allow_mark=True
    )
    try:
      return sum(1 for _ in lines) + len(bad)
    except text_files.DataError:
      return None


def from_config(
  config: ml_collections.ConfigDict,
  path: str,
  *,
  delimiter: str,
  skip_bad: bool,
) -> Lines:
  """Returns the lines of an input.

  Args:
    config: the settings of the model. `data.relation_delimiter` separates the
      relations of a path in one column.
    path: a file, or `-` for standard input.
    delimiter: the value of --delimiter.
    skip_bad: see `Lines`.

  Raises:
    text_files.DataError: the file does not exist.
    StreamError: the delimiter is empty or contains a line end.
  """
  column_delimiter = flags.unescape(delimiter)
  if not column_delimiter or '\n' in column_delimiter:
    raise StreamError(
      f'--delimiter is {delimiter!r}: expected at least one character and no '
      'line end'
    )
  if path != flags.STANDARD and not os.path.exists(path):
    raise text_files.DataError(f'--input={path}: expected an existing file')
  data = config.data
  relation_delimiter = '' if data.kind == 'triples' else data.relation_delimiter
  if (
    column_delimiter in relation_delimiter
    or relation_delimiter in column_delimiter
  ):
    # With such delimiters, a column cannot contain several relations.
    relation_delimiter = ''
  return Lines(path, LineFormat(column_delimiter, relation_delimiter), skip_bad)


def check_open(stream: Any, name: str) -> None:
  """Raises StreamError if standard input or standard output is closed.

  Args:
    stream: `sys.stdin` or `sys.stdout`.
    name: `input` or `output`.
  """
  if stream is None:
    raise StreamError(f'standard {name} is closed: expected --{name}=<file>')


def _is_terminal(stream: Any) -> bool:
  return stream is not None and bool(stream.buffer.isatty())


def is_regular(path: str) -> bool:
  """Returns whether a path is an existing file, not a device or a pipe."""
  try:
    return stat.S_ISREG(os.stat(path).st_mode)
  except OSError:
    return False
