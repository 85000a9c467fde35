"""Tests that mutated questions are read exactly, or refused with an error.

    python tests/robustness/mutate_questions.py --inputs=40000

Mutates questions for `coke predict`. The questions come from standard input and
from files in all compressions, with several delimiters. Both values of
--on-bad-line are used. A short strict parser, which shares no code with the
package, reads the same questions. The parser and the package must accept the
same lines, with the same labels, and refuse the same lines.
"""

import contextlib
import io
import pathlib
import random
import re
import sys
from unittest import mock

import mutations

from coke_jax import errors
from coke_jax.cli import input_lines
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import parser as parser_lib

_MAX_PATH_LENGTH = 3
# Some entities and relations share a label. Some labels contain delimiters.
_ENTITIES = (*mutations.LABELS, 'r,s', 'a b', 'x;y', 'x')
_RELATIONS = (*mutations.LABELS[::2], 'r,s', 'r', 's', 'x;y', 'b ||| c')
_LONGEST_MESSAGE = 3000
_DELIMITERS = ('\t', '\t', ',', ' ', ';', ' ||| ')

# Maps the number of each accepted line to the line's labels.
Lines = dict[int, tuple[str, ...]]


def parse(
  raw: bytes, delimiter: str, relation_delimiter: str, relations: set[str]
) -> tuple[Lines, list[int]]:
  """Parses questions by the rules of the documentation.

  Args:
    raw: the content of the input.
    delimiter: the text between two columns.
    relation_delimiter: the text between two relations in a column, or ''.
    relations: the labels of the relations that the model knows.

  Returns:
    The accepted lines, and the numbers of the refused lines.
  """
  accepted: Lines = {}
  refused = []
  for number, text, _ in mutations.strict_lines(raw, allow_mark=True):
    labels: list[str] = []
    fields = [] if text is None else text.split(delimiter)
    for column, field in enumerate(fields):
      inner = 0 < column < len(fields) - 1
      if inner and relation_delimiter and field not in relations:
        labels += field.split(relation_delimiter)
      else:
        labels.append(field)
    ends = [label for label in (labels[:1] + labels[-1:]) if label != '?']
    if (
      3 <= len(labels) <= _MAX_PATH_LENGTH + 2
      and len(ends) == 1
      and ends[0] in _ENTITIES
      and relations.issuperset(labels[1:-1])
    ):
      accepted[number] = tuple(labels)
    else:
      refused.append(number)
  return accepted, refused


def well_formed(
  delimiter: str,
  relation_delimiter: str,
  relations: list[str],
  generator: random.Random,
) -> bytes:
  """Returns questions. They are valid if no label contains a delimiter."""
  between = relation_delimiter or delimiter
  lines = []
  for _ in range(generator.randrange(7)):
    count = generator.randint(1, _MAX_PATH_LENGTH)
    path = between.join(generator.choices(relations, k=count))
    ends = ['?', generator.choice(_ENTITIES)]
    generator.shuffle(ends)
    lines.append(delimiter.join([ends[0], path, ends[1]]))
  end = generator.choice(['\n', '\r\n'])
  text = end.join(lines) + (end if generator.random() < 0.8 else '')
  return text.encode()


def read(
  lines: input_lines.Lines, parser: parser_lib.Parser, raw: bytes
) -> tuple[Lines, list[str]]:
  """Reads the questions with the package.

  Returns:
    The accepted lines, and the messages about the refused lines.
  """
  words = parser.vocabulary
  accepted: Lines = {}
  said = io.StringIO()
  messages = []
  with (
    contextlib.redirect_stderr(said),
    mock.patch.object(sys, 'stdin', io.TextIOWrapper(io.BytesIO(raw))),
  ):
    try:
      for batch in lines.batches(
        parser.question, words.relation_ids, size=3, progress=''
      ):
        for number, labels, question in batch:
          known = words.entities[question.entity]
          ends = ['?', known] if question.side == 'head' else [known, '?']
          path = [words.relations[index] for index in question.relations]
          accepted[number] = (ends[0], *path, ends[1])
          assert tuple(labels) == accepted[number]
    except errors.CokeError as error:
      messages.append(str(error))
  skipped = re.findall(
    f'^skipped ({re.escape(lines.name)}:.*)', said.getvalue(), re.M
  )
  return accepted, skipped + messages


def trial(folder: pathlib.Path, generator: random.Random) -> tuple[str, str]:
  """Reads one mutated input.

  Returns:
    The outcome, such as `questions`. Then what is wrong, or an empty text.
  """
  relations = list(_RELATIONS) + ['?'] * (generator.random() < 0.2)
  delimiter = generator.choice(_DELIMITERS)
  relation_delimiter = generator.choice(['', ',', '/'])
  if relation_delimiter == delimiter:
    relation_delimiter = ''
  raw = mutations.mutate(
    well_formed(delimiter, relation_delimiter, relations, generator), generator
  )
  path, readable = '-', True
  if generator.random() < 0.7:
    suffix = generator.choice(['', '', *sorted(mutations.COMPRESSORS)])
    file = folder / f'questions{suffix}'
    stored = mutations.COMPRESSORS[suffix](raw) if suffix else raw
    if suffix and generator.random() < 0.3:
      # If the mutated archive is damaged, the package must report the damage,
      # or a wrong line before the damage.
      stored = mutations.mutate(stored, generator)
      try:
        raw = mutations.DECOMPRESSORS[suffix](stored)
      except Exception:
        readable = False
    file.write_bytes(stored)
    path = str(file)
  skip_bad = generator.random() < 0.5
  lines = input_lines.Lines(
    path,
    input_lines.LineFormat(delimiter, relation_delimiter),
    skip_bad=skip_bad,
  )
  parser = parser_lib.Parser(
    vocabulary_lib.Vocabulary(_ENTITIES, tuple(relations)), _MAX_PATH_LENGTH
  )
  got, messages = read(lines, parser, raw)
  if messages and path.endswith(tuple(mutations.COMPRESSORS)):
    damage = re.fullmatch(
      re.escape(path) + r': cannot be read after line \d+: .+', messages[-1]
    )
    if damage:
      return 'a damaged archive', ''
  if not readable:  # The message must be about a line before the damage.
    return 'a damaged archive', '' if messages else 'no error'
  accepted, refused = parse(raw, delimiter, relation_delimiter, set(relations))
  if not skip_bad and refused:
    accepted = {n: row for n, row in accepted.items() if n < refused[0]}
    refused = refused[:1]
  if got != accepted:
    return 'questions', f'labels are {got}: expected {accepted} from {raw!r}'
  named = [
    int(found[1])
    for message in messages
    if (found := re.match(re.escape(lines.name) + r':(\d+): ', message))
  ]
  if named != refused or len(messages) != len(refused):
    return 'errors', f'{messages}: expected errors of the lines {refused}'
  if any(len(message) > _LONGEST_MESSAGE for message in messages):
    return 'errors', f'a message of more than {_LONGEST_MESSAGE} characters'
  if not refused:
    return 'questions', ''
  return 'errors and questions' if accepted else 'errors', ''


if __name__ == '__main__':
  sys.exit(mutations.run(trial, __doc__))
