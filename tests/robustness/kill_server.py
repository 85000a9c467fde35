"""Tests that a server killed or stopped under load sends no wrong answer.

    python tests/robustness/kill_server.py --kills=10 --stops=10

In each run, clients ask questions until the server is killed (SIGKILL) or
stopped (SIGTERM) at a random time. Each complete response must have the answers
of `Model.predict`.

For about half of the requests, the client sends the body only after the interim
response `100 Continue`. The request then counts as accepted. After SIGTERM,
each accepted request must get a complete response, and the server must exit
with status 0.
"""

import argparse
import asyncio
import dataclasses
import json
import random
import signal
import sys
import time

import example_server
import expected_answers

_PATIENCE_SECONDS = 60.0
_MOST_QUESTIONS = 20  # maximum number of questions in a request


@dataclasses.dataclass
class Tally:
  """What was sent and received.

  Attributes:
    complete: the number of complete responses.
    accepted: the number of requests that were accepted, but not answered, when
      the signal was sent.
    closed: the number of connections that were closed without a response.
    slowest: the longest time from SIGTERM to the end of the process, in
      seconds.
    failures: descriptions of what went wrong.
  """

  complete: int = 0
  accepted: int = 0
  closed: int = 0
  slowest: float = 0.0
  failures: list[str] = dataclasses.field(default_factory=list)


class Load:
  """Clients that send questions to a server until it ends."""

  def __init__(
    self,
    server: example_server.Server,
    answers: expected_answers.Answers,
    tally: Tally,
    number: int,
  ):
    self._server = server
    self._answers = answers
    self._tally = tally
    self._number = number  # the number of the signal that ends the server
    self._accepted = 0  # number of accepted requests without a response
    self._signaled = False

  async def run(self, clients: int, seconds: float, seed: int) -> None:
    """Runs clients, and sends the signal after some seconds."""
    async with asyncio.TaskGroup() as group:
      for client in range(clients):
        group.create_task(self._client(random.Random(seed * 1000 + client)))
      await asyncio.sleep(seconds)
      self._signaled = True
      self._tally.accepted += self._accepted
      self._server.process.send_signal(self._number)

  async def _client(self, generator: random.Random) -> None:
    connection = example_server.Connection(self._server.port)
    try:
      async with asyncio.timeout(_PATIENCE_SECONDS):
        while await self._ask(connection, generator):
          pass
    except TimeoutError:
      self._tally.failures.append(
        f'a client waited for more than {_PATIENCE_SECONDS} s'
      )
    finally:
      connection.close()

  async def _ask(
    self, connection: example_server.Connection, generator: random.Random
  ) -> bool:
    """Asks some questions. Returns False after the signal was sent."""
    count = generator.choice([1, 1, 1, _MOST_QUESTIONS])
    questions = [self._answers.draw(generator) for _ in range(count)]
    body = json.dumps({'questions': questions, 'top': expected_answers.TOP})
    waits = generator.random() < 0.5
    data = example_server.post(
      self._server.host,
      '/v1/predict',
      body.encode(),
      *(['Expect: 100-continue'] if waits else []),
    )
    accepted = False
    try:
      if waits:
        await connection.send(data[: -len(body)])
        response = await connection.receive()
        accepted = response.status == 100
        self._accepted += accepted
        if accepted:
          await connection.send(body.encode())
          response = await connection.receive()
      else:
        await connection.send(data)
        response = await connection.receive()
    except (EOFError, OSError, ValueError):
      # The response is missing or incomplete.
      response = example_server.CLOSED
    self._accepted -= accepted
    self._check(questions, response, accepted=accepted)
    # After the signal, the server may close a connection at any time.
    return not self._signaled

  def _check(
    self,
    questions: list[expected_answers.Question],
    response: example_server.Response,
    *,
    accepted: bool,
  ) -> None:
    tally = self._tally
    if not response.status:
      tally.closed += 1
      if not self._signaled:
        tally.failures.append('a connection was closed before the signal')
      elif accepted and self._number == signal.SIGTERM:
        tally.failures.append('an accepted request was not answered')
      return
    if response.status != 200:
      tally.failures.append(f'status {response.status}: {response.body!r}')
      return
    tally.complete += 1
    for question, got in zip(
      questions, response.json()['answers'], strict=True
    ):
      if problem := self._answers.problem(question, got):
        tally.failures.append(problem)


def one_run(
  answers: expected_answers.Answers,
  number: int,
  generator: random.Random,
  clients: int,
  tally: Tally,
) -> None:
  """Starts a server, and ends it under load."""
  log = example_server.log_file()
  with example_server.started(log) as server:
    load = Load(server, answers, tally, number)
    seconds = generator.uniform(0.2, 3)
    asyncio.run(load.run(clients, seconds, generator.randrange(1 << 30)))
    begin = time.monotonic()
    status = server.wait()
    if number == signal.SIGTERM:
      tally.slowest = max(tally.slowest, time.monotonic() - begin)
    expected = 0 if number == signal.SIGTERM else -number
    if status != expected:
      tally.failures.append(f'exit status {status} after signal {number}')
  if 'Traceback' in (text := log.read_text(errors='replace')):
    tally.failures.append(f'{log}: {text[-3000:]}')
  else:
    log.unlink()


def main(argv: list[str] | None = None) -> int:
  """Kills and stops servers. Returns 1 if anything went wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--kills', type=int, default=10, help='number of SIGKILLs'
  )
  parser.add_argument(
    '--stops', type=int, default=10, help='number of SIGTERMs'
  )
  parser.add_argument('--clients', type=int, default=32)
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  answers = expected_answers.of_example_model(300, flags.seed)
  generator, tally = random.Random(flags.seed), Tally()
  numbers = [signal.SIGKILL] * flags.kills + [signal.SIGTERM] * flags.stops
  for number in numbers:
    one_run(answers, number, generator, flags.clients, tally)
    print(f'{signal.Signals(number).name}: {tally}', flush=True)
  print(
    f'{flags.kills} kills, {flags.stops} stops (the slowest took '
    f'{tally.slowest:.1f} s), {tally.complete:,} responses compared, '
    f'{tally.accepted:,} accepted requests when a signal was sent: '
    + (f'FAILED: {tally.failures[:10]}' if tally.failures else 'nothing wrong')
  )
  return bool(tally.failures)


if __name__ == '__main__':
  sys.exit(main())
