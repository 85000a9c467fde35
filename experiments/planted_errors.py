"""Adds errors to a graph, and measures how many of them `audit` finds.

    python -m experiments.planted_errors --config=configs/codex_s.py \
      --workdir=runs/planted

Plants errors: replaces the head or tail of 2 % of the training triples by
another entity, so that the new triples are in no split. Trains on the changed
graph. `audit` sorts the training triples, the least plausible first. Prints the
share of planted errors in the first 2 % of this list. The command above gives a
share of .64, and a random order would give .02. With --same-type, a new head
must be a head of the relation in train, and a new tail must be a tail of the
relation in train. Then the share is .17.

With --folds=5, five more models are trained. A second audit scores most facts
with a model that was trained without the fact. For CoDEx-S with a single member
(`model.num_members`), the second share is .38, and the first share is .65.
Finished trainings in the work folder are not repeated.
"""

import dataclasses
import json
import pathlib
from collections.abc import Iterable
from typing import Any

import numpy as np

import coke_jax
from coke_jax import builtin_configs, cross_audit, tasks
from coke_jax.data import graph as graph_lib
from coke_jax.data import prepared_files
from coke_jax.predict.jobs import audit
from coke_jax.training import run
from experiments.paper import options as options_lib

_ATTEMPTS = 100


def plant(
  graph: graph_lib.KnowledgeGraph, share: float, seed: int, same_type: bool
) -> tuple[np.ndarray, np.ndarray]:
  """Replaces the head or tail of some training triples.

  Args:
    graph: the graph. Its training triples are distinct.
    share: the share of training triples to replace.
    seed: the seed of the choice.
    same_type: whether a new head must be a head of the relation in train, and a
      new tail must be a tail. Otherwise, any entity is possible.

  Returns:
    int32 [T, 3], the new training triples.
    bool [T], whether each triple is a planted error.
  """
  generator = np.random.default_rng(seed)
  train = graph.train.copy()
  known = set(map(tuple, graph.triples(*graph_lib.SPLITS).tolist()))
  wrong = np.zeros(len(train), dtype=bool)
  chosen = generator.permutation(len(train))[: round(share * len(train))]
  for row in chosen:
    for _ in range(_ATTEMPTS):
      changed = train[row].copy()
      place = generator.choice([0, 2])
      pool = np.arange(graph.vocabulary.num_entities)
      if same_type:
        pool = np.unique(graph.train[graph.train[:, 1] == changed[1], place])
      changed[place] = generator.choice(pool)
      if tuple(changed.tolist()) not in known:
        known.add(tuple(changed.tolist()))
        train[row], wrong[row] = changed, True
        break
  return train, wrong


def main() -> None:
  """Plants errors, trains and audits."""
  parser = options_lib.new_parser(__doc__)
  parser.add_argument('--config', required=True)
  parser.add_argument('--workdir', type=pathlib.Path, required=True)
  parser.add_argument('--share', type=float, default=0.02)
  parser.add_argument('--seed', type=int, default=0)
  parser.add_argument('--same-type', action='store_true')
  parser.add_argument('--folds', type=int, default=0)
  arguments = parser.parse_args()
  config = builtin_configs.load(arguments.config)
  graph = tasks.read_data(config)
  assert isinstance(graph, graph_lib.KnowledgeGraph), 'expected triples'
  train, wrong = plant(
    graph, arguments.share, arguments.seed, arguments.same_type
  )
  data = arguments.workdir / 'data'
  prepared_files.write(
    data, dataclasses.replace(graph, train=train), {}, overwrite=True
  )
  config.data.name = f'{graph.name} with errors'
  config.data.dir = str(data)
  run.train_and_evaluate(config, arguments.workdir / 'run', split='valid')
  model = coke_jax.load(arguments.workdir / 'run')
  words = graph.vocabulary
  planted = {
    (words.entities[h], words.relations[r], words.entities[t])
    for h, r, t in train[wrong].tolist()
  }
  count = len(planted)

  def share(found: Iterable[audit.Suspicion]) -> float:
    return round(sum(one.fact in planted for one in found) / count, 4)

  options: dict[str, Any] = {'top': count, 'splits': ('train',), 'expected': 0}
  found = model.audit(**options)
  result = {'planted': count, 'share_in_first': share(found)}
  if arguments.folds:
    found = cross_audit.audit(
      arguments.workdir / 'run', arguments.folds, **options
    )
    result['share_in_first_with_folds'] = share(found)
  print(json.dumps(result))


if __name__ == '__main__':
  main()
