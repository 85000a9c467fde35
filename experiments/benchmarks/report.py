"""Turns measured rounds into numbers, tables and files."""

import pathlib
import re
import statistics
from collections.abc import Sequence
from typing import Any

from coke_jax.data import atomic_files
from coke_jax.storage import json_files
from experiments.benchmarks import plan
from experiments.paper import formats

Record = dict[str, Any]

_MEBIBYTE = 2**20
# The columns after the setting. Each has a header, a key of the summary and a
# format.
_TRAINING = (
  ('ms/step', 'milliseconds_per_step', ',.1f'),
  ('spread', 'spread', '.0%'),
  ('instances/s', 'instances_per_second', ',.0f'),
  ('queries/s', 'queries_per_second', ',.0f'),
  ('epochs/h', 'epochs_per_hour', ',.2f'),
  ('GFLOP/s', 'gflops', ',.1f'),
  ('GFLOP/s relative to large products', 'share_of_large_products', '.0%'),
  ('peak memory, MiB', 'peak_memory_mebibytes', ',.0f'),
  ('compile, s', 'compile_seconds', '.1f'),
  ('speed, torch float32 = 1', 'times_torch_float32', '.2f'),
  ('speed, our instance mode = 1', 'times_instance_mode', '.2f'),
)
_EVALUATION = (
  ('queries', 'queries', ','),
  ('seconds', 'seconds', ',.2f'),
  ('spread', 'spread', '.0%'),
  ('encoder and scores only, s', 'product_seconds', ',.2f'),
  ('share of filters, ranks and metrics', 'share_outside_products', '.1%'),
  ('queries/s', 'queries_per_second', ',.0f'),
  ('peak memory, MiB', 'peak_memory_mebibytes', ',.0f'),
  ('compile, s', 'compile_seconds', '.1f'),
)


def summarize(group: Record) -> None:
  """Adds a `summary` to each measured member of a group.

  Args:
    group: a record whose `members` are the result of `processes.measure`. If
      matrices were measured, the record gets the key `large_product_gflops`.
  """
  members = {member['label']: member for member in group['members']}
  measured = {
    label: member
    for label, member in members.items()
    if 'error' not in member and member['rounds']
  }
  rates = _large_product_rates(measured.values())
  if rates:
    group['large_product_gflops'] = rates
  for member in measured.values():
    kind = member['setting']['kind']
    if kind == 'evaluation':
      member['summary'] = _evaluation_summary(member)
    elif kind == 'training':
      instance_mode = plan.INSTANCE_MODE.get(member['label'], '')
      member['summary'] = {
        **_training_summary(member, rates),
        'times_torch_float32': _speedup(member, measured.get(plan.BASELINE)),
        'times_instance_mode': _speedup(member, measured.get(instance_mode)),
      }


def epoch_seconds(member: Record) -> list[float]:
  """Returns the seconds of an epoch in each round."""
  batches = member['prepared']['epoch']['batches']
  return [
    sum(
      count * one['step_seconds'][length] for length, count in batches.items()
    )
    for one in member['rounds']
  ]


def _training_summary(member: Record, rates: dict[str, float]) -> Record:
  prepared, rounds = member['prepared'], member['rounds']
  epoch = prepared['epoch']
  seconds = epoch_seconds(member)
  middle = statistics.median(seconds)
  gflops = epoch['flops'] / middle / 1e9
  rate = rates.get(member['setting']['dtype'])
  return {
    'milliseconds_per_step': 1e3 * middle / sum(epoch['batches'].values()),
    'spread': _spread(seconds),
    'timed_steps': len(rounds) * sum(prepared['steps'].values()),
    'instances_per_second': epoch['instances'] / middle,
    'queries_per_second': epoch['queries'] / middle,
    'epochs_per_hour': 3600 / middle,
    'gflops': gflops,
    'share_of_large_products': gflops / rate if rate else None,
    **_costs(member),
  }


def _evaluation_summary(member: Record) -> Record:
  seconds = [one['seconds'] for one in member['rounds']]
  products = [one['product_seconds'] for one in member['rounds']]
  outside = [
    1 - product / whole
    for product, whole in zip(products, seconds, strict=True)
  ]
  queries = member['prepared']['queries']
  return {
    'queries': queries,
    'seconds': statistics.median(seconds),
    'spread': _spread(seconds),
    'product_seconds': statistics.median(products),
    'share_outside_products': statistics.median(outside),
    'queries_per_second': queries / statistics.median(seconds),
    **_costs(member),
  }


