"""Tests that training detects or survives damage to any file of a work folder.

    python tests/robustness/damage.py             # all cases, in about an hour
    python tests/robustness/damage.py --cases=20  # 20 random cases

A training is interrupted. For each file of its work folder and each kind of
damage, the training continues in a damaged copy. Two outcomes are correct:

- The results equal those in an undamaged copy bit for bit. Only results that
  depend on a lost file may differ. A warning names each damaged checkpoint that
  was needed.
- An error names the work folder, and no file in the folder has changed.

The cases include read-only folders, full disks, and files of another run.
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

_STEPS_BEFORE = 230  # minimum number of steps before the interruption
_UNHARMED = 'not needed, or without effect'
_SHOWN_CHARACTERS = 3000  # After a failure, this much of the output is shown.


def stopped_run(folder: pathlib.Path, seed: int) -> pathlib.Path:
  """Returns a work folder whose training was interrupted by SIGTERM."""
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
      lines = small_runs.metrics(work, growing=True) if log.exists() else []
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
  """Returns the SHA-256 of each file by path, without the lock."""
  return {
    str(path.relative_to(work)): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in sorted(work.rglob('*'))
    if path.is_file() and path.name != '.lock'
  }


class Bench:
  """Tries each case in a copy of an interrupted training's work folder.

  Attributes:
    stopped: the work folder that is copied.
    logs: the files with the output of the program in the last case.
  """

  def __init__(self, folder: pathlib.Path):
    self._folder = folder
    self.stopped = stopped_run(folder, 0)
    self.logs: list[pathlib.Path] = []
    self._whole: dict[str, str] = {}
    whole = self._copy('whole')
    if self._train(whole):
      raise RuntimeError(self.output())
    self._whole = self._outcome(whole)

  @functools.cached_property
  def other(self) -> pathlib.Path:
    """The work folder of another interrupted run."""
    return stopped_run(self._folder, 1)

  def output(self) -> str:
    """Returns the output of the program in the last case."""
    return '\n'.join(log.read_text(errors='replace') for log in self.logs)

  def damaged(self, case: damage_cases.Case, seed: int) -> str:
    """Tries a case, and returns the outcome.

    A wrong outcome begins with WRONG.
    """
    work = self._copy('case')
    case.damage(work, random.Random(f'{seed} {case.name}'))
    before = contents(work)
    return self._verdict(work, case.file, before, self._train(work))

  def hindered(self, case: damage_cases.Hindrance) -> str:
    """Checks that training fails during a hindrance, and then continues."""
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
      return f'WRONG: does not continue afterwards: {again}'
    return f'{outcome}; continues afterwards'

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
    """Continues a run on the command line and returns the exit status."""

    def run() -> int | None:
      sys.argv[:] = ['coke', f'--workdir={work}']
      try:
        coke_main.entry_point()
      except SystemExit as end:
        if end.code:
          raise
      # Read the results in this process, which has compiled the JAX programs.
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
    """Checks a continued training, and describes the outcome.

    Args:
      work: the work folder after the training.
      damaged: the `file` of the case, or an empty text.
      before: the `contents` before the training. If the training ends with an
        error, these files must be unchanged.
      status: the exit status of the training.
    """
    output = self.logs[-1].read_text(errors='replace')
    if 'Traceback' in output:
      return 'WRONG: a traceback'
    if status == 1:
      if 'error: ' not in output or str(work) not in output:
        return 'WRONG: the error does not name the folder'
      after = contents(work)
      changed = sorted(n for n, sha in before.items() if after.get(n) != sha)
      return f'WRONG: changed {changed}' if changed else 'refused with an error'
    if status != 0:
      return f'WRONG: exit status {status}'
    best_is_lost = 'using the newest' in output
    may_differ = {'metrics.jsonl'} if damaged == 'metrics.jsonl' else set()
    if best_is_lost:
      may_differ |= {'the state of the best checkpoint', 'results.json'}
    differing = small_runs.differences(self._outcome(work), self._whole)
    if set(differing) - may_differ:
      return f'WRONG: other results: {differing}'
    if best_is_lost:
      return 'used the newest as the best, and named the damaged one'
    if 'trying the previous checkpoint' in output:
      return 'used an earlier checkpoint, and named the damaged one'
    if 'lines are missing' in output:
      return 'continued, and named what is missing'
    return _UNHARMED


def main(argv: list[str] | None = None) -> int:
  """Tries the cases. Returns 1 if an outcome is wrong."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--cases', type=int, help='number of random cases; default: all'
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
    # Take cases from the groups in turn, so that a few cases cover all groups.
    turns = itertools.chain.from_iterable(itertools.zip_longest(*groups))
    drawn = [case for case in turns if case is not None][: flags.cases]
    for case in drawn:
      if isinstance(case, damage_cases.Hindrance):
        outcome = bench.hindered(case)
      else:
        outcome = bench.damaged(case, flags.seed)
      print(f'{case.name:<72} {outcome}', flush=True)
      if outcome.startswith('WRONG'):
        print(bench.output()[-_SHOWN_CHARACTERS:], flush=True)
      outcomes[outcome] += 1
  wrong = sum(n for name, n in outcomes.items() if name.startswith('WRONG'))
  print(f'{outcomes.total()} faults injected: {dict(outcomes)}; {wrong} wrong')
  return bool(wrong)


if __name__ == '__main__':
  sys.exit(main())
