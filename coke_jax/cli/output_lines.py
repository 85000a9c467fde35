"""Writes answers as lines of text, and the summary of a command."""

import contextlib
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import IO, Any

from coke_jax.cli import flags, input_lines, streams
from coke_jax.data import atomic_files, vocabulary

_DIGITS = 6  # Significant digits of scores and probabilities in TSV.

_LINE_ENDS = '\x85\u2028\u2029'  # Line ends that `json.dumps` does not escape.

# One line of TSV: a dict from the names of the columns to values. A value is a
# text, a number or a tuple of texts.
Row = Mapping[str, Any]


def write_records(
  output: str,
  format: str,
  columns: Callable[[Any], Row],
  names: Iterable[str],
  found: Iterable[tuple[Row, Any]],
  words: vocabulary.Vocabulary,
) -> int:
  """Writes records as they are found.

  TSV output has a header and one line per record. JSON output has one object
  per line with the fields of a record.

  Args:
    output: the path of a file, or `-` for standard output.
    format: `tsv` or `jsonl`.
    columns: returns the values of a record's TSV columns, by name.
    names: the names of the columns, in order.
    found: pairs of a row and a record. The row contains additional values, such
      as the number of the input line.
    words: the labels that the records may contain.

  Returns:
    The number of records.

  Raises:
    input_lines.StreamError: a label cannot be written as TSV.
    OSError: the output cannot be written.
  """
  count = 0
  if format == 'tsv':
    check_tabs((*words.entities, *words.relations))
  with writing(output) as out:
    if format == 'tsv':
      out.write('\t'.join(names) + '\n')
    for before, record in found:
      if format == 'tsv':
        row = {**before, **columns(record)}
        out.write('\t'.join(_cell(row[name]) for name in names) + '\n')
      else:
        line = {**before, **dataclasses.asdict(record)}
        out.write(json_line(line))
      count += 1
  return count


def json_line(value: Any) -> str:
  """Returns a value as a line of JSON, with its line end.

  Characters that `str.splitlines` and other readers treat as line ends are
  escaped. All other characters outside of ASCII are written as they are.
  """
  text = json.dumps(value, ensure_ascii=False, allow_nan=False)
  for char in _LINE_ENDS:
    text = text.replace(char, f'\\u{ord(char):04x}')
  return text + '\n'


def _cell(value: Any) -> str:
  if isinstance(value, float):
    return f'{value:.{_DIGITS}g}'
  if isinstance(value, tuple):
    return ' | '.join(value)
  return str(value)


def check_tabs(labels: Iterable[str]) -> None:
  """Raises StreamError if a label cannot be written as TSV."""
  for label in labels:
    if '\t' in label or '\r' in label:
      raise input_lines.StreamError(
        f'label {label!r} contains a tab or carriage return and cannot be '
        'written as TSV: expected --format=jsonl for this graph'
      )


@contextlib.contextmanager
def writing(output: str) -> Iterator[IO[str]]:
  """Opens the output for writing text.

  A regular file is replaced only if the `with` block succeeds. Output to a pipe
  or device is written directly.
  """
  with contextlib.ExitStack() as stack:
    target: int | pathlib.Path = pathlib.Path(output)
    if output == flags.STANDARD:
      input_lines.check_open(sys.stdout, 'output')
      stack.enter_context(streams.naming('standard output'))
      target = os.dup(sys.stdout.fileno())
    else:
      target = stack.enter_context(
        atomic_files.whole_file(pathlib.Path(output))
      )
    # Use UTF-8 and LF on every platform.
    yield stack.enter_context(open(target, 'w', encoding='utf-8', newline='\n'))


def report(done: list[str], skipped: int, output: str) -> None:
  """Prints a summary to standard error. Standard output is for answers.

  Args:
    done: the parts of the summary.
    skipped: the number of bad lines.
    output: the value of --output.
  """
  if skipped:
    done = [*done, f'skipped {count(skipped, "bad line")}']
  if output != flags.STANDARD:
    done = [*done, f'written to {output}']
  print('; '.join(done), file=sys.stderr)


def count(number: int, what: str) -> str:
  """Returns a number and a noun, such as `1 line` or `2,000 lines`."""
  return f'{number:,} {what}' + ('' if number == 1 else 's')
