"""Tests that a server serves new checkpoints without losing a request.

    python tests/robustness/swap_server.py --swaps=20

A small training writes a work folder, which a server serves. While clients
send requests without a pause, better checkpoints are saved in the work folder,
one after another. Each of the following is a failure:

- A request is not answered, or its status is not 200.
- An answer differs from `Model.predict` of the model that the response names.
- A response names a model that was not saved yet, or a model that was replaced
  before the request was sent.
- A checkpoint is not served within `--seconds`, or `/metrics` does not count
  it.
"""

import argparse
import asyncio
import contextlib
import dataclasses
import json
import pathlib
import random
import re
import sys
import tempfile
import time
from collections.abc import Sequence

import example_server
import expected_answers
import numpy as np
import small_versions

_PATIENCE_SECONDS = 120.0
_POLL_SECONDS = 0.1
_MOST_QUESTIONS = 20  # maximum number of questions in a request
# Number of clients that also send requests for similar entities. At most 8 such
# requests can wait in the server.
_LONG = 4


@dataclasses.dataclass
class Tally:
  """What was sent and received.

  Attributes:
    complete: the number of responses with status 200.
    compared: the number of answers that were compared.
    slowest: the longest time from the end of a save to the first response of
      the new model, in seconds.
    repeated: the number of failed loads, which the server repeats.
    failures: descriptions of what went wrong.
  """

  complete: int = 0
  compared: int = 0
  slowest: float = 0.0
  repeated: int = 0
  failures: list[str] = dataclasses.field(default_factory=list)


class Load:
  """Clients that send requests while the model is replaced."""

  def __init__(
    self,
    server: example_server.Server,
    versions: Sequence[small_versions.Version],
    tally: Tally,
  ):
    self._server = server
    self._versions = versions
    self._numbers = {one.identity: i for i, one in enumerate(versions)}
    self._tally = tally
    self._oldest = 0  # the oldest version that a response may name
    self._newest = 0  # the newest version that a response may name
    self._seen = 0  # the newest version that a response has named

  async def run(
    self, clients: int, seed: int, work: pathlib.Path, seconds: float
  ) -> None:
    """Runs clients, and saves the other versions one after another."""
    async with asyncio.TaskGroup() as group:
      running = [
        group.create_task(
          self._client(random.Random(seed * 1000 + client), client < _LONG)
        )
        for client in range(clients)
      ]
      try:
        for number in range(1, len(self._versions)):
          await asyncio.sleep(random.Random(seed + number).uniform(0, 2))
          await self._swap(number, work, seconds)
      except TimeoutError:
        self._tally.failures.append(
          f'version {number} was not served within {seconds} s'
        )
      for client in running:
        client.cancel()

  async def _swap(
    self, number: int, work: pathlib.Path, seconds: float
  ) -> None:
    """Saves a version, and waits until the server serves it."""
    before = await self._metrics()
    self._newest = number
    await asyncio.to_thread(
      small_versions.save, work, self._versions[number].params
    )
    begin = time.monotonic()
    async with asyncio.timeout(seconds):
      while self._seen < number:
        await asyncio.sleep(_POLL_SECONDS)
      self._tally.slowest = max(self._tally.slowest, time.monotonic() - begin)
      self._oldest = number
      after = await self._metrics()
      while after['loaded'] == before['loaded']:
        await asyncio.sleep(_POLL_SECONDS)
        after = await self._metrics()
    self._tally.repeated = int(after['failed'])
    if after['loaded'] != number or after['time'] <= before['time']:
      self._tally.failures.append(f'after version {number}: metrics: {after}')

  async def _metrics(self) -> dict[str, float]:
    """Reads the counts of loads and failures, and the time of the last load."""
    connection = example_server.Connection(self._server.port)
    await connection.send(example_server.get(self._server.host, '/metrics'))
    text = (await connection.receive()).body.decode()
    connection.close()
    names = {
      'loaded': 'coke_reloads_total{outcome="loaded"}',
      'failed': 'coke_reloads_total{outcome="failed"}',
      'time': 'coke_model_loaded_timestamp_seconds',
    }
    return {
      key: float(found[1])
      if (found := re.search(rf'^{re.escape(name)} (\S+)$', text, re.M))
      else 0.0
      for key, name in names.items()
    }

  async def _client(self, generator: random.Random, long: bool) -> None:
    connection = example_server.Connection(self._server.port)
    with contextlib.closing(connection):
      while True:
        await self._ask(connection, generator, long)

  async def _ask(
    self,
    connection: example_server.Connection,
    generator: random.Random,
    long: bool,
  ) -> None:
    """Sends a request and checks the response.

    Args:
      connection: the connection.
      generator: draws the request.
      long: whether the request may be one for similar entities.
    """
    count = generator.choice([1, 1, 1, _MOST_QUESTIONS])
    questions = [
      self._versions[0].answers.draw(generator) for _ in range(count)
    ]
    path, body = (
      '/v1/predict',
      {'questions': questions, 'top': expected_answers.TOP},
    )
    if long and generator.random() < 0.1:
      path, body = '/v1/similar', {'entity': questions[0][0], 'top': 3}
    oldest = self._oldest
    data = example_server.post(
      self._server.host, path, json.dumps(body).encode()
    )
    try:
      async with asyncio.timeout(_PATIENCE_SECONDS):
        await connection.send(data)
        response = await connection.receive()
    except (EOFError, OSError, ValueError, TimeoutError) as error:
      self._tally.failures.append(f'{path}: {type(error).__name__}: {error}')
      connection.close()
      return
    if response.status != 200:
      self._tally.failures.append(
        f'{path}: status {response.status}: {response.body[:500]!r}'
      )
      return
    self._tally.complete += 1
    found = response.json()
    number = self._numbers.get(found['model'], -1)
    if not oldest <= number <= self._newest:
      self._tally.failures.append(
        f'{path}: version of the model is {number}: expected {oldest} to '
        f'{self._newest}'
      )
      return
    self._seen = max(self._seen, number)
    for question, got in zip(questions, found.get('answers', []), strict=False):
      self._tally.compared += 1
      if problem := self._versions[number].answers.problem(question, got):
        self._tally.failures.append(f'version {number}: {problem}')


