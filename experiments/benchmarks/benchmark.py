"""Measures training and ranking, and compares training with PyTorch.

    python -m experiments.benchmarks.benchmark

Writes the tables to <device>.md and all measurements to <device>.json, both in
the folder experiments/results/benchmarks. README.md beside this script explains
the measurements.
"""

import argparse
import dataclasses
import datetime
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from experiments.benchmarks import data_sets, plan, processes, report
from experiments.paper import document
from experiments.paper import options as options_lib


def make_parser() -> argparse.ArgumentParser:
  """Returns the parser of the flags."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument(
    '--parts',
    type=options_lib.list_of('part', plan.PARTS),
    default=plan.PARTS,
    metavar='NAME,...',
    help=f'what to measure; default: {",".join(plan.PARTS)}',
  )
  parser.add_argument(
    '--variants',
    type=options_lib.list_of('variant', plan.VARIANTS),
    metavar='NAME,...',
    help=f'ways to train: {", ".join(plan.VARIANTS)}; default: all, or only '
    'those of coke_jax if PyTorch is not installed',
  )
  for name, default, text in (
    ('layers', (12, 3), 'numbers of blocks; default: 12,3'),
    ('batch-sizes', (512,), 'rows in a batch; default: 512'),
    (
      'threads',
      None,
      'numbers of cores to use; default: 2 on a CPU, all with a GPU or TPU',
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
    help='number of times that each setting is measured; default: 3',
  )
  parser.add_argument(
    '--smoke',
    action='store_true',
    help='use tiny random data, tiny models and 2 rounds, to test the script',
  )
  parser.add_argument(
    '--out',
    type=pathlib.Path,
    help='folder for the results; default: experiments/results/benchmarks',
  )
  return parser


def main(arguments: Sequence[str] | None = None) -> None:
  """Measures all settings; exits with status 1 if one of them failed."""
  parser = make_parser()
  given = parser.parse_args(arguments)
  if given.smoke:
    if not given.out:
      parser.error('--smoke needs --out, because its numbers are not results')
    given.rounds = 2
  out = given.out or document.RESULTS / 'benchmarks'
  with options_lib.reported_errors():
    try:
      failed = run(given, out)
    except processes.WorkerError as error:
      sys.exit(f'error: {error}')
  if failed:
    sys.exit(f'error: not measured: {"; ".join(failed)}')


def run(given: argparse.Namespace, out: pathlib.Path) -> list[str]:
  """Measures all groups. After each group, writes all results so far.

  Args:
    given: the flags.
    out: the folder for the results.

  Returns:
    The settings that failed, with their errors.
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
  failed = []
  groups = make_groups(given, machine)
  for number, group in enumerate(groups, start=1):
    print(f'[{number}/{len(groups)}] {group.section}: {group.title}')
    members = processes.measure(group.settings, given.rounds)
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
    page = report.write(results, out, report.file_name(machine['device']))
  print(f'\n{report.render(results)}')
  print(f'written to {page} and {page.with_suffix(".json")}')
  return failed


def make_groups(
  given: argparse.Namespace, machine: dict[str, Any]
) -> list[plan.Group]:
  """Returns the groups of settings that the flags select on this machine."""
  variants = given.variants or tuple(plan.VARIANTS)
  theirs = [name for name in variants if name.startswith('torch')]
  if theirs and 'torch' not in machine['versions']:
    missing = "PyTorch is not installed (pip install '.[benchmarks]')"
    if given.variants:
      sys.exit(f'error: {theirs[0]}: {missing}')
    print(f'{missing}: only coke_jax is measured')
    variants = tuple(name for name in variants if name not in theirs)
  if given.smoke:
    return plan.smoke_groups(variants)
  threads = given.threads or (
    [min(2, machine['cores'])] if machine['platform'] == 'cpu' else [0]
  )
  reason = data_sets.why_random()
  if reason:
    print(f'{plan.DATASET}: random data with the same counts ({reason})')
  base = plan.Setting('training', random=bool(reason))
  groups = []
  if 'training' in given.parts:
    groups += [
      plan.training_group(
        dataclasses.replace(
          base, num_layers=layers, batch_size=batch_size, threads=count
        ),
        variants,
      )
      for layers in given.layers
      for batch_size in given.batch_sizes
      for count in threads
    ]
  if 'evaluation' in given.parts:
    groups += [
      plan.evaluation_group(
        dataclasses.replace(base, num_layers=layers, threads=max(threads))
      )
      for layers in given.layers
    ]
  return groups


def _positives(text: str) -> tuple[int, ...]:
  return tuple(options_lib.positive(part) for part in text.split(','))


if __name__ == '__main__':
  main()
