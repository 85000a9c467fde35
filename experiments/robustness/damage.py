"""Damages every file of a work folder: is training right, or refused?

    python experiments/robustness/damage.py            # all: half an hour
    python experiments/robustness/damage.py --cases=20

A training is stopped before its end. For each file it has left and each kind
of damage, it goes on in a copy. Either it comes to the same numbers as in an
undamaged copy, to the last bit, and names the damaged checkpoint if it needed
it; or it is refused with an error that names the place, and nothing in the
folder is changed. Then come folders that may not be written, disks that are
full, and files of another run.
"""

import argparse
import collections
import fcntl
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator

import jax
import small_runs

from coke_jax import main as coke_main

_NOBODY = 65534
_STEPS_BEFORE = 230  # of the training that is stopped

Damage = Callable[[pathlib.Path, random.Random], None]


# ----------------------------------------------------------- kinds of damage


def missing(path: pathlib.Path, _: random.Random) -> None:
  """The file is gone."""
  path.unlink()


def empty(path: pathlib.Path, _: random.Random) -> None:
  """The file has no bytes."""
  path.write_bytes(b'')


def truncated(path: pathlib.Path, generator: random.Random) -> None:
  """The end is missing."""
  data = path.read_bytes()
  path.write_bytes(data[: generator.randrange(max(len(data), 1))])


def flipped(path: pathlib.Path, generator: random.Random) -> None:
  """One bit is another."""
  data = bytearray(path.read_bytes() or b'x')
  data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
  path.write_bytes(bytes(data))


def zeros(path: pathlib.Path, _: random.Random) -> None:
  """As after a power cut: the right length, and nothing in it."""
  path.write_bytes(bytes(path.stat().st_size))


def noise(path: pathlib.Path, generator: random.Random) -> None:
  """Random bytes."""
  path.write_bytes(generator.randbytes(path.stat().st_size))


def a_folder(path: pathlib.Path, _: random.Random) -> None:
  """A folder has the file's name."""
  path.unlink()
  path.mkdir()


DAMAGES: tuple[Damage, ...] = (
  missing, empty, truncated, flipped, flipped, flipped, zeros, noise, a_folder,
)  # fmt: skip


# --------------------------------------------------------------- processes


def fork(work: Callable[[], int | None], output: int) -> int:
  """Starts a function in a process of its own; gives the process.

  Importing everything takes seconds, which a fork has behind it.

  Args:
    work: gives the exit status, or ends the program itself.
    output: the file descriptor that gets what it says.
  """
  sys.stdout.flush()
  child = os.fork()
  if child:
    return child
  status: int | str | None = 99
  try:
    os.dup2(output, 1)
    os.dup2(output, 2)
    status = work()
  except SystemExit as end:
    status = end.code
  except BaseException:
    traceback.print_exc()
  sys.stdout.flush()
  sys.stderr.flush()
  os._exit(status if isinstance(status, int) else int(status is not None))


def forked(work: Callable[[], int | None], log: pathlib.Path) -> int:
  """Runs a function in a process of its own; gives its exit status.

  What it says goes through a pipe, which no limit on files concerns.
  """
  read, write = os.pipe()
  child = fork(work, write)
  os.close(write)
  with log.open('wb') as out, os.fdopen(read, 'rb') as said:
    shutil.copyfileobj(said, out)
  return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def training(work: pathlib.Path) -> Callable[[], int | None]:
  """Goes on with a run, as the command line does."""

  def run() -> int | None:
    sys.argv[:] = ['coke', f'--workdir={work}']
    coke_main.entry_point()
    return 0

  return run


def stopped_run(folder: pathlib.Path, seed: int) -> pathlib.Path:
  """A work folder whose training was stopped (SIGTERM) before its end."""
  data = small_runs.write_graph(folder / f'data_{seed}', seed)
  work = folder / f'stopped_{seed}'
  log = work / 'metrics.jsonl'

  def run() -> int | None:
    sys.argv[:] = [
      'coke',
      *small_runs.arguments(
        data,
        work,
        num_epochs=30,
        validate_every_epochs=5,
        checkpoint_every_minutes=0.005,
        log_every_steps=5,
      ),
    ]
    coke_main.entry_point()
    return 0

  with (folder / f'log_{seed}.txt').open('wb') as out:
    child = fork(run, out.fileno())
  try:
    while True:
      lines = small_runs.metrics(work) if log.exists() else []
      if lines and lines[-1]['step'] >= _STEPS_BEFORE:
        break
      time.sleep(0.01)
  finally:
    os.kill(child, signal.SIGTERM)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
  if status != 128 + signal.SIGTERM:
    raise RuntimeError(f'{work}: exit status {status} after SIGTERM')
  return work