def main(argv: list[str] | None = None) -> int:
  """Runs the test. Returns 1 if anything went wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--swaps', type=int, default=5)
  parser.add_argument('--clients', type=int, default=16)
  parser.add_argument(
    '--seconds',
    type=float,
    default=60.0,
    help='maximum time until a checkpoint is served',
  )
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  tally = Tally()
  with tempfile.TemporaryDirectory(prefix='coke_jax-swap-') as folder:
    work = small_versions.train(pathlib.Path(folder))
    generator = np.random.default_rng(flags.seed)
    versions = small_versions.make(work, flags.swaps + 1, generator)
    log = example_server.log_file()
    with example_server.started(log, work) as server:
      load = Load(server, versions, tally)
      asyncio.run(load.run(flags.clients, flags.seed, work, flags.seconds))
      server.process.terminate()
      if status := server.wait():
        tally.failures.append(f'exit status {status} after SIGTERM')
  if 'Traceback' in (text := log.read_text(errors='replace')):
    tally.failures.append(f'{log}: {text[-3000:]}')
  else:
    log.unlink()
  print(
    f'{flags.swaps} new checkpoints (the slowest was served after '
    f'{tally.slowest:.1f} s; {tally.repeated} failed loads were repeated), '
    f'{tally.complete:,} responses, '
    f'{tally.compared:,} answers compared: '
    + (f'FAILED: {tally.failures[:10]}' if tally.failures else 'nothing wrong')
  )
  return bool(tally.failures)


if __name__ == '__main__':
  sys.exit(main())
