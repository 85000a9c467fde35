"""Ranks entities by how often they occur with a relation, as a baseline.

    python experiments/frequency_baseline.py --config=configs/countries.py

For `(h, r, ?)`, the score of an entity is the number of training triples of `r`
with the entity as tail. For `(?, r, t)`, the score is the number of training
triples of `r` with the entity as head. For a path, the score is the number of
training edges that have the path's last relation and end in the entity. Filters
and metrics are those of the models.
"""

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from coke_jax import builtin_configs, tasks
from coke_jax import config as config_lib
from coke_jax.data import graph as graph_lib
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranks as ranks_lib


def rank_triples(task: link_prediction.LinkPrediction, split: str) -> Any:
  """Ranks tails, then heads, by their frequency in train."""
  graph = task.data
  vocabulary = graph.vocabulary
  shape = (2, vocabulary.num_relations, vocabulary.num_entities)
  frequency = np.zeros(shape, dtype=np.int64)  # tails, then heads
  head, relation, tail = graph.train.T
  np.add.at(frequency, (0, relation, tail), 1)
  np.add.at(frequency, (1, relation, head), 1)
  triples = graph.split(split)
  queries = queries_lib.from_triples(triples, vocabulary)
  known = queries.known_answers(
    queries_lib.from_triples(graph.triples(*graph_lib.SPLITS), vocabulary),
    vocabulary.num_entities,
  )

  def score(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    side, number = np.divmod(rows, len(triples))
    scores = frequency[side, triples[number, 1]]
    return scores, ~known.mask(rows)

  return task.summarize(rank(queries.indices, score), split)


def rank_paths(task: path_queries.PathQueries, split: str) -> Any:
  """Ranks targets by their frequency with the path's last relation."""
  data = task.data
  vocabulary = data.vocabulary
  shape = (vocabulary.num_relations, vocabulary.num_entities)
  frequency = np.zeros(shape, dtype=np.int64)
  head, relation, tail = data.train.single_edges().T
  inverse = data.inverse[relation]
  np.add.at(frequency, (relation, tail), 1)
  inverted = inverse != vocabulary_lib.NO_RELATION
  np.add.at(frequency, (inverse[inverted], head[inverted]), 1)
  sets = task.sets(split)

  def score(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    last = sets.last_relation[rows]
    candidates = sets.candidate_mask[last] & ~sets.answers.mask(rows)
    return frequency[last], candidates

  return task.summarize(rank(data.split(split).target, score), split)


def rank(
  gold: np.ndarray,
  score: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]],
) -> ranks_lib.Ranks:
  """Ranks the gold entity of each query.

  Args:
    gold: int [N], the gold entities.
    score: maps row numbers [B] to scores [B, V] and candidates, bool [B, V].
      The gold entity counts as a candidate even if its entry is False.
  """
  better, equal, candidates = [], [], []
  for rows in np.array_split(np.arange(len(gold)), max(1, len(gold) // 512)):
    scores, others = score(rows)
    own = np.arange(len(rows)), gold[rows]
    others[own] = False
    gold_scores = scores[own][:, None]
    better.append((others & (scores > gold_scores)).sum(axis=1))
    equal.append((others & (scores == gold_scores)).sum(axis=1))
    candidates.append(others.sum(axis=1) + 1)
  return ranks_lib.Ranks(*map(np.concatenate, (better, equal, candidates)))


def main() -> None:
  """Prints the table."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--config', required=True, help='a file of configs/')
  parser.add_argument('--split', default='test', choices=['valid', 'test'])
  arguments = parser.parse_args()
  try:
    config = builtin_configs.load(arguments.config)
  except config_lib.ConfigError as error:
    parser.error(str(error))
  config_lib.validate(config)
  task = tasks.make_task(config, tasks.read_data(config))
  if isinstance(task, path_queries.PathQueries):
    results = rank_paths(task, arguments.split)
  else:
    assert isinstance(task, link_prediction.LinkPrediction)
    results = rank_triples(task, arguments.split)
  print('by frequency alone:')
  print(task.format_table(results))


if __name__ == '__main__':
  main()
