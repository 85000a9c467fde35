"""Any number of questions or sequences, from lines to lines.

What a line of input holds: the labels of a question, `head TAB relation TAB ?`
or `? TAB relation TAB tail`, with more relations in between for a path, either
in columns of their own or in one as the path files have them
(`Mali TAB borders,currency TAB ?`). Sequences to embed may also have no `?`.

Lines are read, asked and written in batches, so that memory does not grow with
their number.
"""

import contextlib
import dataclasses
import json
import os
import pathlib
import sys
from collections.abc import Iterable, Iterator
from typing import IO, Any

from coke_jax.cli import flags, input_lines
from coke_jax.data import atomic_files
from coke_jax.predict import embeddings, known_facts, questions, records
from coke_jax.predict import model as model_lib

TSV_COLUMNS = (
  'line',
  'asked',
  'head',
  'relations',
  'tail',
  'rank',
  'score',
  'probability',
  'known_in',
)


_DIGITS = 6  # of scores and probabilities in a TSV


def answer(
  model: model_lib.Model,
  lines: input_lines.Lines,
  output: str,
  *,
  form: str,
  top: int,
  restriction: known_facts.Restriction,
) -> tuple[int, int]:
  """Answers the questions of `lines`, and writes the answers.

  As TSV: a header, then a line an answer, which holds the fact that it makes
  with its question. As JSON lines: an object a question, with all its answers.

  Args:
    model: who is asked.
    lines: the questions.
    output: a file, which is written as a whole or not at all; `-` for standard
      output.
    form: `tsv` or `jsonl`.
    top: answers a question gets, at most.
    restriction: what may be an answer.

  Returns:
    How many questions were asked, and how many of them have no answer that is
    let compete.

  Raises:
    input_lines.StreamError: a bad line, or labels that a TSV cannot hold.
    text_files.DataError: the input cannot be read.
    OSError: the output cannot be written.
  """
  top = questions.whole_number('top', top, least=1)
  words = model.data.vocabulary
  joint = lines.layout.relation_delimiter or '\t'
  if form == 'tsv':
    _check_tabs((*words.entities, *words.relations))
  asked = without = 0
  with _writing(output) as out:
    if form == 'tsv':
      out.write('\t'.join(TSV_COLUMNS) + '\n')
      out.flush()
    for batch in lines.batches(
      model.parser.question, words.relation_ids, model.batch_size, 'asking'
    ):
      parsed = [question for _, _, question in batch]
      replies = model.answer(parsed, top, restriction)
      for (number, labels, question), reply in zip(batch, replies, strict=True):
        if form == 'tsv':
          out.writelines(_tsv(number, labels, question, reply, joint))
        else:
          out.write(_json(number, labels, reply))
      out.flush()
      asked += len(batch)
      without += sum(not reply for reply in replies)
  return asked, without


def embed(
  model: model_lib.Model,
  lines: input_lines.Lines,
  output: str,
  layer: int | None = None,
) -> int:
  """Writes the contextual embeddings of the sequences of `lines`.

  Args:
    model: who reads them.
    lines: the sequences.
    output: an .npz file, or else a folder for TensorBoard's projector; see
      `embeddings`.
    layer: after how many blocks; None: all.

  Returns:
    How many sequences were embedded.

  Raises:
    As `answer`.
  """
  words = model.data.vocabulary
  embedded = 0

  def batches() -> Iterator[Any]:
    nonlocal embedded
    for batch in lines.batches(
      model.parser.sequence, words.relation_ids, model.batch_size, 'embedding'
    ):
      embedded += len(batch)
      yield from model.encode(
        model.parser.tokens([tokens for _, _, tokens in batch], model.width),
        layer,
      )
    if not embedded:  # the arrays of the file have their shapes all the same
      yield from model.encode(model.parser.tokens([], model.width), layer)

  embeddings.write_contextual(
    output,
    batches(),
    words.token_labels,
    model.num_layers if layer is None else layer,
  )
  return embedded


def _tsv(
  number: int,
  labels: list[str],
  question: questions.Question,
  reply: Iterable[records.Prediction],
  joint: str,
) -> Iterator[str]:
  """A line for each answer to a question."""
  relations = joint.join(labels[1:-1])
  for one in reply:
    head, tail = labels[0], one.label
    if question.asks_head:
      head, tail = one.label, labels[-1]
    cells = (
      number,
      'head' if question.asks_head else 'tail',
      head,
      relations,
      tail,
      one.rank,
      f'{one.score:.{_DIGITS}g}',
      f'{one.probability:.{_DIGITS}g}',
      one.known_in,
    )
    yield '\t'.join(map(str, cells)) + '\n'


def _json(
  number: int, labels: list[str], reply: Iterable[records.Prediction]
) -> str:
  answers = [dataclasses.asdict(one) for one in reply]
  line = {'line': number, 'question': labels, 'answers': answers}
  return json.dumps(line, ensure_ascii=False, allow_nan=False) + '\n'


def _check_tabs(labels: Iterable[str]) -> None:
  for label in labels:
    if '\t' in label or '\r' in label:
      raise input_lines.StreamError(
        f'label {label!r} holds a tab or a carriage return, which a column '
        'cannot: expected --format=jsonl for this graph'
      )


@contextlib.contextmanager
def _writing(output: str) -> Iterator[IO[str]]:
  """A text file to write, which takes its place only when all is well.

  What is no regular file, such as a pipe, is never replaced but written to.
  """
  with contextlib.ExitStack() as stack:
    place: int | pathlib.Path = pathlib.Path(output)
    if output == flags.STANDARD:
      input_lines.check_open(sys.stdout, 'output')
      place = os.dup(sys.stdout.fileno())
    elif input_lines.is_regular(output) or not os.path.exists(output):
      place = stack.enter_context(atomic_files.whole_file(pathlib.Path(output)))
    # Labels are UTF-8 and lines end alike wherever the program runs.
    yield stack.enter_context(open(place, 'w', encoding='utf-8', newline='\n'))
