"""Tests that killed and undisturbed trainings have equal results bit for bit.

    python tests/robustness/kill.py --kills=50 --runs=5

Each run draws a graph and settings, and trains once undisturbed. Then the same
training is started in another folder and killed (SIGKILL) or interrupted
(SIGTERM, SIGINT) several times. Some signals are sent after a random time. The
other signals are sent up to two seconds after the program begins or finishes
writing a file, such as a checkpoint. After the last start, the training runs to
its end. Then parameters, metrics.jsonl and results.json must equal those of the
undisturbed training.
"""

import argparse
import collections
import dataclasses
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import small_runs

_POLL_SECONDS = 0.0005
# The maximum time from a signal to the exit of a training, on a busy machine.
_LEAVE_SECONDS = 30.0
# The names of files that are not completely written.
_UNFINISHED = re.compile(r'\..+\.[0-9a-f]{32}')
_SHOWN_CHARACTERS = 5000  # maximum length of a traceback in a failure
# The traceback that Python prints after SIGINT.
_INTERRUPTED = re.compile(
  r'Traceback \(most recent call last\):\n(?:  .*\n)+KeyboardInterrupt(?:: )?\n'
)

# If a shell starts this script in the background, the script may ignore SIGINT.
# Child processes would inherit this, so they restore the default handler.
_LAUNCH = (
  'import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); '
  'os.execv(sys.argv[1], sys.argv[1:])'
)


@dataclasses.dataclass
class Tally:
  """The signals sent and the failures found.

  Attributes:
    kills: the number of SIGKILLs by activity, such as 'stepping'.
    stops: the number of SIGTERMs and of SIGINTs, by name.
    seconds_to_leave: the longest time from a SIGTERM or SIGINT to the exit.
    failures: descriptions of what went wrong.
  """

  kills: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  stops: collections.Counter[str] = dataclasses.field(
    default_factory=collections.Counter
  )
  seconds_to_leave: float = 0.0
  failures: list[str] = dataclasses.field(default_factory=list)


def names(folder: pathlib.Path) -> list[str]:
  """Returns the names of a folder's entries; [] if there is no folder."""
  try:
    return [path.name for path in folder.iterdir()]
  except OSError:
    return []


def size(path: pathlib.Path) -> int:
  """Returns the size of a file in bytes; 0 if there is no file."""
  try:
    return path.stat().st_size
  except OSError:
    return 0


# -------------------------------------------------- moments to wait for
# Each function gets the work folder at the start of a process. It returns a
# condition, which is a function that returns whether the moment has come.


def a_file_is_written(work: pathlib.Path) -> Callable[[], bool]:
  """Returns the condition that a file outside checkpoints is half written."""
  before = set(names(work))
  return lambda: any(
    _UNFINISHED.fullmatch(name) and name not in before for name in names(work)
  )


def a_checkpoint_is_written(work: pathlib.Path) -> Callable[[], bool]:
  """Returns the condition that a checkpoint has a temporary name."""
  before = set(names(work / 'checkpoints'))
  return lambda: any(
    'tmp' in name and name not in before for name in names(work / 'checkpoints')
  )


def a_checkpoint_is_there(work: pathlib.Path) -> Callable[[], bool]:
  """Returns the condition that a new checkpoint has its final name."""
  before = set(names(work / 'checkpoints'))
  return lambda: any(
    'tmp' not in name and name not in before
    for name in names(work / 'checkpoints')
  )


def the_log_grows(work: pathlib.Path) -> Callable[[], bool]:
  """Returns the condition that metrics.jsonl has a new line."""
  before = size(work / 'metrics.jsonl')
  return lambda: size(work / 'metrics.jsonl') > before


MOMENTS = (
  a_file_is_written,
  a_checkpoint_is_written,
  a_checkpoint_is_there,
  the_log_grows,
)


def trace(work: pathlib.Path) -> tuple[int, list[str]]:
  """Returns the size of metrics.jsonl, and the names of the checkpoints."""
  return size(work / 'metrics.jsonl'), sorted(names(work / 'checkpoints'))


def state_of(work: pathlib.Path, before: tuple[int, list[str]]) -> str:
  """Returns what a process was doing when it was killed, based on its files.

  Args:
    work: the work folder.
    before: the `trace` at the start of the process.
  """
  if 'config.json' not in names(work):
    return 'reading data or beginning the run'
  if any('tmp' in name for name in names(work / 'checkpoints')):
    return 'writing a checkpoint'
  if any(map(_UNFINISHED.fullmatch, names(work))):
    return 'writing another file'
  if trace(work) == before:
    return 'starting'
  steps = [
    int(name.rsplit('_', 1)[1])
    for name in names(work / 'checkpoints')
    if re.fullmatch(r'step_\d+', name)
  ]
  if steps:
    newest = work / 'checkpoints' / f'step_{max(steps)}'
    text = (newest / 'metadata' / 'metadata').read_text()
    if '"validation_pending": true' in text:
      return 'deleting old checkpoints or validating'
    if '"finished": true' in text:
      return 'ranking the test split'
  return 'stepping'


def start(
  arguments: list[str], cache: pathlib.Path, log: pathlib.Path
) -> subprocess.Popen[bytes]:
  """Starts a training, with its output in a file."""
  with log.open('ab') as out:
    return subprocess.Popen(
      [sys.executable, '-c', _LAUNCH, *small_runs.command(*arguments)],
      env=small_runs.environment(cache),
      stdout=out,
      stderr=out,
    )