# ------------------------------------------------------------------- verdicts


def contents(work: pathlib.Path) -> dict[str, str]:
  """The SHA-256 of every file."""
  return {
    str(path.relative_to(work)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(work.rglob('*'))
    if path.is_file() and path.name != '.lock'
  }


def verdict(
  work: pathlib.Path,
  whole: pathlib.Path,
  damaged: str,
  before: dict[str, str],
  status: int,
  log: pathlib.Path,
) -> str:
  """What came of a damaged run; begins with WRONG if it should not have.

  Args:
    work: the damaged folder, after training has tried to go on.
    whole: the undamaged one, finished.
    damaged: the file, relative to the folder.
    before: `contents` before training tried.
    status: its exit status.
    log: what it said.
  """
  said = log.read_text(errors='replace')
  if 'Traceback' in said:
    return 'WRONG: a traceback'
  if status == 1:
    if 'error: ' not in said or str(work) not in said:
      return 'WRONG: the error does not name the folder'
    changed = {n for n, sha in before.items() if contents(work).get(n) != sha}
    return f'WRONG: changed {changed}' if changed else 'refused, and says why'
  if status != 0:
    return f'WRONG: exit status {status}'
  best_is_lost = 'using the newest' in said
  may_differ = {'metrics.jsonl'} if damaged == 'metrics.jsonl' else set()
  if best_is_lost:
    may_differ |= {'the numbers of the best checkpoint', 'results.json'}

  def compare() -> int:
    differences = set(small_runs.differences(work, whole))
    print(differences)
    return bool(differences - may_differ)

  if forked(compare, log.with_suffix('.compared')):
    return f'WRONG: differs: {log.with_suffix(".compared").read_text()}'
  if best_is_lost:
    return 'the newest used for the best, the bad one named'
  if 'trying the one before' in said:
    return 'an earlier checkpoint used, the bad one named'
  if 'lines are missing' in said:
    return 'went on, and says what is missing'
  return 'not needed, or without effect'


# ---------------------------------------------------------------------- cases


def file_cases(stopped: pathlib.Path) -> Iterator[tuple[str, str, Damage]]:
  """(name, damaged file, damage) of each file and kind of damage."""
  for file in contents(stopped):
    for number, damage in enumerate(DAMAGES):

      def apply(
        work: pathlib.Path,
        generator: random.Random,
        file: str = file,
        damage: Damage = damage,
      ) -> None:
        damage(work / file, generator)

      yield f'{file}: {damage.__name__} ({number})', file, apply


def steps(work: pathlib.Path) -> list[pathlib.Path]:
  """The folders of the checkpoints, the newest first."""
  return sorted(
    (work / 'checkpoints').glob('step_*'),
    key=lambda path: -int(path.name.rsplit('_', 1)[1]),
  )


def other_cases(other: pathlib.Path) -> Iterator[tuple[str, str, Damage]]:
  """Whole checkpoints gone or emptied, and files of another run."""

  def from_other(*names: str) -> Damage:
    def apply(work: pathlib.Path, _: random.Random) -> None:
      for name in names:
        shutil.copy(other / name, work / name)

    return apply

  def without_newest(work: pathlib.Path, _: random.Random) -> None:
    shutil.rmtree(steps(work)[0])

  def without_files(work: pathlib.Path, _: random.Random) -> None:
    for path in steps(work)[0].rglob('*'):
      if path.is_file():
        path.unlink()

  def without_any(work: pathlib.Path, _: random.Random) -> None:
    for folder in steps(work):
      shutil.rmtree(folder)

  def with_the_newest_of_another(work: pathlib.Path, _: random.Random) -> None:
    newest = steps(work)[0]
    shutil.rmtree(newest)
    shutil.copytree(steps(other)[0], newest)

  yield 'the newest checkpoint is gone', 'metrics.jsonl', without_newest
  yield 'the newest checkpoint has no files', 'checkpoints', without_files
  yield 'all checkpoints are gone', 'metrics.jsonl', without_any
  yield (
    "another run's checkpoint",
    'checkpoints',
    with_the_newest_of_another,
  )
  for names in (
    ('config.json',),
    ('vocabulary.json',),
    ('data.npz',),
    ('vocabulary.json', 'data.npz'),
    ('config.json', 'vocabulary.json', 'data.npz'),
  ):
    yield f"another run's {', '.join(names)}", names[0], from_other(*names)


def as_nobody(work: Callable[[], int | None]) -> Callable[[], int | None]:
  """Takes away the rights of root, who may write everywhere."""

  def run() -> int | None:
    if os.getuid() == 0:
      os.setgroups([])
      os.setgid(_NOBODY)
      os.setuid(_NOBODY)
    return work()

  return run


def with_small_files(
  work: Callable[[], int | None], most_bytes: int
) -> Callable[[], int | None]:
  """Lets no file grow beyond a size, as a full disk would."""

  def run() -> int | None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    return work()

  return run


def check_disk(
  folder: pathlib.Path, stopped: pathlib.Path, whole: pathlib.Path
) -> dict[str, str]:
  """Folders that may not be written, full disks, two processes at once."""
  outcomes: dict[str, str] = {}

  def attempt(
    name: str,
    limited: Callable[[Callable[[], int | None]], Callable[[], int | None]],
    prepare: Callable[[pathlib.Path], None] = lambda work: None,
    release: Callable[[pathlib.Path], None] = lambda work: None,
  ) -> None:
    """Refused while it lasts; then goes on as if nothing had been."""
    work = folder / f'disk_{len(outcomes)}'
    shutil.copytree(stopped, work)
    before = {
      file: sha
      for file, sha in contents(work).items()
      if not file.startswith('metrics') and 'checkpoints' not in file
    }
    kept = steps(work)[0].name
    prepare(work)
    log = work.with_suffix('.log')
    status = forked(limited(training(work)), log)
    release(work)
    outcomes[name] = verdict(work, whole, '', before, status, log)
    if not outcomes[name].startswith('refused'):
      outcomes[name] = f'WRONG: not refused: {outcomes[name]}'
      return
    if not (work / 'checkpoints' / kept).is_dir():
      outcomes[name] = f'WRONG: lost {kept}'
      return
    log = work.with_suffix('.again')
    status = forked(training(work), log)
    again = verdict(work, whole, '', before, status, log)
    if status or again.startswith('WRONG'):
      outcomes[name] = f'WRONG: does not go on afterwards: {again}'
    else:
      outcomes[name] += '; goes on afterwards'
    print(f'{name:<70} {outcomes[name]}', flush=True)

  def read_only(work: pathlib.Path) -> None:
    for path in [*work.rglob('*'), work]:
      path.chmod(0o555 if path.is_dir() else 0o444)

  def writable(work: pathlib.Path) -> None:
    for path in [work, *work.rglob('*')]:
      path.chmod(0o755 if path.is_dir() else 0o644)

  attempt('a folder that may not be written', as_nobody, read_only, writable)
  for most in (0, 300, 3000, 20_000):
    attempt(
      f'no file may exceed {most:,} bytes',
      lambda work, most=most: with_small_files(work, most),  # type: ignore[misc]
    )
  lock = []

  def hold(work: pathlib.Path) -> None:
    lock.append((work / '.lock').open('a'))
    fcntl.flock(lock[0], fcntl.LOCK_EX)

  attempt(
    'another process trains here',
    lambda work: work,
    hold,
    lambda work: lock[0].close(),
  )
  return outcomes


def main(argv: list[str] | None = None) -> int:
  """Tries the damages; the status is 1 if any passes silently."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--cases', type=int, default=10**6, help='how many, drawn at random'
  )
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  wrong = 0
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    folder.chmod(0o755)
    jax.config.update('jax_platforms', 'cpu')
    jax.config.update('jax_compilation_cache_dir', str(folder / 'compiled'))
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)
    stopped, other = (stopped_run(folder, seed) for seed in (0, 1))
    whole = folder / 'whole'
    shutil.copytree(stopped, whole)
    if forked(training(whole), folder / 'whole.log'):
      raise RuntimeError((folder / 'whole.log').read_text())
    generator = random.Random(flags.seed)
    cases = list(file_cases(stopped))
    generator.shuffle(cases)
    cases = [*other_cases(other), *cases[: flags.cases]]
    outcomes: collections.Counter[str] = collections.Counter()
    table = list(check_disk(folder, stopped, whole).items())
    for number, (name, file, damage) in enumerate(cases):
      work = folder / f'case_{number}'
      shutil.copytree(stopped, work)
      damage(work, random.Random(f'{flags.seed} {name}'))
      before = contents(work)
      log = folder / f'case_{number}.log'
      status = forked(training(work), log)
      outcome = verdict(work, whole, file, before, status, log)
      outcome = outcome.replace(str(work), '')
      if outcome.startswith('WRONG'):
        outcome += '\n' + log.read_text(errors='replace')[-2000:]
      table.append((name, outcome))
      print(f'{name:<70} {outcome}', flush=True)
      shutil.rmtree(work)
  for _, outcome in table:
    outcomes[outcome.partition('\n')[0]] += 1
    wrong += outcome.startswith('WRONG')
  print(f'{len(table)} faults injected: {dict(outcomes)}; {wrong} wrong')
  return bool(wrong)


if __name__ == '__main__':
  sys.exit(main())
