"""Damages every file of a work folder: is training right, or refused?

    python tests/robustness/damage.py            # all: an hour
    python tests/robustness/damage.py --cases=20

A training is stopped before its end. For each file it has left and each kind
of damage, it goes on in a copy. Either it comes to the same numbers as in an
undamaged copy, to the last bit, and names the damaged checkpoint if it needed
it; or it is refused with an error that names the place, and nothing in the
folder is changed. Among the cases are folders that may not be written, disks
that are full, and files of another run.
"""

import argparse
import collections
import functools
import hashlib
import itertools
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable

import damage_cases
import forks
import jax
import small_runs

from coke_jax import main as coke_main

_STEPS_BEFORE = 230  # of the training that is stopped
_UNHARMED = 'not needed, or without effect'
_SHOWN_CHARACTERS = 3000  # of what the program said, when something is wrong


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
        log_every_steps=10,
      ),
    ]
    coke_main.entry_point()
    return 0

  with (folder / f'log_{seed}.txt').open('wb') as out:
    child = forks.fork(run, out.fileno())
  try:
    while (
      os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    ):
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


def contents(work: pathlib.Path) -> dict[str, str]:
  """The SHA-256 of every file."""
  return {
    str(path.relative_to(work)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(work.rglob('*'))
    if path.is_file() and path.name != '.lock'
  }


class Bench:
  """Where the cases are tried, each in a copy of a stopped training.

  Attributes:
    stopped: the work folder that is copied.
    logs: what the program has said in the last case.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self.stopped = stopped_run(folder, 0)
    self.logs: list[pathlib.Path] = []
    self._whole: dict[str, str] = {}
    whole = self._copy('whole')
    if self._train(whole):
      raise RuntimeError(self.said())
    self._whole = self._outcome(whole)

  @functools.cached_property
  def other(self) -> pathlib.Path:
    """The work folder of another run, which was stopped as well."""
    return stopped_run(self._folder, 1)

  def said(self) -> str:
    """What the program has said in the last case."""
    return '\n'.join(log.read_text(errors='replace') for log in self.logs)

  def damaged(self, case: damage_cases.Case, seed: int) -> str:
    """What comes of damage; begins with WRONG if it should not."""
    work = self._copy('case')
    case.damage(work, random.Random(f'{seed} {case.name}'))
    before = contents(work)
    return self._verdict(work, case.file, before, self._train(work))

  def hindered(self, case: damage_cases.Hindrance) -> str:
    """Likewise: refused while it lasts; then goes on as if nothing had been."""
    work = self._copy('case')
    newest = damage_cases.steps(work)[0].relative_to(work)
    before = {
      file: sha
      for file, sha in contents(work).items()
      if file != 'metrics.jsonl'
      and ('checkpoints' not in file or str(newest) in file)
    }
    with case.hold(work):
      status = self._train(work, case.limit)
      outcome = self._verdict(work, '', before, status)
    if not outcome.startswith('refused'):
      return f'WRONG: not refused: {outcome}'
    again = self._verdict(work, '', before, self._train(work, again=True))
    if again != _UNHARMED:
      return f'WRONG: does not go on afterwards: {again}'
    return f'{outcome}; goes on afterwards'

  def _copy(self, name: str) -> pathlib.Path:
    work = self._folder / name
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(self.stopped, work)
    return work

  def _train(
    self,
    work: pathlib.Path,
    limit: Callable[[forks.Work], forks.Work] = lambda work: work,
    *,
    again: bool = False,
  ) -> int:
    """Goes on with a run, as the command line does; gives the exit status."""

    def run() -> int | None:
      sys.argv[:] = ['coke', f'--workdir={work}']
      try:
        coke_main.entry_point()
      except SystemExit as end:
        if end.code:
          raise
      # In the same process, where all is compiled.
      outcome = json.dumps(small_runs.outcome(work))
      work.with_suffix('.outcome').write_text(outcome)
      return 0

    log = work.with_suffix('.again' if again else '.log')
    self.logs = [*self.logs, log] if again else [log]
    return forks.forked(limit(run), log)

  def _outcome(self, work: pathlib.Path) -> dict[str, str]:
    found = json.loads(work.with_suffix('.outcome').read_text())
    assert isinstance(found, dict)
    return found

  def _verdict(
    self, work: pathlib.Path, damaged: str, before: dict[str, str], status: int
  ) -> str:
    """What came of a run; begins with WRONG if it should not have.

    Args:
      work: the work folder, after training has tried to go on.
      damaged: the file that was damaged, relative to the folder.
      before: `contents` that must not change before training tried.
      status: its exit status.
    """
    said = self.logs[-1].read_text(errors='replace')
    if 'Traceback' in said:
      return 'WRONG: a traceback'
    if status == 1:
      if 'error: ' not in said or str(work) not in said:
        return 'WRONG: the error does not name the folder'
      after = contents(work)
      changed = sorted(n for n, sha in before.items() if after.get(n) != sha)
      return f'WRONG: changed {changed}' if changed else 'refused, and says why'
    if status != 0:
      return f'WRONG: exit status {status}'
    best_is_lost = 'using the newest' in said
    may_differ = {'metrics.jsonl'} if damaged == 'metrics.jsonl' else set()
    if best_is_lost:
      may_differ |= {'the numbers of the best checkpoint', 'results.json'}
    differing = small_runs.differences(self._outcome(work), self._whole)
    if set(differing) - may_differ:
      return f'WRONG: differs: {differing}'
    if best_is_lost:
      return 'the newest used for the best, the bad one named'
    if 'trying the one before' in said:
      return 'an earlier checkpoint used, the bad one named'
    if 'lines are missing' in said:
      return 'went on, and says what is missing'
    return _UNHARMED


def main(argv: list[str] | None = None) -> int:
  """Tries the damages; the status is 1 if any passes silently."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--cases', type=int, help='how many, drawn at random; default: all'
  )
  parser.add_argument('--seed', type=int, default=0)
  flags = parser.parse_args(argv)
  outcomes: collections.Counter[str] = collections.Counter()
  with tempfile.TemporaryDirectory() as temporary:
    folder = pathlib.Path(temporary)
    environment = small_runs.environment(folder / 'compiled')
    for name, kind in (
      ('jax_platforms', str),
      ('jax_compilation_cache_dir', str),
      ('jax_persistent_cache_min_compile_time_secs', float),
    ):
      jax.config.update(name, kind(environment[name.upper()]))
    bench = Bench(folder)
    groups = damage_cases.cases(bench.stopped, lambda: bench.other)
    for number, group in enumerate(groups):
      random.Random(f'{flags.seed} {number}').shuffle(group)
    # In turns, so that a few cases are of all kinds, too.
    turns = itertools.chain.from_iterable(itertools.zip_longest(*groups))
    drawn = [case for case in turns if case is not None][: flags.cases]
    for case in drawn:
      if isinstance(case, damage_cases.Hindrance):
        outcome = bench.hindered(case)
      else:
        outcome = bench.damaged(case, flags.seed)
      print(f'{case.name:<72} {outcome}', flush=True)
      if outcome.startswith('WRONG'):
        print(bench.said()[-_SHOWN_CHARACTERS:], flush=True)
      outcomes[outcome] += 1
  wrong = sum(n for name, n in outcomes.items() if name.startswith('WRONG'))
  print(f'{outcomes.total()} faults injected: {dict(outcomes)}; {wrong} wrong')
  return bool(wrong)


if __name__ == '__main__':
  sys.exit(main())
