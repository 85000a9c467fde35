"""Compares a config with models of PyKEEN, by MRR and time on this machine.

    python -m experiments.benchmarks.peers --config=configs/codex_s.py \
      --minutes=10 --out=peers_codex_s

First trains the config. Then trains each PyKEEN model (peer) on the same
triples for `--minutes`. Every validation records the elapsed minutes and the
filtered MRR of the valid split. At the end, the evaluator of this package ranks
the test split. For the peers, the evaluator of PyKEEN ranks it, too, and the
MRRs must agree. Writes peers.json, peers.md and peers.png. Needs
`pip install '.[peers,plots]'`.
"""

import pathlib
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import matplotlib.figure

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.storage import json_files, workdir
from experiments.benchmarks import pykeen_models
from experiments.paper import formats
from experiments.paper import options as options_lib

Curve = pykeen_models.Curve
PEERS = pykeen_models.PEERS


def train_config(
  path: str, overrides: Sequence[str], out: pathlib.Path
) -> tuple[Curve, dict[str, Any]]:
  """Trains a config in a new process.

  Args:
    path: the config file.
    overrides: flags such as `--config.train.seed=1`.
    out: the work folder.

  Returns:
    The curve.
    The test metrics, and `minutes`, the time of the whole command.

  Raises:
    RuntimeError: the training failed.
  """
  started = time.monotonic()
  command = [sys.executable, '-m', 'coke_jax.main', f'--config={path}']
  process = subprocess.Popen([*command, f'--workdir={out}', *overrides])
  curve: Curve = []
  while True:
    ended = process.poll() is not None
    valid = [
      line['both']['mrr']
      for line in workdir.Workdir(out).metrics().read()
      if line['kind'] == 'valid'
    ]
    minutes = (time.monotonic() - started) / 60
    curve += [(minutes, mrr) for mrr in valid[len(curve) :]]
    if ended:
      break
    time.sleep(0.5)
  if process.returncode:
    raise RuntimeError(f'the training of {path} failed')
  results = json_files.read_json(out / 'results.json')
  return curve, {**results['both'], 'minutes': minutes}


def report(
  found: dict[str, tuple[Curve, dict[str, Any]]], out: pathlib.Path
) -> str:
  """Writes peers.json, peers.md and peers.png. Returns the table."""
  json_files.write_json(
    out / 'peers.json',
    {
      name: {'curve': curve, 'test': metrics}
      for name, (curve, metrics) in found.items()
    },
  )
  names = ('mrr', 'hits@1', 'hits@3', 'hits@10')
  table = formats.markdown_table(
    ['model', 'minutes', 'best valid MRR', *(f'test {one}' for one in names)],
    [
      [
        name,
        f'{metrics["minutes"]:.1f}',
        f'{max(mrr for _, mrr in curve):.4f}',
        *(f'{metrics[one]:.4f}' for one in names),
      ]
      for name, (curve, metrics) in found.items()
    ],
  )
  (out / 'peers.md').write_text(table + '\n', encoding='utf-8')
  figure = matplotlib.figure.Figure(figsize=(7, 4.5), layout='constrained')
  axes = figure.subplots()
  for name, (curve, _) in found.items():
    axes.plot(*zip(*curve, strict=True), marker='.', label=name)
  axes.set(xlabel='minutes', ylabel='filtered MRR of the valid split')
  axes.legend()
  figure.savefig(out / 'peers.png', dpi=150)
  return table


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the comparison and prints the table."""
  parser = options_lib.new_parser(__doc__)
  add = parser.add_argument
  add('--config', required=True, help='config file, such as configs/umls.py')
  add(
    '--minutes',
    type=float,
    required=True,
    help='time for the training of each peer, in minutes',
  )
  add(
    '--peers',
    default='ComplEx,ConvE',
    help='names in pykeen_models.PEERS, separated by commas; default: '
    '%(default)s',
  )
  add('--seed', type=int, default=0, help='random seed; default: 0')
  add('--out', type=pathlib.Path, required=True, help='folder for all results')
  given, overrides = parser.parse_known_args(arguments)
  chosen = [peer for peer in PEERS if peer.name in given.peers.split(',')]
  given.out.mkdir(parents=True, exist_ok=True)
  overrides.append(f'--config.train.seed={given.seed}')
  folder = given.out / f'seed{given.seed}'
  name = pathlib.Path(given.config).stem
  found = {name: train_config(given.config, overrides, folder)}
  saved = json_files.read_json(folder / 'config.json')
  graph: Any = tasks.read_data(config_lib.from_dict(saved))
  for peer in chosen:
    _, curve, metrics = pykeen_models.train_peer(
      peer, graph, given.minutes, given.seed
    )
    found[f'PyKEEN {peer.name}'] = curve, metrics
    print(report(found, given.out), flush=True)


if __name__ == '__main__':
  main()
