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

import dataclasses
import functools
import json
import pathlib
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import matplotlib.figure
import numpy as np
import pykeen.evaluation
import pykeen.models
import pykeen.training
import pykeen.triples
import torch

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import graph as graph_lib
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import counting
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.storage import json_files
from experiments.paper import formats
from experiments.paper import options as options_lib

_QUERIES_PER_CALL = 256
# Maximum difference between the MRRs of the two evaluators, which round float32
# scores differently.
_TOLERANCE = 1e-3

# The elapsed minutes and the valid MRR of each validation.
Curve = list[tuple[float, float]]


@dataclasses.dataclass(frozen=True)
class Peer:
  """A model of PyKEEN with its settings.

  Attributes:
    name: the name in the table.
    model: the name of the model class.
    settings: keyword arguments of the model.
    learning_rate: learning rate of Adam.
    batch_size: number of distinct queries in a batch.
    label_smoothing: probability mass that is spread over all entities.
    source: a paper, or how the settings were chosen.
  """

  name: str
  model: str
  settings: dict[str, Any]
  learning_rate: float
  batch_size: int
  label_smoothing: float
  source: str


_NORMAL = functools.partial(torch.nn.init.normal_, std=0.1)
_COMPLEX = {
  'embedding_dim': 256,  # the number of complex numbers
  'loss': 'CrossEntropyLoss',
  # By default, the initial embeddings have the standard deviation 1, and there
  # is a penalty. Then the valid MRR on CoDEx-S is .004 after five minutes.
  'entity_initializer': _NORMAL,
  'relation_initializer': _NORMAL,
  'regularizer': None,
}

