"""Limits on the size, number and time of requests."""

import dataclasses

from coke_jax import errors


class BusyError(errors.CokeError, RuntimeError):
  """Too many requests are waiting."""


class TimeLimitError(errors.CokeError, TimeoutError):
  """A request took more time than `Limits.seconds`."""


@dataclasses.dataclass(frozen=True)
class Limits:
  """Limits of a server.

  Attributes:
    body_bytes: maximum size of the body of a request.
    lines_bytes: maximum size of a body of JSON lines.
    lines: maximum number of JSON lines in a body.
    line_bytes: maximum size of one JSON line.
    questions: maximum number of questions, facts, pairs or candidates in a JSON
      request.
    top: maximum number of answers per question.
    answers: maximum of the number of questions multiplied by `top`.
    waiting: maximum number of questions that wait for the devices.
    waiting_jobs: maximum number of waiting requests that need many batches,
      such as `discover`.
    seconds: maximum time of a request, including its waiting time.
    join_seconds: time for which a batch waits for further requests.
    connections: maximum number of open connections.
  """

  body_bytes: int = 1 << 20
  lines_bytes: int = 256 << 20
  lines: int = 1_000_000
  line_bytes: int = 64 << 10
  questions: int = 1000
  top: int = 1000
  answers: int = 50_000
  waiting: int = 8192
  waiting_jobs: int = 8
  seconds: float = 60.0
  join_seconds: float = 0.002
  connections: int = 1024