def _costs(member: Record) -> Record:
  finished = member['finished']
  device = finished['device_memory']
  return {
    'compile_seconds': member['prepared']['compile_seconds'],
    'peak_memory_mebibytes': (finished['memory'] if device is None else device)
    / _MEBIBYTE,
  }


def _large_product_rates(members: Any) -> dict[str, float]:
  """Returns the GFLOP/s of large products by operand type.

  For each type, this is the median over the rounds of the faster framework.
  """
  rates: dict[str, float] = {}
  for member in members:
    if member['setting']['kind'] != 'matrices':
      continue
    for dtype in member['rounds'][0]['gflops']:
      rate = statistics.median(one['gflops'][dtype] for one in member['rounds'])
      rates[dtype] = max(rate, rates.get(dtype, 0.0))
  return rates


def _speedup(member: Record, base: Record | None) -> float | None:
  """Returns how many times faster than `base` a training is.

  This is the median of the ratios in the rounds. None if `base` is None.
  """
  if base is None:
    return None
  # A slow training has only one round. Then only first rounds are compared.
  pairs = zip(epoch_seconds(member), epoch_seconds(base), strict=False)
  return statistics.median(theirs / ours for ours, theirs in pairs)


def _spread(values: Sequence[float]) -> float:
  """Returns the difference of maximum and minimum, divided by the median."""
  return (max(values) - min(values)) / statistics.median(values)


def file_name(device: str) -> str:
  """Converts the name of a device to the name of a file, such as `1-x-cpu`."""
  return re.sub(r'[^a-z0-9]+', '-', device.lower()).strip('-')


def write(results: Record, folder: pathlib.Path, name: str) -> pathlib.Path:
  """Writes `name`.json and `name`.md; returns the path of the Markdown file."""
  folder.mkdir(parents=True, exist_ok=True)
  json_files.write_json(folder / f'{name}.json', results)
  page = folder / f'{name}.md'
  with atomic_files.whole_file(page) as temporary:
    temporary.write_text(render(results), encoding='utf-8')
  return page


def render(results: Record) -> str:
  """Returns all tables and a description of the machine, as Markdown."""
  machine = results['machine']
  versions = ', '.join(
    f'{name} {version}' for name, version in machine['versions'].items()
  )
  parts = [
    f'Measured on {machine["device"]} ({machine["processor"]}) with '
    f'{versions}; medians over {results["rounds"]} rounds.\n'
  ]
  sections: dict[str, list[Record]] = {}
  for group in results['groups']:
    sections.setdefault(group['section'], []).append(group)
  for section, groups in sections.items():
    parts.append(f'## {section}\n\n{_notes(groups)}{_table(groups)}')
  return '\n'.join(parts)


def _table(groups: list[Record]) -> str:
  evaluation = groups[0]['members'][0]['setting']['kind'] == 'evaluation'
  columns = _EVALUATION if evaluation else _TRAINING
  lines = []
  for group in groups:
    for member in group['members']:
      if member['setting']['kind'] == 'matrices':
        continue
      if summary := member.get('summary'):
        cells = [_cell(summary[name], form) for _, name, form in columns]
      else:
        failed = f'failed: {member["error"]}'
        cells = [failed, *[''] * (len(columns) - 1)]
      label = [] if evaluation else [member['label']]
      lines.append([group['title'], *label, *cells])
  header = ['setting'] if evaluation else ['setting', 'variant']
  return formats.markdown_table(header + [one for one, _, _ in columns], lines)


def _cell(value: float | None, form: str) -> str:
  return '-' if value is None else format(value, form)


def _notes(groups: list[Record]) -> str:
  """Returns notes about the rate of large products and about random data."""
  lines = [
    f'- {group["title"]}: large products '
    + ', '.join(
      f'{rate:,.0f} GFLOP/s in {dtype}'
      for dtype, rate in group['large_product_gflops'].items()
    )
    for group in groups
    if 'large_product_gflops' in group
  ]
  settings = [member['setting'] for g in groups for member in g['members']]
  if any(setting['random'] for setting in settings):
    lines.append('- On random data with the same counts.')
    if any(setting['rows'] == 'query' for setting in settings):
      lines[-1] += (
        ' In these data, few instances share a query, so query mode gains less '
        'than on the data set.'
      )
  return '\n'.join([*lines, '\n']) if lines else ''
