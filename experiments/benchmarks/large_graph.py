"""Measures reading, training, ranking and answering on large graphs.

    python -m experiments.benchmarks.large_graph --folder=/tmp/large

The script draws random graphs. A graph has four triples per entity, 822
relations, labels such as `Q123` and `P31`, and degrees that follow a power law.
One entity, the hub, is the tail of a tenth of the triples, all with the same
relation. With 5 million entities, there are 20 million triples, and 2 million
triples have the hub as tail. The parts are:

- `parse` reads the triple files and writes the cache of the package.
- `load` reads the cache. All parts below also load the cache.
- `train` trains for 20 steps.
- `filter` finds the known heads and tails of 10,000 triples of the hub. With 5
  million entities, each of these triples has 2 million known heads.
- `rank` ranks the heads and tails of 1,000 test triples with untrained
  parameters.
- `answer` answers 100 questions with untrained parameters.

Each part runs in a separate process, so the peak memory of each part can be
measured. CPU seconds are summed over all threads. On a busy machine, wall
seconds are not meaningful.
"""

import argparse
import dataclasses
import json
import pathlib
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (50_000, 500_000, 5_000_000)
TRIPLES_PER_ENTITY = 4
HUB_SHARE = 0.1
RELATIONS = 822
EVALUATED = 5_000  # maximum number of lines in each of valid and test
RANKED = 1_000  # number of triples in the part `rank`
QUESTIONS = 100  # number of questions in the part `answer`
STEPS = 20  # number of training steps that are timed
WIDTH, BATCH = 32, 512
PARTS = ('parse', 'load', 'train', 'filter', 'rank', 'answer')
HUB_LINES = 10_000  # number of triples of the hub in the part `filter`

_LINES = 1 << 20  # number of lines that are written at a time


