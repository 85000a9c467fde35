"""The flags of the benchmarks, and the order of what they ask for."""

import argparse
import dataclasses
import datetime
import pathlib
import re
import sys
from collections.abc import Sequence
from typing import Any

from coke_jax.cli import commands
from experiments.benchmarks import data_sets, plan, processes, report
from experiments.paper import document
from experiments.paper import options as options_lib

_DESCRIPTION = """How fast this machine trains and ranks.

Measures training (instances, queries and epochs, GFLOP/s, memory, compile time)
beside an equal PyTorch model, the full test evaluation, and growth with the
vocabulary and the number of blocks. Writes tables and a JSON to
experiments/results/benchmarks/<device>. See experiments/benchmarks/README.md.
"""


def make_parser() -> argparse.ArgumentParser:
  """The flags."""
  parser = argparse.ArgumentParser(
    prog='benchmark.py',
    description=_DESCRIPTION,
    formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  _add_list(parser, 'parts', plan.PARTS, plan.PARTS, 'what is measured')
  _add_list(
    parser,
    'variants',
    tuple(plan.VARIANTS),
    None,
    f'ways to train, of {", ".join(plan.VARIANTS)}; default: all, or ours '
    'alone where PyTorch is missing',
  )
  _add_list(
    parser, 'datasets', tuple(plan.LAYERS), tuple(plan.LAYERS), 'data sets'
  )
  for name, default, text in (
    (
      'layers',
      (),
      'blocks; default: those of plan.LAYERS, 12 (paths: 6) and 3',
    ),
    ('batch-sizes', (512, 2048), 'rows in a batch; default: 512,2048'),
    (
      'threads',
      None,
      'cores to hold to; default: 1,2 on a CPU, all cores beside a GPU',
    ),
  ):
    parser.add_argument(
      f'--{name}', type=_positives, default=default, metavar='N,...', help=text
    )
  parser.add_argument(
    '--rounds',
    type=options_lib.positive,
    default=3,
    metavar='N',
    help='turns that each setting has; default: 3',
  )
  parser.add_argument(
    '--steps',
    type=options_lib.positive,
    default=1,
    metavar='N',
    help='training steps in a round, at least; default: 1',
  )
  parser.add_argument(
    '--seconds',
    type=float,
    default=5.0,
    metavar='S',
    help='how long a round of training takes, at least; default: 5',
  )
  parser.add_argument(
    '--smoke',
    action='store_true',
    help='tiny random data and models instead, 2 rounds: shows that it runs',
  )
  parser.add_argument(
    '--out',
    type=pathlib.Path,
    help='folder for the results; default: experiments/results/benchmarks',
  )
  return parser


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures what the flags ask for.

  Exits with 1 if something could not be measured; the results say what.
  """
  parser = make_parser()
  given = parser.parse_args(arguments)
  if given.smoke:
    if not given.out:
      parser.error('--smoke needs --out: its numbers are no results')
    given.rounds = 2
  out = given.out or document.RESULTS / 'benchmarks'
  with options_lib.stoppable():
    try:
      failed = run(given, out)
    except (processes.WorkerError, *commands.EXPECTED_ERRORS) as error:
      sys.exit(f'error: {error}')
  if failed:
    sys.exit(f'error: not measured: {"; ".join(failed)}')


def run(given: argparse.Namespace, out: pathlib.Path) -> list[str]:
  """Measures group by group; writes the results after each.

  Args:
    given: the flags.
    out: the folder for the results.

  Returns:
    What failed.
  """
  machine = processes.describe_machine()
  print(f'{machine["device"]} ({machine["processor"]})')
  results: dict[str, Any] = {
    'started': datetime.datetime.now(datetime.UTC).isoformat(
      timespec='seconds'
    ),
    'machine': machine,
    'rounds': given.rounds,
    'smoke': given.smoke,
    'groups': [],
  }
  name = re.sub(r'[^a-z0-9]+', '-', machine['device'].lower()).strip('-')
  failed = []
  groups = make_groups(given, machine)
  for number, group in enumerate(groups, start=1):
    print(f'[{number}/{len(groups)}] {group.section}: {group.title}')
    members = processes.measure(group.settings, given.rounds, _say)
    record = {
      'section': group.section,
      'title': group.title,
      'members': members,
    }
    report.summarize(record)
    results['groups'].append(record)
    failed += [
      f'{group.section}, {group.title}, {member["error"]}'
      for member in members
      if 'error' in member
    ]
    page = report.write(results, out, name)
  print(f'\n{report.render(results)}\nwritten to {page} and .json beside it')
  return failed


def make_groups(
  given: argparse.Namespace, machine: dict[str, Any]
) -> list[plan.Group]:
  """What the flags ask for, on this machine."""
  variants = given.variants or tuple(plan.VARIANTS)
  theirs = [name for name in variants if name.startswith('torch')]
  if theirs and 'torch' not in machine['versions']:
    missing = "PyTorch is not installed (pip install '.[benchmarks]')"
    if given.variants:
      sys.exit(f'error: {theirs[0]}: {missing}')
    print(f'{missing}: ours alone')
    variants = tuple(name for name in variants if name not in theirs)
  threads = given.threads
  if threads is None:
    on_cpu = machine['platform'] == 'cpu'
    threads = [n for n in (1, 2) if n <= machine['cores']] if on_cpu else [0]
  if given.smoke:
    return _with_data(plan.smoke_groups(variants))
  base = plan.Setting('training', steps=given.steps, seconds=given.seconds)
  groups = []
  if 'training' in given.parts:
    groups += plan.training_groups(
      base,
      variants,
      given.datasets,
      given.layers,
      given.batch_sizes,
      threads,
    )
  if 'evaluation' in given.parts:
    groups += plan.evaluation_groups(
      base, given.datasets, given.layers, max(threads)
    )
  if 'growth' in given.parts:
    groups += plan.growth_groups(base, variants, max(threads))
  return _with_data(groups)


def _with_data(groups: list[plan.Group]) -> list[plan.Group]:
  """The groups, on random data where a data set is not on this machine."""
  datasets = {setting.dataset for g in groups for setting in g.settings}
  missing = {name: data_sets.why_random(name) for name in sorted(datasets)}
  for name, reason in missing.items():
    if reason:
      print(f'{name}: random data with the same counts ({reason})')
  return [
    dataclasses.replace(
      group,
      settings=tuple(
        dataclasses.replace(
          setting, random=setting.random or bool(missing[setting.dataset])
        )
        for setting in group.settings
      ),
    )
    for group in groups
  ]


def _add_list(
  parser: argparse.ArgumentParser,
  name: str,
  known: Sequence[str],
  default: Sequence[str] | None,
  text: str,
) -> None:
  if default:
    text = f'{text}; default: {",".join(default)}'
  parser.add_argument(
    f'--{name}',
    type=options_lib.list_of(
      name.removesuffix('s'), {value: value for value in known}
    ),
    default=default,
    metavar='NAME,...',
    help=text,
  )


def _positives(text: str) -> tuple[int, ...]:
  return tuple(options_lib.positive(part) for part in text.split(','))


def _say(line: str) -> None:
  print(line, flush=True)