PEERS = (
  Peer(
    'ComplEx',
    'ComplEx',
    _COMPLEX,
    learning_rate=5e-3,
    batch_size=256,
    label_smoothing=0.0,
    source='chosen with valid MRRs of CoDEx-S after one minute',
  ),
  Peer(
    'published ComplEx',
    'ComplEx',
    _COMPLEX,
    learning_rate=3.4e-4,
    batch_size=1024,
    label_smoothing=0.0,
    source='CoDEx-S in Safavi and Koutra 2020, without their dropout of .08',
  ),
  Peer(
    'ConvE',
    'ConvE',
    {
      'output_channels': 32,
      'embedding_height': 10,
      'embedding_width': 20,
      'kernel_height': 3,
      'kernel_width': 3,
      'input_dropout': 0.2,
      'feature_map_dropout': 0.2,
      'output_dropout': 0.3,
      'embedding_dim': 200,
      'loss': 'BCEAfterSigmoidLoss',
    },
    learning_rate=1e-3,
    batch_size=128,
    label_smoothing=0.1,
    source='Dettmers et al. 2018',
  ),
)


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
    lines = out / 'metrics.jsonl'
    text = lines.read_text(encoding='utf-8') if lines.exists() else ''
    valid = [
      json.loads(line)['both']['mrr']
      for line in text.splitlines(keepends=True)
      if line.endswith('\n') and '"kind": "valid"' in line
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


def factory(
  graph: graph_lib.KnowledgeGraph, split: str, *, inverse: bool
) -> pykeen.triples.TriplesFactory:
  """Returns the triples of a split for PyKEEN, with the ids of the graph."""
  vocabulary = graph.vocabulary
  return pykeen.triples.TriplesFactory(
    torch.as_tensor(np.asarray(graph.split(split)), dtype=torch.long),
    {label: index for index, label in enumerate(vocabulary.entities)},
    {label: index for index, label in enumerate(vocabulary.relations)},
    create_inverse_triples=inverse,
  )


def rank(
  model: Any, graph: graph_lib.KnowledgeGraph, split: str
) -> ranks_lib.Ranks:
  """Ranks all tails of a split, then all heads, by the scores of a model."""
  triples = np.asarray(graph.split(split))
  queries = queries_lib.from_triples(triples, graph.vocabulary)
  known = [graph.train, graph.valid]
  if split == 'test':
    known.append(graph.test)
  facts = queries_lib.from_triples(np.concatenate(known), graph.vocabulary)
  every = queries.known_answers(facts, graph.vocabulary.num_entities)
  found = []
  for start, scores in _scores(model, triples):
    rows = slice(start, start + len(scores))
    indptr, indices = every.csr(np.arange(len(queries))[rows])
    result, finite = counting.count_filtered(
      jnp.asarray(scores),
      jnp.asarray(queries.indices[rows]),
      jnp.asarray(np.repeat(np.arange(len(scores)), np.diff(indptr))),
      jnp.asarray(indices),
    )
    assert np.asarray(finite).all()
    found.append(
      [np.asarray(result[name]) for name in ('better', 'equal', 'candidates')]
    )
  return ranks_lib.Ranks(
    *(np.concatenate(one) for one in zip(*found, strict=True))
  )


def measure(
  model: Any, graph: graph_lib.KnowledgeGraph, split: str
) -> dict[str, float]:
  """Returns the filtered metrics of heads and tails together."""
  ranks = rank(model, graph, split)
  return ranks_lib.rank_metrics(ranks.realistic, ranks.candidates)


def _scores(
  model: Any, triples: np.ndarray
) -> Iterator[tuple[int, np.ndarray]]:
  """Yields scores [B, V] for the tails of all triples, then for the heads."""
  parts: list[tuple[Callable[..., Any], np.ndarray, int]] = [
    (model.predict_t, triples[:, :2], 0),
    (model.predict_h, triples[:, 1:], len(triples)),
  ]
  for predict, pairs, offset in parts:
    for start in range(0, len(pairs), _QUERIES_PER_CALL):
      batch = torch.as_tensor(
        pairs[start : start + _QUERIES_PER_CALL], dtype=torch.long
      )
      yield offset + start, predict(batch).detach().numpy()


def train_peer(
  peer: Peer, graph: graph_lib.KnowledgeGraph, minutes: float, seed: int
) -> tuple[Any, Curve, dict[str, Any]]:
  """Trains a peer for some minutes, and tests it.

  The minutes include the validations. The parameters of the best validation are
  used for the test.

  Returns:
    The model of PyKEEN.
    The curve.
    The test metrics, and `minutes`, the time of the training.

  Raises:
    RuntimeError: the test MRRs of the two evaluators differ.
  """
  torch.manual_seed(seed)
  started = time.monotonic()

  def elapsed() -> float:
    return (time.monotonic() - started) / 60

  train = factory(graph, 'train', inverse=True)
  model = getattr(pykeen.models, peer.model)(
    triples_factory=train, random_seed=seed, **peer.settings
  )
  optimizer = torch.optim.Adam(model.parameters(), lr=peer.learning_rate)
  loop = pykeen.training.LCWATrainingLoop(
    model=model, triples_factory=train, optimizer=optimizer
  )
  curve: Curve = []
  best: tuple[float, dict[str, Any]] = (-1.0, {})
  epochs, step = 0, 1
  while elapsed() < minutes:
    before = elapsed()
    epochs += step
    loop.train(
      train,
      num_epochs=epochs,
      batch_size=peer.batch_size,
      label_smoothing=peer.label_smoothing,
      continue_training=epochs > step,
      use_tqdm=False,
      use_tqdm_batch=False,
    )
    mrr = measure(model, graph, 'valid')['mrr']
    curve.append((elapsed(), mrr))
    print(f'{peer.name}: epoch {epochs}, {elapsed():.1f} min, {mrr:.4f}')
    if mrr > best[0]:
      best = mrr, {k: v.clone() for k, v in model.state_dict().items()}
    # Validate about twenty times. The last validation is at the end.
    pace = (elapsed() - before) / step
    wanted = min(minutes / 20, max(minutes - elapsed(), 0.0))
    step = max(1, int(wanted / pace))
  used = elapsed()
  model.load_state_dict(best[1])
  metrics = measure(model, graph, 'test')
  evaluator = pykeen.evaluation.RankBasedEvaluator(filtered=True)
  theirs = evaluator.evaluate(
    model,
    factory(graph, 'test', inverse=False).mapped_triples,
    additional_filter_triples=[
      factory(graph, split, inverse=False).mapped_triples
      for split in ('train', 'valid')
    ],
    batch_size=_QUERIES_PER_CALL,
    use_tqdm=False,
  ).get_metric('both.realistic.inverse_harmonic_mean_rank')
  if abs(theirs - metrics['mrr']) > _TOLERANCE:
    raise RuntimeError(
      f'{peer.name}: the test MRR is {metrics["mrr"]:.5f}, and {theirs:.5f} '
      f'with PyKEEN: expected a difference of at most {_TOLERANCE:g}'
    )
  return model, curve, {**metrics, 'minutes': used, 'mrr_of_pykeen': theirs}


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
    help='names in PEERS, separated by commas; default: %(default)s',
  )
  add('--seed', type=int, default=0, help='random seed; default: 0')
  add('--out', type=pathlib.Path, required=True, help='folder for all results')
  given, overrides = parser.parse_known_args(arguments)
  chosen = [peer for peer in PEERS if peer.name in given.peers.split(',')]
  given.out.mkdir(parents=True, exist_ok=True)
  overrides.append(f'--config.train.seed={given.seed}')
  workdir = given.out / f'seed{given.seed}'
  name = pathlib.Path(given.config).stem
  found = {name: train_config(given.config, overrides, workdir)}
  saved = json_files.read_json(workdir / 'config.json')
  graph: Any = tasks.read_data(config_lib.from_dict(saved))
  for peer in chosen:
    _, curve, metrics = train_peer(peer, graph, given.minutes, given.seed)
    found[f'PyKEEN {peer.name}'] = curve, metrics
    print(report(found, given.out), flush=True)


if __name__ == '__main__':
  main()
