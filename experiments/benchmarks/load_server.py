"""Measures how many questions `coke serve` answers per second.

    python -m experiments.benchmarks.load_server --clients 1 8 64

Each client sends one question per request, over one connection, and waits for
the answer before it sends the next one. For comparison, `Model.predict` is
called with one question after another in one process, without a server.
`Model.predict` and each number of clients are measured in turns, for several
rounds. The numbers are medians over the rounds. An answer is wrong if its
probability differs from that of `Model.predict`. The clients run on the same
machine, so they use a part of the processor time.
"""

import asyncio
import dataclasses
import json
import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

import coke_jax
from coke_jax.data import graph
from coke_jax.predict import load
from coke_jax.predict import model as model_lib
from coke_jax.predict.jobs import facts as facts_lib
from experiments.benchmarks import memory
from experiments.paper import options as options_lib

_TOP = 10
_SPLITS: Sequence[str] = graph.SPLITS
Question = tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Round:
  """One measurement.

  Attributes:
    seconds: for each question, the seconds until it was answered.
    total: the duration of the measurement in seconds.
    wrong: the number of questions whose best answer has another probability
      than with `Model.predict`.
  """

  seconds: list[float]
  total: float
  wrong: int = 0

  def milliseconds(self, percent: float) -> float:
    """Returns a percentile of `seconds`, in milliseconds."""
    return 1000 * float(np.percentile(self.seconds, percent))

  @property
  def rate(self) -> float:
    """Answered questions per second."""
    return len(self.seconds) / self.total


def draw_questions(model: model_lib.Model, count: int) -> list[Question]:
  """Draws questions about heads and tails from the known facts of a model."""
  facts = facts_lib.known(model.data, _SPLITS).triples
  words = model.data.vocabulary
  rows = np.random.default_rng(0).integers(0, len(facts), count)
  questions: list[Question] = []
  for number, (head, relation, tail) in enumerate(facts[rows].tolist()):
    ends = [words.entities[head], words.entities[tail]]
    ends[number % 2] = '?'
    questions.append((ends[0], words.relations[relation], ends[1]))
  return questions


def call(
  model: model_lib.Model, questions: Sequence[Question], duration: float
) -> Round:
  """Calls `Model.predict` with one question after another for some seconds."""
  seconds: list[float] = []
  begin = time.perf_counter()
  while (start := time.perf_counter()) - begin < duration:
    model.predict(questions[len(seconds) % len(questions)], top=_TOP)
    seconds.append(time.perf_counter() - start)
  return Round(seconds, time.perf_counter() - begin)


async def ask(
  port: int, expected: dict[Question, float], clients: int, duration: float
) -> Round:
  """Sends questions to a server from several clients.

  Args:
    port: the port of the server.
    expected: the probability of the best answer to each question.
    clients: the number of clients.
    duration: the duration in seconds.
  """
  seconds: list[float] = []
  wrong = 0
  begin = time.perf_counter()

  async def client(seed: int) -> None:
    nonlocal wrong
    generator = random.Random(seed)
    reader, writer = await asyncio.open_connection('127.0.0.1', port)
    questions = list(expected)
    while (start := time.perf_counter()) - begin < duration:
      question = generator.choice(questions)
      answers = await _post(reader, writer, port, question)
      seconds.append(time.perf_counter() - start)
      if not math.isclose(
        answers[0]['probability'], expected[question], rel_tol=1e-3
      ):
        wrong += 1
    writer.close()
    await writer.wait_closed()

  async with asyncio.TaskGroup() as group:
    for number in range(clients):
      group.create_task(client(number))
  return Round(seconds, time.perf_counter() - begin, wrong)


async def _post(
  reader: asyncio.StreamReader,
  writer: asyncio.StreamWriter,
  port: int,
  question: Question,
) -> list[dict[str, Any]]:
  """Sends one question and returns the answers.

  Raises:
    RuntimeError: the status is not 200.
  """
  body = json.dumps({'questions': [question], 'top': _TOP}).encode()
  writer.write(
    b'POST /v1/predict HTTP/1.1\r\n'
    + f'Host: 127.0.0.1:{port}\r\n'.encode()
    + b'Content-Type: application/json\r\n'
    + f'Content-Length: {len(body)}\r\n\r\n'.encode()
    + body
  )
  headers = (await reader.readuntil(b'\r\n\r\n')).decode('latin-1').lower()
  length = int(headers.partition('content-length:')[2].split()[0])
  content = await reader.readexactly(length)
  status = headers.split()[1]
  if status != '200':
    raise RuntimeError(
      f'{question}: status is {status}: expected 200. The response is '
      f'{content!r}'
    )
  answers: list[dict[str, Any]] = json.loads(content)['answers'][0]
  return answers


def table(rounds: dict[str, list[Round]]) -> str:
  """Returns a Markdown table with the medians over the rounds."""
  lines = [
    '| | questions/s | median | 99 % within |',
    '|---|---:|---:|---:|',
  ]
  for name, measured in rounds.items():
    rate, median, slow = (
      statistics.median(values)
      for values in (
        [one.rate for one in measured],
        [one.milliseconds(50) for one in measured],
        [one.milliseconds(99) for one in measured],
      )
    )
    lines.append(f'| {name} | {rate:,.0f} | {median:.1f} ms | {slow:.1f} ms |')
  return '\n'.join(lines)


def main(argv: list[str] | None = None) -> int:
  """Measures and prints the table. Returns 1 if an answer was wrong."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--workdir', default=str(coke_jax.EXAMPLE_MODEL))
  parser.add_argument('--clients', type=int, nargs='+', default=[1, 8, 64])
  parser.add_argument(
    '--seconds',
    type=float,
    default=5.0,
    help='duration of each measurement in a round; default: 5',
  )
  parser.add_argument('--rounds', type=int, default=5)
  parser.add_argument('--questions', type=int, default=500)
  flags = parser.parse_args(argv)
  model = load.load(flags.workdir)
  questions = draw_questions(model, flags.questions)
  best = model.predict(questions, top=1)
  expected = {
    question: answers[0].probability
    for question, answers in zip(questions, best, strict=True)
  }
  call(model, questions, 0.5)  # The first call compiles.
  rounds: dict[str, list[Round]] = {}
  with subprocess.Popen(
    [
      *(sys.executable, '-m', 'coke_jax.main', 'serve'),
      *(flags.workdir, '--port=0'),
    ],
    stdout=subprocess.PIPE,
    text=True,
  ) as server:
    try:
      assert server.stdout is not None
      port = int(server.stdout.readline().rpartition(':')[2])
      used = [memory.resident(server.pid)]
      for _ in range(flags.rounds):
        one = call(model, questions, flags.seconds)
        rounds.setdefault('`Model.predict`', []).append(one)
        for clients in flags.clients:
          one = asyncio.run(ask(port, expected, clients, flags.seconds))
          name = f'{clients} client{"s" * (clients > 1)}'
          rounds.setdefault(name, []).append(one)
        used.append(memory.resident(server.pid))
    finally:
      server.terminate()
  print(f'{os.cpu_count()} cores, {flags.rounds} rounds of {flags.seconds:g} s')
  print(table(rounds))
  print(
    'memory of the server in MiB, at the start and after each round: '
    + ', '.join(f'{one / 2**20:.0f}' for one in used)
  )
  wrong = sum(one.wrong for many in rounds.values() for one in many)
  count = sum(len(one.seconds) for many in rounds.values() for one in many)
  print(f'{count:,} questions, {wrong:,} wrong answers')
  return bool(wrong)


if __name__ == '__main__':
  sys.exit(main())
