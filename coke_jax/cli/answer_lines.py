"""Reads questions or sequences line by line, and writes answers or embeddings.

Lines are read, processed and written in batches, so memory use does not grow
with the number of lines. See `input_lines` for the format of the input.
"""

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any

from coke_jax.cli import input_lines, output_lines, streams
from coke_jax.predict import (
  embedding_files,
  known_facts,
  questions,
  records,
  validation,
)
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

_DIGITS = 6  # Significant digits of scores and probabilities in TSV.


def answer(
  model: model_lib.Model,
  lines: input_lines.Lines,
  output: str,
  *,
  format: str,
  top: int,
  restriction: known_facts.Restriction,
) -> tuple[int, int]:
  """Answers the questions of `lines` and writes the answers.

  TSV output has a header with `TSV_COLUMNS`, then one line per answer, with the
  completed triple or path. The column `asked` is the side of the answer, `head`
  or `tail`. JSON output has one object per question, with the keys `line`,
  `question` and `answers`.

  Args:
    model: the trained model.
    lines: the questions.
    output: the path of a file, or `-` for standard output. A file is written
      completely or not at all.
    format: `tsv` or `jsonl`.
    top: the maximum number of answers per question.
    restriction: the conditions that the answers must meet.

  Returns:
    The number of questions, and the number of questions without an answer.

  Raises:
    input_lines.StreamError: a line is not valid, or a label cannot be written
      as TSV.
    questions.QuestionError: `top` is less than 1.
    text_files.DataError: the input cannot be read.
    OSError: the output cannot be written.
  """
  top = validation.whole_number('top', top, least=1)
  vocabulary = model.data.vocabulary
  path_delimiter = lines.line_format.relation_delimiter
  if not path_delimiter or '\t' in path_delimiter:
    path_delimiter = ','  # A tab would split the column `relations`.
  if format == 'tsv':
    output_lines.check_tabs((*vocabulary.entities, *vocabulary.relations))
  answered = without_answer = 0
  with output_lines.writing(output) as out:
    if format == 'tsv':
      out.write('\t'.join(TSV_COLUMNS) + '\n')
      out.flush()
    for batch in lines.batches(
      model.parser.question,
      vocabulary.relation_ids,
      model.batch_size,
      '' if streams.on_terminal(output) else 'answering',
    ):
      parsed = [question for _, _, question in batch]
      replies = model.predictor.answer(parsed, top, restriction)
      for (number, labels, question), reply in zip(batch, replies, strict=True):
        if format == 'tsv':
          out.writelines(_tsv(number, labels, question, reply, path_delimiter))
        else:
          out.write(_json(number, labels, reply))
      out.flush()
      answered += len(batch)
      without_answer += sum(not reply for reply in replies)
  return answered, without_answer


def embed(
  model: model_lib.Model,
  lines: input_lines.Lines,
  output: str,
  layer: int | None = None,
) -> int:
  """Writes the contextual embeddings of the sequences of `lines`.

  Args:
    model: the trained model.
    lines: triples or paths. The head or the tail may be `?`.
    output: an .npz file, or a folder for TensorBoard's projector; see
      `embedding_files`.
    layer: the embeddings are the hidden states after this many Transformer
      blocks. Default: all blocks.

  Returns:
    The number of sequences.

  Raises:
    input_lines.StreamError: a line is not valid.
    questions.QuestionError: the model has no such layer.
    embedding_files.EmbeddingError: a label cannot be written to an .npz file.
    text_files.DataError: the input cannot be read.
    OSError: the output cannot be written.
  """
  vocabulary = model.data.vocabulary
  embedded = 0

  def batches() -> Iterator[Any]:
    nonlocal embedded
    for batch in lines.batches(
      model.parser.sequence,
      vocabulary.relation_ids,
      model.batch_size,
      'embedding',
    ):
      embedded += len(batch)
      yield from model.encode(
        model.parser.tokens([tokens for _, _, tokens in batch], model.width),
        layer,
      )
    if not embedded:  # Without input, an empty batch defines the shapes.
      yield from model.encode(model.parser.tokens([], model.width), layer)

  embedding_files.write_contextual(
    output,
    batches(),
    vocabulary.token_labels,
    model.num_layers if layer is None else layer,
  )
  return embedded


def _tsv(
  number: int,
  labels: list[str],
  question: questions.Question,
  reply: Iterable[records.Prediction],
  path_delimiter: str,
) -> Iterator[str]:
  """Yields one line for each answer to a question."""
  relations = path_delimiter.join(labels[1:-1])
  for prediction in reply:
    head, tail = labels[0], prediction.label
    if question.side == 'head':
      head, tail = prediction.label, labels[-1]
    cells = (
      number,
      question.side,
      head,
      relations,
      tail,
      prediction.rank,
      f'{prediction.score:.{_DIGITS}g}',
      f'{prediction.probability:.{_DIGITS}g}',
      prediction.known_in,
    )
    yield '\t'.join(map(str, cells)) + '\n'


def _json(
  number: int, labels: list[str], reply: Iterable[records.Prediction]
) -> str:
  """Returns the line of JSON for a question and its answers."""
  answers = [dataclasses.asdict(prediction) for prediction in reply]
  line = {'line': number, 'question': labels, 'answers': answers}
  return output_lines.json_line(line)
