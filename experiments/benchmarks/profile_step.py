"""Measures the time of a training step by part of the model.

    python -m experiments.benchmarks.profile_step --layers=12

Trains for some steps under the profiler of jax, and adds up the time of all
compiled operations by part. The training triples are random, as many as in
FB15k-237. The profiler only times the thread that started an operation. Run the
script with `taskset -c 0`, so that this thread does all the work. The script
works only on CPUs. On a GPU, read the trace of `jax.profiler` instead.
"""

import collections
import glob
import gzip
import itertools
import json
import os
import re
import resource
import tempfile
from collections.abc import Sequence
from typing import Any

import jax

from experiments.benchmarks import data_sets, new_process, plan, stopwatch
from experiments.paper import options as options_lib

# A dictionary from each part to a pattern for the `op_name` of operations. An
# operation belongs to the first part whose pattern is found. `attention`
# contains the products of queries with keys and of weights with values, and the
# softmax.
PARTS = {
  'dropout bits': r'random_bits|threefry|[Dd]ropout',
  'products with entities': r'entity_logits/(.*dot_general|transpose)',
  'attention': r'bqah|bqka|/attention/(?!query_key_value|output)',
  'products of blocks': r'dot_general',
  'layer norm': r'norm/',
  'gelu': r'erf|gelu|blocks_\d+/(mul|neg|exp|integer_pow)',
  'logits and loss': r'entity_logits|jvp\(\)|smoothed|take_along|logsumexp',
  'rest of blocks': r'jvp\(CoKE\)',
  'optimizer': r'',
}


def part(place: str) -> str:
  """Returns the part to which an operation with this `op_name` belongs."""
  return next(name for name, form in PARTS.items() if re.search(form, place))


def places(dumped: str) -> dict[str, str]:
  """Returns the `op_name` of each instruction of the largest program.

  Args:
    dumped: the folder of the programs that XLA wrote.
  """
  files = glob.glob(os.path.join(dumped, '*after_optimizations.txt'))
  with open(max(files, key=os.path.getsize), encoding='utf-8') as text:
    found = (
      re.match(r'\s*(?:ROOT )?%?([\w.\-]+) = .*op_name="([^"]*)"', line)
      for line in text
    )
    return {one.group(1): one.group(2) for one in found if one}


def milliseconds(folder: str) -> dict[str, float]:
  """Returns the total milliseconds of each instruction in a trace."""
  (path,) = glob.glob(f'{folder}/**/*.trace.json.gz', recursive=True)
  with gzip.open(path) as trace:
    events = json.load(trace)['traceEvents']
  total: dict[str, float] = collections.defaultdict(float)
  for event in events:
    name = event.get('args', {}).get('hlo_op', '')
    if event.get('ph') == 'X' and name and not name.startswith('while'):
      total[name] += event['dur'] / 1000
  return total


def profile(
  setting: plan.Setting, steps_per_call: int, calls: int, dumped: str
) -> dict[str, Any]:
  """Compiles the program in a first device call, then profiles more calls.

  Args:
    setting: the setting of the training.
    steps_per_call: the number of steps in a device call.
    calls: the number of profiled calls.
    dumped: the folder that XLA writes its programs to.

  Returns:
    The number of `page_faults` per step, and the `milliseconds` per step, by
    part of the model.
  """
  config = data_sets.make_config(setting)
  config.train.steps_per_call = steps_per_call
  steps = stopwatch.Steps(config, data_sets.make_task(setting, config))
  batches = list(itertools.islice(steps.training_set.epoch(0), steps_per_call))
  steps.run(batches)
  before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
  with tempfile.TemporaryDirectory() as folder:
    with jax.profiler.trace(folder):
      for _ in range(calls):
        steps.run(batches)
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    spent = milliseconds(folder)
  known, count = places(dumped), calls * len(batches)
  parts = dict.fromkeys(PARTS, 0.0)
  for name, time in spent.items():
    parts[part(known.get(name, ''))] += time / count
  return {
    'page_faults': faults / count,
    'milliseconds': parts,
  }


def main(arguments: Sequence[str] | None = None) -> None:
  """Prints the profile."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument(
    '--dataset',
    default='FB15k-237',
    help='FB15k-237, or tiny to test the script; default: %(default)s',
  )
  parser.add_argument('--layers', type=int, default=12)
  parser.add_argument('--batch-size', type=int, default=512)
  parser.add_argument('--rows', default='instance')
  parser.add_argument('--dtype', default='float32')
  parser.add_argument('--steps-per-call', type=int, default=8)
  parser.add_argument('--calls', type=int, default=2, help='calls to profile')
  given = parser.parse_args(arguments)
  setting = plan.Setting(
    'training',
    dataset=given.dataset,
    random=True,
    num_layers=given.layers,
    batch_size=given.batch_size,
    rows=given.rows,
    dtype=given.dtype,
  )
  with tempfile.TemporaryDirectory() as dumped:
    flags = f'--xla_dump_to={dumped} --xla_dump_hlo_as_text'
    result = new_process.call(
      profile,
      setting,
      given.steps_per_call,
      given.calls,
      dumped,
      XLA_FLAGS=f'{os.environ.get("XLA_FLAGS", "")} {flags}'.strip(),
      JAX_ENABLE_COMPILATION_CACHE='false',
    )
  for name, time in result['milliseconds'].items():
    print(f'{name:24} {time:8.1f} ms')
  print(f'{"all":24} {sum(result["milliseconds"].values()):8.1f} ms')
  print(f'{"page faults":24} {result["page_faults"]:8.0f}')


if __name__ == '__main__':
  main()
