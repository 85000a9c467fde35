"""Answers questions in JSON lines, by default up to a million per request.

The body is read completely before the first answer is sent, because many
clients do not read while they send. A large body is kept in a temporary file.
"""

import asyncio
import codecs
import itertools
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import IO, Annotated, Any

import fastapi
from fastapi import responses as fastapi_responses

from coke_jax.data import text_files
from coke_jax.predict import known_facts, questions
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import handlers, response_schemas, responses, schemas
from coke_jax.serve import limits as limits_lib
from coke_jax.serve import served as served_lib

MEDIA_TYPE = 'application/x-ndjson'
_IN_MEMORY = 8 << 20  # A body with more bytes is kept in a file.
_PART = 256  # number of lines that are answered together
_BUSY_SECONDS = 0.05  # seconds between two attempts to queue a part

# The number of bad lines of a body for which similar labels are suggested.
# Finding similar labels takes time.
_MAX_HINTS = 20

_STOPPED = 'the server is being stopped: send this and all later lines again'

# Answers questions: returns a list of answers for each question.
_Run = Callable[[list[questions.Question]], Awaitable[list[Any]]]


def add_route(routes: fastapi.APIRouter, engine: engine_lib.Engine) -> None:
  """Adds the route for JSON lines to the routes of the API."""

  @routes.post(
    '/predict/lines',
    summary='Answer questions in JSON lines',
    response_class=fastapi_responses.StreamingResponse,
    responses={**response_schemas.BODY_ERRORS, 200: _described()},
    openapi_extra={
      'requestBody': {
        'required': True,
        'content': {
          MEDIA_TYPE: {
            'schema': {'type': 'string'},
            'example': '["France","borders","?"]\n["?","borders","Spain"]\n',
          }
        },
      }
    },
  )
  async def answer_lines(
    request: fastapi.Request,
    top: Annotated[schemas.Top, fastapi.Query()] = 10,
    new_only: bool = False,
    exclude_own: bool = False,
    type_matching: bool = False,
  ) -> fastapi.Response:
    """Answers one question per line, in the order of the lines.

    Each line of the response is an object with `line`, counted from 1, and
    `answers` or `error`. If the server is being stopped, it still answers
    lines for some seconds. Then the response ends with an error for the first
    line that was not answered.
    """
    responses.check_number('top', top, engine.limits.top)
    served = engine.current()
    restriction = known_facts.Restriction(
      new_only=new_only, exclude_own=exclude_own, type_matching=type_matching
    )
    body = await _read(request, engine.limits)

    async def run(items: list[Any]) -> list[Any]:
      while True:
        try:
          return await handlers.run_predict(
            engine, served, items, top, restriction
          )
        except limits_lib.BusyError:
          await asyncio.sleep(_BUSY_SECONDS)

    return fastapi_responses.StreamingResponse(
      _answers(body, served, engine, run), media_type=MEDIA_TYPE
    )


def _described() -> dict[str, Any]:
  """Describes the response for the OpenAPI page."""
  schema = response_schemas.Line.json_schema(
    ref_template='#/components/schemas/{model}'
  )
  # The definitions refer to components such as `CalibratedAnswer`. Other routes
  # add these components to the page.
  definitions = schema.pop('$defs')
  schema['anyOf'] = [
    definitions[one['$ref'].split('/')[-1]] for one in schema['anyOf']
  ]
  return {
    'description': 'One object for each line of the request.',
    'content': {MEDIA_TYPE: {'schema': schema}},
  }


async def _read(
  request: fastapi.Request, limits: limits_lib.Limits
) -> IO[bytes]:
  """Reads the body of a request, and checks the number of its lines."""
  body = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115
  lines = 0
  try:
    async for part in request.stream():
      body.write(part)
      lines += part.count(b'\n')
      responses.check_number('lines', lines, limits.lines)
  except BaseException:
    body.close()
    raise
  body.seek(0)
  return body


async def _answers(
  body: IO[bytes],
  served: served_lib.Served,
  engine: engine_lib.Engine,
  run: _Run,
) -> AsyncIterator[bytes]:
  """Yields the response in parts of several lines."""
  limits, hints, end = engine.limits, _MAX_HINTS, float('inf')
  with body:
    numbered = enumerate(_lines(body, limits.line_bytes), 1)
    while True:
      part = []
      for number, line in itertools.islice(numbered, _PART):
        parsed = _parse(line, served, limits.line_bytes, hints=hints > 0)
        part.append((number, parsed))
        hints -= isinstance(parsed, str)
      if not part:
        return
      if engine.stopping:
        # About `limits.seconds` after `stopping` is set, the server cancels all
        # requests. No part starts in the second half of this time, because a
        # part takes time.
        end = min(end, time.monotonic() + limits.seconds / 2)
      if time.monotonic() > end:
        first = part[0][0]
        yield responses.to_bytes({'line': first, 'error': _STOPPED}) + b'\n'
        return
      good = [one for _, one in part if not isinstance(one, str)]
      try:
        answers = iter(await run(good))
      except limits_lib.TimeLimitError as error:
        answers = iter([])
        part = [(number, str(error)) for number, _ in part]
      yield b''.join(
        responses.to_bytes(
          {'line': number, 'error': one}
          if isinstance(one, str)
          else {'line': number, 'answers': next(answers)}
        )
        + b'\n'
        for number, one in part
      )


def _lines(body: IO[bytes], most: int) -> Iterator[bytes]:
  """Yields the lines of a body. A line is cut off after `most` + 1 bytes.

  A byte-order mark at the start of the body is left out.
  """
  if body.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
    body.seek(0)
  while line := body.readline(most + 1):
    rest = line
    while len(rest) == most + 1 and not rest.endswith(b'\n'):
      rest = body.readline(most + 1)
    yield line


def _parse(
  line: bytes, served: served_lib.Served, most: int, *, hints: bool
) -> questions.Question | str:
  """Returns the question of a line, or the text of an error.

  Args:
    line: the line.
    served: the model.
    most: the maximum number of bytes.
    hints: whether the error about an unknown label lists similar labels.
  """
  if len(line) > most:
    return f'a line with more than {most:,} bytes'
  try:
    text = line.decode('utf-8')
  except UnicodeDecodeError as error:
    return (
      f'byte {line[error.start]:#04x} at column {error.start + 1} is not UTF-8 '
      f'({error.reason}): expected a list of labels in JSON'
    )
  try:
    labels = json.loads(text)
  except (ValueError, RecursionError):
    labels = None
  if not isinstance(labels, list) or not all(
    isinstance(label, str) for label in labels
  ):
    shown = text_files.show_line(text.rstrip('\r\n'))
    return f'{shown}: expected a list of labels in JSON'
  try:
    return served.question(labels, hints=hints)
  except questions.QuestionError as error:
    return str(error)