def make_graph(folder: pathlib.Path, num_entities: int) -> None:
  """Writes the files of a graph, unless they exist.

  Every entity is the head of at least one triple. The probability of the i-th
  entity or relation is proportional to a power of i.
  """
  if (folder / 'train.txt').exists():
    return
  folder.mkdir(parents=True, exist_ok=True)
  generator = np.random.default_rng(0)
  total = TRIPLES_PER_ENTITY * num_entities
  hub = int(HUB_SHARE * total)
  others = total - num_entities - hub
  numbers = generator.integers(1, 120_000_000, int(1.2 * num_entities))
  entity = generator.permutation(np.unique(numbers))[:num_entities]
  relation = generator.permutation(6000)[:RELATIONS]
  relation[1:][relation[1:] == 31] = 6001
  relation[0] = 31  # P31, the relation of the hub

  def draw(size: int, end: int, exponent: float) -> np.ndarray:
    drawn = end * generator.random(size) ** (1 / (1 - exponent))
    return drawn.astype(np.int64)

  heads = [
    np.arange(num_entities),
    generator.permutation(np.arange(1, num_entities))[:hub],
    draw(others, num_entities, 0.5),
  ]
  relations = [
    1 + draw(num_entities, RELATIONS - 1, 0.75),
    np.zeros(hub, np.int64),
    1 + draw(others, RELATIONS - 1, 0.75),
  ]
  tails = [
    draw(num_entities, num_entities, 0.75),
    np.zeros(hub, np.int64),
    draw(others, num_entities, 0.75),
  ]
  columns = [np.concatenate(parts) for parts in (heads, relations, tails)]
  triples = np.stack(columns, axis=1)[generator.permutation(total)]
  size = min(EVALUATED, total // 100)
  _write(folder / 'valid.txt', triples[:size], entity, relation)
  _write(folder / 'test.txt', triples[size : 2 * size], entity, relation)
  _write(folder / 'train.txt', triples[2 * size :], entity, relation)


def _write(
  path: pathlib.Path,
  triples: np.ndarray,
  entity: np.ndarray,
  relation: np.ndarray,
) -> None:
  part = path.with_suffix('.part')
  with part.open('w') as out:
    for low in range(0, len(triples), _LINES):
      head, kind, tail = triples[low : low + _LINES].T
      out.writelines(
        f'Q{h}\tP{r}\tQ{t}\n'
        for h, r, t in zip(
          entity[head].tolist(),
          relation[kind].tolist(),
          entity[tail].tolist(),
          strict=True,
        )
      )
  part.rename(path)


# ----------------------------------------------------------------------- parts


class Stopwatch:
  """Measures the wall seconds and CPU seconds of named sections."""

  def __init__(self) -> None:
    self.seconds: dict[str, tuple[float, float]] = {}
    self.bytes: dict[str, int] = {}
    self.restart()

  def restart(self) -> None:
    """Starts the next section."""
    self._wall, self._cpu = time.monotonic(), time.process_time()

  def stop(self, name: str) -> None:
    """Ends a section and starts the next one."""
    wall = time.monotonic() - self._wall
    cpu = time.process_time() - self._cpu
    self.seconds[name] = (round(wall, 2), round(cpu, 2))
    print(f'  {name}: {wall:.1f} s, {cpu:.1f} CPU s', file=sys.stderr)
    self.restart()


def run_part(
  part: str, folder: pathlib.Path, steps: int, batch_size: int
) -> dict[str, Any]:
  """Runs one part in this process.

  Args:
    part: one of PARTS.
    folder: the folder of the graph.
    steps: number of training steps to time.
    batch_size: number of rows in a training batch.

  Returns:
    A dictionary:
    - `seconds`: the wall seconds and the CPU seconds of each section.
    - `bytes`: the peak memory of arrays, only measured in the part `filter`.
    - `peak_bytes`: the largest resident memory of this process.
  """
  watch = Stopwatch()
  parts: dict[str, Callable[[], None]] = {
    'parse': lambda: _parse(folder, watch),
    'load': lambda: _load(folder, watch),
    'train': lambda: _train(folder, watch, steps, batch_size),
    'filter': lambda: _filter(folder, watch),
    'rank': lambda: _rank(folder, watch),
    'answer': lambda: _answer(folder, watch),
  }
  parts[part]()
  usage = resource.getrusage(resource.RUSAGE_SELF)
  return {
    'seconds': watch.seconds,
    'bytes': watch.bytes,
    'peak_bytes': 1024 * usage.ru_maxrss,
  }


def _parse(folder: pathlib.Path, watch: Stopwatch) -> None:
  from coke_jax.data import graph_cache, triple_files

  for cached in (folder / 'cache').glob('*'):
    cached.unlink()
  watch.restart()
  graph_cache.read_graph_cached(
    folder,
    'large',
    triple_files.TripleFormat(),
    folder / 'cache',
    min_bytes=0,
  )
  watch.stop('parse')


def _graph(folder: pathlib.Path, watch: Stopwatch) -> Any:
  from coke_jax.data import graph_cache, triple_files

  watch.restart()
  graph = graph_cache.read_graph_cached(
    folder,
    'large',
    triple_files.TripleFormat(),
    folder / 'cache',
    min_bytes=0,
  )
  watch.stop('load')
  return graph


def _load(folder: pathlib.Path, watch: Stopwatch) -> None:
  graph = _graph(folder, watch)
  print(graph.summary(), file=sys.stderr)
  watch.stop('summary')


def _config(batch_size: int = BATCH) -> Any:
  from coke_jax import config as config_lib

  config = config_lib.default_config()
  config.model.num_layers = 1
  config.model.hidden_size = WIDTH
  config.model.num_heads = 1
  config.model.feed_forward_size = 2 * WIDTH
  config.train.batch_size = batch_size
  config.train.steps_per_call = 4
  return config


def _train(
  folder: pathlib.Path, watch: Stopwatch, steps: int, batch_size: int
) -> None:
  from coke_jax import tasks
  from coke_jax.model import parameters
  from coke_jax.training import setup as setup_lib

  graph = _graph(folder, watch)
  config = _config(batch_size)
  setup = setup_lib.Setup(config, tasks.make_task(config, graph))
  watch.stop('training set')
  epoch = setup.training_set.epoch(0)
  state = setup.placement.place(setup.init_state())
  watch.stop('initial state')
  size = config.train.steps_per_call
  key = parameters.dropout_key(0)
  calls = -(-steps // size)
  for call in range(1 + calls):
    batches = [next(epoch) for _ in range(size)]
    state, metrics = setup.train_step(state, batches, key)
    losses = np.asarray(metrics['loss'])
    assert np.isfinite(losses).all()
    if call == 0:
      watch.stop(f'compilation and {size} steps')
  watch.stop(f'{calls * size} steps')


def _params(graph: Any) -> tuple[Any, Any]:
  from coke_jax import parallel, tasks
  from coke_jax.model import parameters

  model = tasks.build_model(_config(), graph.vocabulary)
  return model, parallel.replicate(parameters.init_params(model, 0))


def _filter(folder: pathlib.Path, watch: Stopwatch) -> None:
  import itertools
  import tracemalloc

  from coke_jax.data import queries

  graph = _graph(folder, watch)
  hub = graph.vocabulary.relation_id('P31')
  lines = graph.train[graph.train[:, 1] == hub][:HUB_LINES]
  evaluated = queries.from_triples(lines, graph.vocabulary)
  parts = (
    queries.parts_from_triples(graph.split(split), graph.vocabulary)
    for split in ('train', 'valid', 'test')
  )
  watch.restart()
  tracemalloc.start()  # tracemalloc also traces the memory of NumPy arrays.
  known = evaluated.known_answers(
    itertools.chain.from_iterable(parts), graph.vocabulary.num_entities
  )
  name = f'known answers of {len(lines)} lines'
  watch.stop(name)
  watch.bytes[name] = tracemalloc.get_traced_memory()[1]
  pairs = int(known.sizes.sum())
  print(f'  {len(known.indices):,} ids for {pairs:,} pairs', file=sys.stderr)


def _rank(folder: pathlib.Path, watch: Stopwatch) -> None:
  from coke_jax.evaluate import link_prediction, ranker

  graph = _graph(folder, watch)
  graph = dataclasses.replace(graph, test=graph.test[:RANKED])
  model, params = _params(graph)
  watch.stop('parameters')
  task = link_prediction.LinkPrediction(graph)
  ranks = task.rank(ranker.Ranker(model), params, 'test', progress='ranking')
  watch.stop(f'ranks of {RANKED} triples')
  task.summarize(ranks, 'test')
  watch.stop('metrics')


def _answer(folder: pathlib.Path, watch: Stopwatch) -> None:
  from coke_jax.predict import model as model_lib

  graph = _graph(folder, watch)
  model, params = _params(graph)
  watch.stop('parameters')
  loaded = model_lib.Model(model, params, graph, 1)
  watch.stop('known facts')
  entities, relations = graph.vocabulary.entities, graph.vocabulary.relations
  questions = [
    (entities[head], relations[relation], '?')
    for head, relation, _ in graph.test[:QUESTIONS].tolist()
  ]
  answers = loaded.predict(questions, new_only=True)
  assert len(answers) == QUESTIONS
  watch.stop(f'{QUESTIONS} answers')


# ---------------------------------------------------------------------- output


def table(results: dict[str, Any]) -> str:
  """Returns the results as a Markdown table with one column per graph."""
  sizes = sorted(results, key=int)
  head = ['', *(f'{int(size):,} entities' for size in sizes)]
  rows = [head, ['---'] + ['---:'] * len(sizes)]
  names: dict[tuple[str, str], None] = {}
  for size in sizes:
    for part, measured in results[size].items():
      names.update(dict.fromkeys((part, key) for key in measured['seconds']))
  for part in PARTS:
    for _, name in [one for one in names if one[0] == part]:
      if name == 'load' and part != 'load':
        continue
      cells = []
      for size in sizes:
        seconds = results[size].get(part, {}).get('seconds', {}).get(name)
        cells.append(f'{seconds[1]:,.1f} s' if seconds else '')
      rows.append([f'{part}: {name}' if name != part else part, *cells])
    for _, name in [one for one in names if one[0] == part]:
      sized = [
        results[size].get(part, {}).get('bytes', {}).get(name) for size in sizes
      ]
      if any(sized):
        rows.append([f'{part}: arrays', *map(_gigabytes, sized)])
    peaks = [results[size].get(part, {}).get('peak_bytes') for size in sizes]
    if any(peaks):
      rows.append([f'{part}: peak memory', *map(_gigabytes, peaks)])
  return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows) + '\n'


def _gigabytes(number: int | None) -> str:
  return f'{number / 1e9:.2f} GB' if number else ''


def draw(results: dict[str, Any], path: pathlib.Path) -> None:
  """Writes a picture: CPU seconds and peak memory by number of entities."""
  import matplotlib

  matplotlib.use('agg')
  from matplotlib import pyplot, ticker

  sizes = sorted(results, key=int)
  figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.6))
  for part in PARTS:
    measured = {
      int(size): results[size][part] for size in sizes if part in results[size]
    }
    if not measured:
      continue
    seconds = [
      sum(cpu for _, cpu in one['seconds'].values())
      for one in measured.values()
    ]
    peaks = [one['peak_bytes'] / 1e9 for one in measured.values()]
    left.loglog(list(measured), seconds, marker='o', label=part)
    right.loglog(list(measured), peaks, marker='o', label=part)
  left.set_ylabel('CPU seconds')
  right.set_ylabel('peak memory, GB')
  for axes in (left, right):
    axes.set_xlabel('entities')
    axes.grid(alpha=0.3)
    axes.yaxis.set_major_formatter('{x:g}')
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    axes.set_xticks(
      [int(size) for size in sizes], [f'{int(s):,}' for s in sizes]
    )
    axes.minorticks_off()
  right.set_yticks([0.25, 0.5, 1, 2, 4, 8])
  right.legend(frameon=False, loc='center left', bbox_to_anchor=(1, 0.5))
  figure.tight_layout()
  figure.savefig(path, metadata={'Date': None} if path.suffix == '.svg' else {})


