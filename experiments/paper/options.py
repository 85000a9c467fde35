"""The flags that all scripts have."""

import argparse
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from coke_jax.cli import commands
from experiments.paper import settings

_INTERRUPTED = 130  # what a shell expects after Ctrl-C
DATASETS = (*settings.TRIPLES, *settings.PATHS)


@dataclasses.dataclass(frozen=True)
class Options:
  """What a script is asked for.

  Attributes:
    budget: of settings.BUDGETS.
    out: where results, records and work folders go.
    seeds: how many seeds, from 0 on.
    datasets: the paper's data sets whose models are trained now.
    path_lengths: PATHS <= k of each of these k.
  """

  budget: str
  out: pathlib.Path
  seeds: int = 1
  datasets: tuple[str, ...] = DATASETS
  path_lengths: tuple[int, ...] = settings.PATH_LENGTHS

  def runs(
    self, datasets: Iterable[str], max_path_length: int = 1
  ) -> list[settings.Run]:
    """The models of those data sets that are asked for, seed by seed."""
    return [
      self.run(dataset, max_path_length, seed)
      for dataset in datasets
      if dataset in self.datasets
      for seed in range(self.seeds)
    ]

  def path_runs(self) -> list[settings.Run]:
    """The models of path queries that are asked for."""
    return [
      run
      for dataset in settings.PATHS
      for length in self.path_lengths
      for run in self.runs([dataset], length)
    ]

  def run(
    self, dataset: str, max_path_length: int = 1, seed: int = 0
  ) -> settings.Run:
    """One model."""
    return settings.make_run(
      dataset,
      budget=self.budget,
      seed=seed,
      out=self.out,
      max_path_length=max_path_length,
    )


def make_parser(description: str | None) -> argparse.ArgumentParser:
  """A parser of the flags that all scripts have."""
  parser = argparse.ArgumentParser(
    description=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  budgets = '; '.join(
    f'{name}: {is_}' for name, is_ in settings.BUDGETS.items()
  )
  parser.add_argument(
    '--budget', required=True, choices=settings.BUDGETS, help=budgets
  )
  parser.add_argument(
    '--out',
    type=pathlib.Path,
    help='folder for results, records and work folders; default: '
    'experiments/results/<budget>',
  )
  parser.add_argument(
    '--seeds',
    type=positive,
    default=1,
    metavar='N',
    help='train with seeds 0 to N-1; tables give mean and standard deviation '
    'over all seeds that were trained so far; default: 1',
  )
  add_datasets(parser)
  parser.add_argument(
    '--path-lengths',
    type=list_of('length', {str(k): k for k in settings.PATH_LENGTHS}),
    metavar='K,...',
    help='likewise, train PATHS <= K for these K only; default: '
    f'{",".join(map(str, settings.PATH_LENGTHS))} (smoke: '
    f'{",".join(map(str, settings.SMOKE_PATH_LENGTHS))})',
  )
  return parser


def add_datasets(parser: argparse.ArgumentParser) -> None:
  """Adds the flag --datasets."""
  parser.add_argument(
    '--datasets',
    type=list_of('data set', {name: name for name in DATASETS}),
    default=DATASETS,
    metavar='NAME,...',
    help='only models of these data sets; tables also show what was trained '
    f'before; default: {",".join(DATASETS)}',
  )


def parse(
  parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> tuple[Options, argparse.Namespace]:
  """The options, and the flags that a script may have besides."""
  given = parser.parse_args(arguments)
  possible = settings.path_lengths(given.budget)
  lengths = given.path_lengths or possible
  if not set(lengths) <= set(possible):
    parser.error(
      f'argument --path-lengths: expected some of {possible} at the '
      f'{given.budget} budget, got {lengths}'
    )
  options = Options(
    budget=given.budget,
    out=given.out or settings.default_out(given.budget),
    seeds=given.seeds,
    datasets=given.datasets,
    path_lengths=lengths,
  )
  return options, given


def run_script(
  make: Callable[[Options], None],
  description: str | None,
  arguments: Sequence[str] | None,
) -> None:
  """What each script does: reads its flags and makes its table or figure."""
  options, _ = parse(make_parser(description), arguments)
  with stoppable():
    try:
      make(options)
    except commands.EXPECTED_ERRORS as error:
      sys.exit(f'error: {error}')


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
  """Ends the program without a traceback when it is asked to stop."""
  try:
    yield
  except KeyboardInterrupt as stop:
    reason = str(stop) or 'stopped'
    print(f'{reason}; the same command goes on', file=sys.stderr)
    sys.exit(_INTERRUPTED)


def positive(text: str) -> int:
  """A type of flag: an integer above 0."""
  try:
    number = int(text)
  except ValueError:
    number = 0
  if number < 1:
    raise argparse.ArgumentTypeError(f'{text!r}: expected an integer above 0')
  return number


def list_of(what: str, known: dict[str, Any]) -> Any:
  """A type of flag: some of the known values, between commas.

  Args:
    what: one of them, for errors.
    known: values by how they are written.
  """

  def parse_list(text: str) -> tuple[Any, ...]:
    unknown = [part for part in text.split(',') if part not in known]
    if unknown:
      raise argparse.ArgumentTypeError(
        f'unknown {what} {unknown[0]!r}: expected some of '
        f'{",".join(known)}, between commas'
      )
    return tuple(known[part] for part in dict.fromkeys(text.split(',')))

  return parse_list