def disturb(
  process: subprocess.Popen[bytes],
  work: pathlib.Path,
  moment: Callable[[], bool],
  delay: float,
  number: int,
  tally: Tally,
) -> bool:
  """Waits for the moment and sends a signal.

  Returns:
    Whether the signal ended the process. If not, the training was complete.
  """
  before = trace(work)
  while not moment():
    if process.poll() is not None:
      return False
    time.sleep(_POLL_SECONDS)
  time.sleep(delay)
  if process.poll() is not None:
    return False
  process.send_signal(number)
  sent = time.monotonic()
  try:
    status = process.wait(timeout=_LEAVE_SECONDS)
  except subprocess.TimeoutExpired:
    tally.failures.append(
      f'no exit within {_LEAVE_SECONDS} s of signal {number}'
    )
    process.kill()
    process.wait()
    return True
  if status == 0:
    return False
  if number == signal.SIGKILL:
    tally.kills[state_of(work, before)] += 1
    return True
  tally.stops[signal.Signals(number).name] += 1
  seconds = time.monotonic() - sent
  tally.seconds_to_leave = max(tally.seconds_to_leave, seconds)
  # Before the program installs its handlers, a signal gives the status -number.
  if status not in (128 + number, -number):
    tally.failures.append(f'exit status {status} after signal {number}')
  return True


def one_run(
  folder: pathlib.Path, seed: int, kills: int, stops: int, epochs: int
) -> Tally:
  """Trains once undisturbed and once disturbed, and compares the results."""
  generator, tally = random.Random(seed), Tally()
  data = small_runs.write_graph(folder / 'data', seed)
  settings = {
    'seed': seed,
    'num_epochs': epochs,
    'rows': generator.choice(['query', 'instance']),
    'log_every_steps': generator.choice([1, 7, 50]),
    'validate_every_epochs': generator.choice([3, 10, 0.5]),
  }
  work, calm = folder / 'disturbed', folder / 'undisturbed'
  cache = folder / 'compiled'
  log = folder / 'log.txt'
  started = time.monotonic()
  process = start(small_runs.arguments(data, calm, **settings), cache, log)
  if process.wait() != 0:
    raise RuntimeError(f'the undisturbed run failed: see {log}')
  duration = time.monotonic() - started
  undisturbed = small_runs.outcome(calm)
  arguments = small_runs.arguments(data, work, **settings)
  signals = [signal.SIGKILL] * kills
  signals += [(signal.SIGTERM, signal.SIGINT)[i % 2] for i in range(stops)]
  generator.shuffle(signals)
  while signals:
    process = start(arguments, cache, log)
    if generator.random() < 0.2:
      moment, delay = (lambda: True), generator.uniform(0, duration / 3)
    else:
      moment = generator.choice(MOMENTS)(work)
      delay = generator.choice([0, generator.uniform(0, 0.05), 1, 2])
      delay *= generator.random()
    if disturb(process, work, moment, delay, signals[-1], tally):
      signals.pop()
    elif process.returncode != 0:
      tally.failures.append(f'exit status {process.returncode}: see {log}')
      return tally
    else:  # The training had finished, so begin it again.
      tally.failures += small_runs.differences(
        small_runs.outcome(work), undisturbed
      )
      work.rename(folder / f'finished_{len(signals)}')
  process = start(arguments, cache, log)
  if process.wait() != 0:
    tally.failures.append(f'the last start failed: see {log}')
    return tally
  tally.failures += small_runs.differences(
    small_runs.outcome(work), undisturbed
  )
  left = [name for name in names(work) if _UNFINISHED.fullmatch(name)]
  left += [name for name in names(work / 'checkpoints') if 'tmp' in name]
  tally.failures += [f'{name} was left behind' for name in left]
  found = traceback(log.read_text(errors='replace'))
  if found:
    tally.failures.append(f'a traceback: {found}')
  return tally


def traceback(text: str) -> str:
  """Returns the first traceback in the output of a training, or an empty text.

  A traceback of Python is left out if SIGINT comes while modules are imported,
  before the program can handle signals.
  """
  rest = _INTERRUPTED.sub(
    lambda found: found[0] if 'in entry_point' in found[0] else '', text
  )
  _, start, after = rest.partition('Traceback')
  return start + after[:_SHOWN_CHARACTERS]


def main(argv: list[str] | None = None) -> int:
  """Runs all trainings. Returns 1 if there was a failure."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--kills', type=int, default=50)
  parser.add_argument(
    '--stops', type=int, default=20, help='number of SIGTERMs and SIGINTs'
  )
  parser.add_argument('--runs', type=int, default=5)
  parser.add_argument('--epochs', type=int, default=300)
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument(
    '--folder', help='where the runs are kept; by default, they are deleted'
  )
  flags = parser.parse_args(argv)
  total = Tally()
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(flags.folder or temporary)
    for run in range(flags.runs):
      kills, stops = (
        (count * (run + 1)) // flags.runs - (count * run) // flags.runs
        for count in (flags.kills, flags.stops)
      )
      place = folder / f'run_{run}'
      tally = one_run(place, flags.seed + run, kills, stops, flags.epochs)
      print(f'run {run}: {tally}', flush=True)
      total.kills += tally.kills
      total.stops += tally.stops
      total.seconds_to_leave = max(
        total.seconds_to_leave, tally.seconds_to_leave
      )
      total.failures += tally.failures
  print(
    f'{total.kills.total()} kills ({dict(total.kills)}), '
    f'{total.stops.total()} stops ({dict(total.stops)}, the slowest within '
    f'{total.seconds_to_leave:.1f} s), {flags.runs} runs: '
    + (f'FAILED: {total.failures}' if total.failures else 'nothing lost')
  )
  return bool(total.failures)


if __name__ == '__main__':
  sys.exit(main())
