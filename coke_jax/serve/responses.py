"""Responses in JSON, and the conversion of errors to responses."""

import json
from typing import Any

import fastapi
from fastapi import exceptions, responses

from coke_jax import errors
from coke_jax.predict import questions, validation
from coke_jax.serve import limits as limits_lib

_RETRY_SECONDS = 1
_MAX_PROBLEMS = 5


class Json(responses.JSONResponse):
  """A response in JSON. Surrogates, which are not valid UTF-8, are escaped."""

  def render(self, content: Any) -> bytes:
    """Returns the content as UTF-8."""
    return to_bytes(content)


class RequestError(errors.CokeError, ValueError):
  """A request that the server does not accept.

  Attributes:
    status: the HTTP status.
  """

  def __init__(self, message: str, status: int = 400):
    super().__init__(message)
    self.status = status


def to_bytes(content: Any) -> bytes:
  """Returns a value as JSON in UTF-8."""
  text = json.dumps(
    content, ensure_ascii=False, allow_nan=False, separators=(',', ':')
  )
  return text.encode('utf-8', 'backslashreplace')


def error(status: int, message: str) -> Json:
  """Returns a response with an error message."""
  headers = {'Retry-After': str(_RETRY_SECONDS)} if status == 503 else None
  return Json({'error': message}, status, headers=headers)


def status_of(problem: errors.CokeError) -> int:
  """Returns the HTTP status for an error."""
  if isinstance(problem, RequestError):
    return problem.status
  if isinstance(problem, questions.QuestionError):
    return 422
  # The server is too busy, the request took too much time, or the model is
  # damaged.
  return 503


def message_of(problem: errors.CokeError) -> str:
  """Returns the message for an error. Messages with file paths are hidden."""
  shown = (
    RequestError,
    questions.QuestionError,
    limits_lib.BusyError,
    limits_lib.TimeLimitError,
    errors.NonFiniteError,
  )
  return str(problem) if isinstance(problem, shown) else 'not available'


def add_handlers(app: fastapi.FastAPI) -> None:
  """Adds handlers for all expected errors to an application."""

  @app.exception_handler(errors.CokeError)
  async def on_coke_error(_: fastapi.Request, problem: Exception) -> Json:
    assert isinstance(problem, errors.CokeError)
    return error(status_of(problem), message_of(problem))

  @app.exception_handler(exceptions.RequestValidationError)
  async def on_invalid(_: fastapi.Request, problem: Exception) -> Json:
    assert isinstance(problem, exceptions.RequestValidationError)
    return error(422, validation_message(problem.errors()))

  @app.exception_handler(fastapi.exceptions.StarletteHTTPException)
  async def on_http(_: fastapi.Request, problem: Exception) -> Json:
    assert isinstance(problem, exceptions.StarletteHTTPException)
    if problem.status_code == 400:  # for example, a million nested lists
      return error(422, 'body: this JSON cannot be read')
    found = error(problem.status_code, str(problem.detail))
    for name, value in (problem.headers or {}).items():
      found.headers[name] = value
    return found


def validation_message(problems: Any) -> str:
  """Returns a message that states the first errors and counts the others.

  Args:
    problems: the errors of pydantic. Each names a field and what was expected.
  """
  shown = [
    f'{".".join(str(part)[:100] for part in one["loc"][:8])}: {one["msg"]}'
    for one in problems[:_MAX_PROBLEMS]
  ]
  more = len(problems) - len(shown)
  return '; '.join(shown) + (f'; and {more:,} more' if more > 0 else '')


def check_number(name: str, number: int, most: int) -> None:
  """Checks a number against a limit of the server.

  Raises:
    RequestError: the number is too large.
  """
  if number > most:
    raise RequestError(
      f'{name}: {validation.short(number)}: expected at most {most:,}', 413
    )
