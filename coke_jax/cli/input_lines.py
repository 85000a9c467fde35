"""Lines of input that hold the labels of questions or sequences."""

import dataclasses
import os
import pathlib
import stat
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import tqdm

from coke_jax import errors
from coke_jax.cli import flags
from coke_jax.data import text_files
from coke_jax.predict import questions

_MOST_HINTS = 20  # bad lines whose unknown labels are looked up at length

Parsed = TypeVar('Parsed')


class StreamError(errors.CokeError, ValueError):
  """A line that cannot be asked, or answers that cannot be written."""


@dataclasses.dataclass(frozen=True)
class LineFormat:
  """How the labels of a question lie on a line.

  Attributes:
    delimiter: the text between two columns.
    relation_delimiter: the text between the relations of a path in one column;
      empty: each relation has its own.
  """

  delimiter: str = '\t'
  relation_delimiter: str = ''

  def labels(self, line: str, known_relations: dict[str, int]) -> list[str]:
    """The labels of a line."""
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
  """Lines of input on their way, and how many could not be used.

  Attributes:
    path: the file, or `-` for standard input.
    layout: how labels lie on a line.
    skip_bad: whether a bad line is reported and left out, not an error.
    read: lines of text read so far.
    skipped: bad lines so far.
  """

  path: str
  layout: LineFormat
  skip_bad: bool = False
  read: int = 0
  skipped: int = 0

  @property
  def name(self) -> str:
    """What messages call the input."""
    return '<stdin>' if self.path == flags.STANDARD else self.path

  def batches(
    self,
    parse: Callable[..., Parsed],
    known_relations: dict[str, int],
    size: int,
    progress: str,
  ) -> Iterator[list[tuple[int, list[str], Parsed]]]:
    """Yields batches of (line number, labels, what `parse` makes of them).

    Raises:
      StreamError: a bad line, unless these are skipped.
      text_files.DataError: the input cannot be read.
    """
    if self.path == flags.STANDARD and _is_terminal(sys.stdin):
      size = 1  # somebody waits for the answer
    batch: list[tuple[int, list[str], Parsed]] = []
    failure: ValueError | None = None
    with tqdm.tqdm(desc=progress, unit='line', total=self._count()) as bar:
      try:
        for number, line in self._lines():
          self.read += 1
          labels = self.layout.labels(line, known_relations)
          try:
            parsed = parse(labels, hints=self.skipped < _MOST_HINTS)
          except questions.QuestionError as error:
            self._bad(StreamError(f'{self.name}:{number}: {error}'))
            continue
          batch.append((number, labels, parsed))
          if len(batch) == size:
            yield batch
            bar.update(self.read - bar.n)
            batch = []
      except (StreamError, text_files.DataError) as error:
        failure = error  # for after the answers of the lines before it
      if batch:
        yield batch
      bar.update(self.read - bar.n)
    if failure is not None:
      raise failure

  def _lines(self) -> Iterator[tuple[int, str]]:
    if self.path == flags.STANDARD:
      check_open(sys.stdin, 'input')
      return text_files.read_stream(sys.stdin.buffer, self.name, self._bad)
    return text_files.read_lines(pathlib.Path(self.path), self._bad)

  def _bad(self, error: ValueError) -> None:
    """Raises the error of a bad line, or reports it."""
    if not self.skip_bad:
      raise error from None
    self.skipped += 1
    tqdm.tqdm.write(f'skipped {error}', file=sys.stderr)

  def _count(self) -> int | None:
    """How many lines there are, for the progress bar; None if only once."""
    if self.path == flags.STANDARD or not is_regular(self.path):
      return None
    ignored: list[text_files.DataError] = []  # met again when the line is asked
    return sum(
      1 for _ in text_files.read_lines(pathlib.Path(self.path), ignored.append)
    )


def check_open(stream: Any, name: str) -> None:
  """Raises StreamError if standard input or output was closed."""
  if stream is None:
    raise StreamError(f'standard {name} is closed: expected --{name}=<file>')


def _is_terminal(stream: Any) -> bool:
  return stream is not None and bool(stream.buffer.isatty())


def is_regular(path: str) -> bool:
  """Whether a path is a file that is there, and no device or pipe."""
  try:
    return stat.S_ISREG(os.stat(path).st_mode)
  except OSError:
    return False
