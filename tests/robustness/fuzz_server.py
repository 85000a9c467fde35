"""Tests that hostile requests to `coke serve` are refused without harm.

    python tests/robustness/fuzz_server.py --requests=100000

Clients send valid questions, mixed with mutated bodies, wrong types, odd texts,
wrong methods, paths of files that are not served, broken headers and incomplete
requests. Each of the following is a failure:

- A response is missing, or its status is unexpected, such as 500.
- A response contains a file path or a traceback.
- The server logs an error, ends early, or ends with an error.
- The answer to a valid question is not that of `Model.predict`.
"""

import argparse
import asyncio
import collections
import dataclasses
import re
import sys
import time

import example_server
import expected_answers
import hostile_requests

_PATIENCE_SECONDS = 120.0
_MOST_SHOWN = 10  # maximum number of failures that are printed
# Texts that no response may contain.
_LEAKS = (
  *(str(example_server.ROOT), sys.prefix, 'site-packages'),
  *('Traceback (most', 'File "'),
)


@dataclasses.dataclass
class Tally:
  """What was sent and received.

  Attributes:
    kinds: the number of requests by kind.
    statuses: the number of responses by status. The status 0 means that the
      server closed the connection.
    compared: the number of answers that were compared with the model's.
    failures: descriptions of what went wrong.
  """

  kinds: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  statuses: collections.Counter[int] = dataclasses.field(
    default_factory=collections.Counter
  )
  compared: int = 0
  failures: list[str] = dataclasses.field(default_factory=list)


async def exchange(
  connection: example_server.Connection, case: hostile_requests.Case
) -> example_server.Response:
  """Sends a request and receives the response.

  Raises:
    EOFError, OSError, ValueError: the response is incomplete or malformed.
  """
  try:
    await connection.send(case.data)
    if case.ends:
      connection.end()
  except ConnectionError:
    if 0 not in case.statuses:
      raise
    connection.close()
    return example_server.CLOSED
  return await connection.receive(case.method)


def problem(
  case: hostile_requests.Case,
  response: example_server.Response,
  answers: expected_answers.Answers,
) -> str:
  """Describes what is wrong with a response, or returns an empty text."""
  if response.status not in case.statuses:
    return f'status is {response.status}: expected one of {case.statuses}'
  text = f'{response.headers} {response.body.decode("utf-8", "replace")}'
  for leak in _LEAKS:
    if leak in text:
      return f'the response contains {leak!r}'
  if case.question is not None and response.status == 200:
    return answers.problem(case.question, response.json()['answers'][0])
  return ''


async def client(
  server: example_server.Server,
  answers: expected_answers.Answers,
  seed: int,
  requests: int,
  tally: Tally,
) -> None:
  """Sends requests one after another."""
  cases = hostile_requests.Cases(server.host, answers, seed)
  connection = example_server.Connection(server.port)
  for _ in range(requests):
    kind, case = cases.draw()
    reused = connection.is_open
    found = ''
    response = example_server.CLOSED
    try:
      async with asyncio.timeout(_PATIENCE_SECONDS):
        response = await exchange(connection, case)
        if reused and not response.status and 0 not in case.statuses:
          # The server may have closed the connection after a response.
          response = await exchange(connection, case)
      found = problem(case, response, answers)
    except (EOFError, OSError, ValueError, TimeoutError) as error:
      found = f'{type(error).__name__}: {error}'
    if found:
      tally.failures.append(f'{kind}: {found}: {case.data[:1000]!r}')
    if case.ends:
      connection.close()
    tally.kinds[kind] += 1
    tally.statuses[response.status] += 1
    tally.compared += case.question is not None and response.status == 200
  connection.close()


async def run(
  server: example_server.Server, flags: argparse.Namespace
) -> Tally:
  """Runs all clients."""
  answers = expected_answers.of_example_model(500, flags.seed)
  tally = Tally()
  async with asyncio.TaskGroup() as group:
    for number in range(flags.clients):
      count = len(range(number, flags.requests, flags.clients))
      seed = flags.seed * 1000 + number
      group.create_task(client(server, answers, seed, count, tally))
  return tally


def main(argv: list[str] | None = None) -> int:
  """Sends all requests. Returns 1 if anything went wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--requests', type=int, default=10_000)
  parser.add_argument('--clients', type=int, default=16)
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  log = example_server.log_file()
  with example_server.started(log) as server:
    begin = time.perf_counter()
    tally = asyncio.run(run(server, flags))
    seconds = time.perf_counter() - begin
    if server.process.poll() is not None:
      tally.failures.append(f'the server ended: {server.process.returncode}')
    server.process.terminate()
    if status := server.wait():
      tally.failures.append(f'exit status {status} after SIGTERM')
  text = log.read_text(errors='replace')
  for match in list(re.finditer('Traceback|Exception|ERROR', text))[:1]:
    start = max(0, match.start() - 200)
    tally.failures.append(f'{log}: {text[start : start + 3000]}')
  if not tally.failures:
    log.unlink()
  for failure in tally.failures[:_MOST_SHOWN]:
    print(failure)
  print(dict(tally.kinds.most_common()))
  print(dict(sorted(tally.statuses.items())))
  print(
    f'{flags.requests:,} requests in {seconds:.0f} s, '
    f'{tally.compared:,} answers compared: '
    + (f'{len(tally.failures):,} FAILED' if tally.failures else 'nothing wrong')
  )
  return bool(tally.failures)


if __name__ == '__main__':
  sys.exit(main())
