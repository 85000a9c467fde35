"""What one gets for naming the most frequent entity of each relation.

    python experiments/frequency_baseline.py --config=configs/countries.py

Triples: an entity's score for `s r ?` (or `? r o`) is how often it is the tail
(or head) of `r` in train. Paths: how often it ends a training edge of the
path's last relation. Everything else, filters and metrics, is as for a model.
"""

import argparse
import importlib.util
import json
import pathlib
from typing import Any

import numpy as np

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import graph as graph_lib
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranks as ranks_lib


def rank_triples(task: link_prediction.LinkPrediction, split: str) -> Any:
  """Ranks of a split's tails, then heads, by frequency in train."""
  graph = task.data
  vocabulary = graph.vocabulary
  shape = (2, vocabulary.num_relations, vocabulary.num_entities)
  frequency = np.zeros(shape, dtype=np.int64)  # tails, then heads
  head, relation, tail = graph.train.T
  np.add.at(frequency, (0, relation, tail), 1)
  np.add.at(frequency, (1, relation, head), 1)
  triples = graph.split(split)
  queries = queries_lib.from_triples(triples, vocabulary)
  indptr, indices = queries.known_answers(
    queries_lib.from_triples(graph.triples(*graph_lib.SPLITS), vocabulary)
  )
  better, equal, candidates = [], [], []
  for row, gold in enumerate(queries.indices):
    scores = frequency[row // len(triples), triples[row % len(triples), 1]]
    competing = np.ones(len(scores), dtype=bool)
    competing[indices[indptr[row] : indptr[row + 1]]] = False
    competing[gold] = False
    better.append((competing & (scores > scores[gold])).sum())
    equal.append((competing & (scores == scores[gold])).sum())
    candidates.append(competing.sum() + 1)
  ranks = ranks_lib.Ranks(*map(np.array, (better, equal, candidates)))
  return task.summarize(ranks, split)


def rank_paths(task: path_queries.PathQueries, split: str) -> Any:
  """Ranks of a split's targets by frequency behind their last relation."""
  data = task.data
  vocabulary = data.vocabulary
  shape = (vocabulary.num_relations, vocabulary.num_entities)
  frequency = np.zeros(shape, dtype=np.int64)
  head, relation, tail = data.train.single_edges().T
  inverse = data.inverse[relation]
  np.add.at(frequency, (relation, tail), 1)
  there = inverse != vocabulary_lib.NO_RELATION
  np.add.at(frequency, (inverse[there], head[there]), 1)
  sets = task.sets(split)
  target = data.split(split).target
  better, equal, candidates = [], [], []
  for start in range(0, len(target), 512):
    rows = np.arange(start, min(start + 512, len(target)))
    last = sets.last_relation[rows]
    gold = target[rows]
    competing = sets.candidate_mask[last] & ~sets.answers.mask(rows)
    competing[np.arange(len(rows)), gold] = False
    scores = frequency[last]
    gold_score = frequency[last, gold][:, None]
    better.append((competing & (scores > gold_score)).sum(axis=1))
    equal.append((competing & (scores == gold_score)).sum(axis=1))
    candidates.append(competing.sum(axis=1) + 1)
  ranks = ranks_lib.Ranks(*map(np.concatenate, (better, equal, candidates)))
  return task.summarize(ranks, split)


def main() -> None:
  """Prints the table, and writes the results where asked to."""
  parser = argparse.ArgumentParser(
    description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
  )
  parser.add_argument('--config', required=True, help='a file of configs/')
  parser.add_argument('--split', default='test', choices=['valid', 'test'])
  parser.add_argument('--data-dir', default='', help='instead of data.dir')
  parser.add_argument('--out', help='write the results there, as JSON')
  arguments = parser.parse_args()
  if not pathlib.Path(arguments.config).is_file():
    parser.error(f'--config={arguments.config}: no such file')
  spec = importlib.util.spec_from_file_location('config', arguments.config)
  assert spec is not None
  assert spec.loader is not None
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  config = module.get_config()
  config.data.dir = arguments.data_dir or config.data.dir
  config_lib.validate(config)
  task = tasks.make_task(config, tasks.read_data(config))
  if isinstance(task, path_queries.PathQueries):
    results = rank_paths(task, arguments.split)
  else:
    assert isinstance(task, link_prediction.LinkPrediction)
    results = rank_triples(task, arguments.split)
  print('by frequency alone:')
  print(task.format_table(results))
  if arguments.out:
    text = json.dumps(results, indent=2)
    pathlib.Path(arguments.out).write_text(text, encoding='utf-8')


if __name__ == '__main__':
  main()
