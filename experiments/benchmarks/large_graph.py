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

import json
import pathlib
import sys
from typing import Any

import numpy as np

from experiments.benchmarks import large_graph_parts, new_process
from experiments.paper import options as options_lib

SIZES = (50_000, 500_000, 5_000_000)
PARTS = tuple(large_graph_parts.PARTS)
TRIPLES_PER_ENTITY = 4
HUB_SHARE = 0.1
RELATIONS = 822
EVALUATED = 5_000  # maximum number of lines in each of valid and test

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


def table(results: dict[str, Any]) -> str:
  """Returns the results as a Markdown table with one column per graph."""
  sizes = sorted(results, key=int)
  head = ['', *(f'{int(size):,} entities' for size in sizes)]
  rows = [head, ['---'] + ['---:'] * len(sizes)]
  for part in PARTS:
    measured = [results[size].get(part, {}) for size in sizes]
    sections = [one.get('seconds', {}) for one in measured]
    for name in dict.fromkeys(name for one in sections for name in one):
      if name == 'load' and part != 'load':
        continue
      cells = []
      for one in sections:
        cells.append(f'{one[name][1]:,.1f} s' if name in one else '')
      rows.append([f'{part}: {name}' if name != part else part, *cells])
    arrays = [max(one.get('bytes', {}).values(), default=0) for one in measured]
    peaks = [one.get('peak_bytes', 0) for one in measured]
    for name, numbers in (('arrays', arrays), ('peak memory', peaks)):
      if any(numbers):
        shown = [f'{one / 1e9:.2f} GB' if one else '' for one in numbers]
        rows.append([f'{part}: {name}', *shown])
  return '\n'.join('| ' + ' | '.join(row) + ' |' for row in rows) + '\n'


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
  parser = options_lib.new_parser(__doc__)
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
  given = parser.parse_args()
  for size in given.sizes:
    folder = given.folder / str(size)
    # The peak memory of this process also counts in the processes that it
    # starts. So a separate process makes the graph, to keep that peak low.
    new_process.call(make_graph, folder, size)
    for part in given.parts:
      print(f'{size:,} entities: {part}', file=sys.stderr)
      measured = new_process.call(large_graph_parts.run, part, folder)
      (folder / f'{part}.json').write_text(json.dumps(measured) + '\n')
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
