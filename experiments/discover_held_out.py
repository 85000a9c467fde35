"""Measures how many of the facts that `discover` finds are in valid or test.

    python -m experiments.discover_held_out --config=configs/codex_s.py \
      --workdir=runs/codex_s

Trains on the train split. If the work folder contains the finished run, the run
is not repeated. Without --config, the work folder must contain a trained model.

Then finds the most plausible facts that are not in train. Prints how large a
share of the first 100 facts is in valid or test, and the same for the first
1,000. All other facts count as wrong, although some of them are correct and
only missing in the graph. `random` is the expected share among random facts.
The head and tail of a random fact are a head and a tail of its relation in
train. With the command above, seed 0 and `model.num_members = 1`, the shares
are .95 and .781, and `random` is .0067.

With --peer=ComplEx, also trains the ComplEx model of PyKEEN on the same split
for --minutes, and prints the shares for the facts with the highest scores of
this model. Needs `pip install '.[peers,plots]'`.
"""

import json
import pathlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

import coke_jax
from coke_jax import builtin_configs
from coke_jax.data import graph as graph_lib
from coke_jax.training import run
from experiments.paper import options as options_lib

HELD_OUT = ('valid', 'test')
NUMBERS = (100, 1000)


def measure(model: coke_jax.Model, numbers: Sequence[int]) -> dict[str, Any]:
  """Computes the shares of new facts that are in valid or test.

  Args:
    model: a model that was trained on the train split of a graph.
    numbers: for each number N, the share of the first N facts is computed.

  Returns:
    `held_out`: the number of facts that are in valid or test, but not in train.
    `random`: see the docstring of the module.
    `first_N` for each number N: the share of the first N facts, or of all facts
      if there are fewer than N.
  """
  graph = model.data
  assert isinstance(graph, graph_lib.KnowledgeGraph), 'expected triples'
  held_out = _held_out(graph)
  found = model.discover(
    top=max(numbers), splits=('train',), type_matching=True, progress=True
  )
  words = graph.vocabulary
  entities, relations = words.entity_ids, words.relation_ids
  ids = [
    (entities[new.fact[0]], relations[new.fact[1]], entities[new.fact[2]])
    for new in found
  ]
  chance = len(held_out) / _compared(graph)
  return {
    'held_out': len(held_out),
    'random': float(f'{chance:.2g}'),
    **_shares(ids, held_out, numbers),
  }


def _held_out(graph: graph_lib.KnowledgeGraph) -> set[tuple[int, ...]]:
  """Returns the facts of valid and test that are not in train."""
  facts = {*map(tuple, graph.triples(*HELD_OUT).tolist())}
  return facts - {*map(tuple, graph.train.tolist())}


def _shares(
  found: Sequence[tuple[int, ...]],
  held_out: Collection[tuple[int, ...]],
  numbers: Sequence[int],
) -> dict[str, float]:
  """Returns the share of held-out facts among the first N, for each N."""
  correct = np.array([fact in held_out for fact in found])
  return {f'first_{n}': round(float(correct[:n].mean()), 4) for n in numbers}


def measure_scores(
  score: Callable[[np.ndarray], np.ndarray],
  graph: graph_lib.KnowledgeGraph,
  numbers: Sequence[int],
) -> dict[str, float]:
  """Computes the shares of `measure` for the scores of any model.

  Only entities that are heads or tails of the relation in train are compared.

  Args:
    score: a function from int64 [B, 2], heads and relations, to the scores of
      all tails, float [B, V].
    graph: the graph on whose train split the model was trained.
    numbers: as in `measure`.
  """
  held_out = _held_out(graph)
  top = max(numbers)
  best: list[tuple[float, int, int, int]] = []
  for relation in np.unique(graph.train[:, 1]).tolist():
    known = graph.train[graph.train[:, 1] == relation]
    heads, tails = np.unique(known[:, 0]), np.unique(known[:, 2])
    pairs = np.stack([heads, np.full_like(heads, relation)], axis=1)
    scores = score(pairs.astype(np.int64))[:, tails]
    rows = np.searchsorted(heads, known[:, 0])
    scores[rows, np.searchsorted(tails, known[:, 2])] = -np.inf
    if not (known[:, 0] == known[:, 2]).any():
      scores[heads[:, None] == tails[None, :]] = -np.inf
    flat = scores.ravel()
    for place in np.argsort(-flat, kind='stable')[:top].tolist():
      if flat[place] > -np.inf:
        head, tail = divmod(place, len(tails))
        best.append((flat[place], int(heads[head]), relation, int(tails[tail])))
  best.sort(key=lambda one: -one[0])
  return _shares([one[1:] for one in best[:top]], held_out, numbers)


def measure_peer(
  name: str,
  graph: graph_lib.KnowledgeGraph,
  minutes: float,
  numbers: Sequence[int],
) -> dict[str, float]:
  """Trains a model of PyKEEN, see `pykeen_models`, and computes the shares.

  Args:
    name: the name of the peer in `pykeen_models.PEERS`.
    graph: the graph.
    minutes: the time for the training.
    numbers: as in `measure`.

  Returns:
    `minutes`, the test metric `mrr`, and the shares.
  """
  from experiments.benchmarks import pykeen_models  # only needed here

  (peer,) = (one for one in pykeen_models.PEERS if one.name == name)
  model, _, metrics = pykeen_models.train_peer(peer, graph, minutes, seed=0)
  return {
    'minutes': round(metrics['minutes'], 1),
    'mrr': round(metrics['mrr'], 4),
    **measure_scores(
      lambda pairs: pykeen_models.scores(model.predict_t, pairs), graph, numbers
    ),
  }


def _compared(graph: graph_lib.KnowledgeGraph) -> int:
  """Returns the number of facts outside train that could be found.

  The head and tail of such a fact are a head and a tail of its relation in
  train. A fact from an entity to itself only counts if train has such a fact of
  the relation.
  """
  total = 0
  for relation in np.unique(graph.train[:, 1]):
    known = np.unique(graph.train[graph.train[:, 1] == relation], axis=0)
    heads, tails = np.unique(known[:, 0]), np.unique(known[:, 2])
    total += len(heads) * len(tails) - len(known)
    if not (known[:, 0] == known[:, 2]).any():
      total -= len(np.intersect1d(heads, tails))
  return total


def main() -> None:
  """Trains if there is a config, and prints the shares as JSON."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--config', help='Python file with get_config()')
  parser.add_argument('--workdir', type=pathlib.Path, required=True)
  parser.add_argument('--peer', help='name of a PyKEEN model, such as ComplEx')
  parser.add_argument(
    '--minutes', type=float, default=5.0, help='training time of the peer'
  )
  arguments = parser.parse_args()
  if arguments.config:
    config = builtin_configs.load(arguments.config)
    run.train_and_evaluate(config, arguments.workdir)
  model = coke_jax.load(arguments.workdir)
  print(json.dumps(measure(model, NUMBERS)))
  if arguments.peer:
    graph = model.data
    assert isinstance(graph, graph_lib.KnowledgeGraph), 'expected triples'
    shares = measure_peer(arguments.peer, graph, arguments.minutes, NUMBERS)
    print(json.dumps({'peer': arguments.peer, **shares}))


if __name__ == '__main__':
  main()