def main() -> None:
  """Measures all parts and writes results.json, table.md and picture.svg."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument(
    '--folder',
    type=pathlib.Path,
    required=True,
    help='folder for the graphs (0.7 GB) and the results',
  )
  parser.add_argument(
    '--sizes',
    type=int,
    nargs='+',
    default=list(SIZES),
    help='numbers of entities (default: %(default)s)',
  )
  parser.add_argument(
    '--parts',
    nargs='+',
    choices=PARTS,
    default=list(PARTS),
    help='what to measure (default: all)',
  )
  parser.add_argument(
    '--steps',
    type=int,
    default=STEPS,
    help='training steps to time (default: %(default)s)',
  )
  parser.add_argument(
    '--batch_size',
    type=int,
    default=BATCH,
    help='rows in a training batch (default: %(default)s)',
  )
  parser.add_argument(
    '--in_process', action='store_true', help=argparse.SUPPRESS
  )
  given = parser.parse_args()
  if given.in_process:
    ((size,), (part,)) = given.sizes, given.parts
    folder = given.folder / str(size)
    print(json.dumps(run_part(part, folder, given.steps, given.batch_size)))
    return
  for size in given.sizes:
    make_graph(given.folder / str(size), size)
    for part in given.parts:
      print(f'{size:,} entities: {part}', file=sys.stderr)
      done = subprocess.run(
        [
          sys.executable,
          '-m',
          'experiments.benchmarks.large_graph',
          f'--folder={given.folder}',
          f'--sizes={size}',
          f'--parts={part}',
          f'--steps={given.steps}',
          f'--batch_size={given.batch_size}',
          '--in_process',
        ],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
      )
      one = given.folder / str(size) / f'{part}.json'
      one.write_text(done.stdout)
    write_results(given.folder)


def write_results(folder: pathlib.Path) -> None:
  """Writes the results of all graphs in a folder, and prints the table."""
  results: dict[str, Any] = {}
  for path in sorted(folder.glob('*/*.json')):
    results.setdefault(path.parent.name, {})[path.stem] = json.loads(
      path.read_text()
    )
  (folder / 'results.json').write_text(json.dumps(results, indent=1))
  (folder / 'table.md').write_text(table(results))
  print(table(results))
  try:
    draw(results, folder / 'picture.svg')
  except ImportError as error:
    print(f'no picture: {error}', file=sys.stderr)


if __name__ == '__main__':
  main()
