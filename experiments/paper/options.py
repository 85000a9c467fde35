"""The flags of the scripts."""

import argparse
import contextlib
import dataclasses
import pathlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from coke_jax import errors
from experiments.paper import settings

_INTERRUPTED = 130  # the exit status after Ctrl-C, by convention of shells
DATASETS = (*settings.TRIPLES, *settings.PATHS)


@dataclasses.dataclass(frozen=True)
class Options:
  """The flags of a script.

  Attributes:
    budget: a key of settings.BUDGETS.
    out: the folder for results, records and work folders.
    seeds: the number of seeds, counted from 0.
    datasets: the paper's data sets whose models are trained.
    path_lengths: values of k. For each k, a model is trained on the paths with
      at most k relations.
  """

  budget: str
  out: pathlib.Path
  seeds: int = 1
  datasets: tuple[str, ...] = DATASETS
  path_lengths: tuple[int, ...] = settings.PATH_LENGTHS

  def run(
    self, dataset: str, max_path_length: int = 1, seed: int = 0
  ) -> settings.Run:
    """Returns the run of one model, even if the flags do not select it."""
    return settings.make_run(
      dataset, budget=self.budget, seed=seed, max_path_length=max_path_length
    )

  def triple_runs(self) -> list[settings.Run]:
    """Returns the runs on triples, one for each data set."""
    return [self.run(dataset) for dataset in settings.TRIPLES]

  def path_runs(self) -> list[settings.Run]:
    """Returns the runs on paths, one for each data set and maximum length."""
    return [
      self.run(dataset, length)
      for dataset in settings.PATHS
      for length in settings.path_lengths(self.budget)
    ]

  def selected(self, runs: Iterable[settings.Run]) -> list[settings.Run]:
    """Returns those runs that the flags select, with every seed."""
    return [
      self.run(run.dataset, run.max_path_length, seed)
      for run in runs
      if run.dataset in self.datasets
      and (
        run.dataset in settings.TRIPLES
        or run.max_path_length in self.path_lengths
      )
      for seed in range(self.seeds)
    ]


def new_parser(description: str | None) -> argparse.ArgumentParser:
  """Returns a parser without flags whose help text is `description`."""
  return argparse.ArgumentParser(
    description=description,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )


def make_parser(description: str | None) -> argparse.ArgumentParser:
  """Returns a parser of the flags that all scripts have."""
  parser = new_parser(description)
  parser.add_argument(
    '--budget',
    required=True,
    choices=settings.BUDGETS,
    help='; '.join(map(': '.join, settings.BUDGETS.items())),
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
    type=list_of('length', settings.PATH_LENGTHS),
    metavar='K,...',
    help='train only the models on paths with at most K relations; default: '
    f'{",".join(map(str, settings.PATH_LENGTHS))} (smoke: '
    f'{",".join(map(str, settings.SMOKE_PATH_LENGTHS))})',
  )
  return parser


def add_datasets(parser: argparse.ArgumentParser) -> None:
  """Adds the flag --datasets."""
  parser.add_argument(
    '--datasets',
    type=list_of('data set', DATASETS),
    default=DATASETS,
    metavar='NAME,...',
    help='only models of these data sets; tables also show models that were '
    f'trained before; default: {",".join(DATASETS)}',
  )


def parse(
  parser: argparse.ArgumentParser, arguments: Sequence[str] | None = None
) -> tuple[Options, argparse.Namespace]:
  """Returns the common options, and all flags including the script's own."""
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
  make: Callable[[Options], None], description: str | None
) -> None:
  """Parses the flags of a script and makes its table or figure."""
  options, _ = parse(make_parser(description))
  with reported_errors():
    make(options)


@contextlib.contextmanager
def reported_errors() -> Iterator[None]:
  """Ends the program without a traceback on Ctrl-C and on expected errors."""
  try:
    yield
  except KeyboardInterrupt as stop:
    reason = str(stop) or 'stopped'
    print(f'{reason}; repeat the command to continue', file=sys.stderr)
    sys.exit(_INTERRUPTED)
  except (errors.CokeError, OSError) as error:
    sys.exit(f'error: {error}')


def positive(text: str) -> int:
  """Parses a flag that is an integer above 0."""
  try:
    number = int(text)
  except ValueError:
    number = 0
  if number < 1:
    raise argparse.ArgumentTypeError(f'{text!r}: expected an integer above 0')
  return number


def list_of(what: str, values: Iterable[Any]) -> Any:
  """Returns the type of a flag that is a comma-separated list of known values.

  Args:
    what: the name of a value in error messages.
    values: the known values.
  """
  known = {str(value): value for value in values}

  def parse_list(text: str) -> tuple[Any, ...]:
    unknown = [part for part in text.split(',') if part not in known]
    if unknown:
      raise argparse.ArgumentTypeError(
        f'unknown {what} {unknown[0]!r}: expected one or more of '
        f'{", ".join(known)}, separated by commas'
      )
    return tuple(known[part] for part in dict.fromkeys(text.split(',')))

  return parse_list
