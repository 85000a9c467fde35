"""Compares the results for path queries with loops over Python sets."""

import numpy as np
import pytest
import small

from coke_jax import config, tasks
from coke_jax.data import graph, paths, vocabulary, walks
from coke_jax.evaluate import path_queries
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.training import loop
from coke_jax.training import setup as setup_lib

ENTITIES = 14
RELATIONS = ('**a', '**b', 'a', 'b')
INVERSE = np.array([2, 3, 0, 1], np.int32)
LONGEST = 3


def random_data(seed):
  """Draws random paths. The first paths of each split are single edges."""
  generator = np.random.default_rng(seed)
  labels = small.labels(ENTITIES, RELATIONS)

  def path_set(edges, count):
    source = generator.integers(0, ENTITIES, count)
    relations = generator.integers(0, len(RELATIONS), (count, LONGEST))
    length = generator.integers(1, LONGEST + 1, count)
    relations[np.arange(LONGEST) >= length[:, None]] = vocabulary.NO_RELATION
    relations[:edges, 1:] = vocabulary.NO_RELATION
    relations[:edges, 0] = generator.integers(2, 4, edges)
    return paths.PathSet(
      source.astype(np.int32),
      relations.astype(np.int32),
      generator.integers(0, ENTITIES, count).astype(np.int32),
    )

  valid, test = path_set(4, 12), path_set(6, 40)
  deduction = {
    'valid': generator.random(12) < 0.5,
    'test': generator.random(40) < 0.5,
  }
  return paths.PathData(
    'random', labels, INVERSE, path_set(15, 40), valid, test, deduction
  )


# -------------------------------------------------------------- the reference


def as_tuples(path_set):
  return [
    (int(s), [int(r) for r in row if r >= 0], int(t))
    for s, row, t in zip(
      path_set.source, path_set.relations, path_set.target, strict=True
    )
  ]


def edges_of(*sets):
  edges = set()
  for path_set in sets:
    for source, relations, target in as_tuples(path_set):
      if len(relations) == 1:
        edges.add((source, relations[0], target))
        edges.add((target, int(INVERSE[relations[0]]), source))
  return edges


def quantile(edges, path, scores):
  """Returns (quantile of a path's target, whether its rank is at most 10).

  If the target has no negatives, returns None.
  """
  source, relations, target = path
  reached = {source}
  for relation in relations:
    reached = {t for s, r, t in edges if r == relation and s in reached}
  candidates = {t for _, r, t in edges if r == relations[-1]}
  negatives = candidates - reached - {target}
  if not negatives:
    return None
  above = sum(scores[n] > scores[target] for n in negatives)
  above += sum(scores[n] == scores[target] for n in negatives) / 2
  return (len(negatives) - above) / len(negatives), above <= 9


def mean_of(results):
  kept = [result for result in results if result is not None]
  return {
    'queries': len(results),
    'trivial': len(results) - len(kept),
    **(
      {
        'mean_quantile': float(np.mean([q for q, _ in kept])),
        'hits@10': float(np.mean([hit for _, hit in kept])),
      }
      if kept
      else {}
    ),
  }


@pytest.mark.parametrize('seed', range(6))
@pytest.mark.parametrize('split', ['valid', 'test'])
def test_results_equal_brute_force(seed, split):
  data = random_data(seed)
  task = path_queries.PathQueries(data, LONGEST)
  width = LONGEST + 2
  model = small.TableModel(data.vocabulary, width, levels=3, seed=seed)
  ranker = ranker_lib.Ranker(model, 8)
  ranks = task.rank(ranker, model.tables, split)
  results = task.summarize(ranks, split)

  path_set = data.split(split)
  queries = paths.queries_from_paths(path_set, data.vocabulary, side='tail')
  edges = edges_of(data.train, path_set)
  expected = [
    quantile(edges, path, sum(model.tables[k][tokens[k]] for k in range(width)))
    for path, tokens in zip(as_tuples(path_set), queries.tokens, strict=True)
  ]
  parts = {'all': mean_of(expected)}
  for length in range(1, LONGEST + 1):
    parts[str(length)] = mean_of(
      [e for e, n in zip(expected, path_set.length, strict=True) if n == length]
    )
  deduction = data.deduction[split]
  parts['deduction'] = mean_of([expected[i] for i in np.flatnonzero(deduction)])

  def same(got, wanted):
    assert {key: got[key] for key in wanted} == pytest.approx(wanted)
    assert ('mean_quantile' in got) == ('mean_quantile' in wanted)

  same(results, parts['all'])
  same(results['deduction'], parts['deduction'])
  for length, got in results['by_length'].items():
    same(got, parts[length])
  assert (results['dataset'], results['split']) == ('random', split)
  assert 'all paths' in task.format_table(results)


def test_quantiles_by_hand():
  ranks = ranks_lib.Ranks(
    better=np.array([0, 2, 9, 10, 0, 9]),
    equal=np.array([0, 2, 0, 0, 0, 1]),
    candidates=np.array([5, 9, 41, 41, 1, 21]),
  )
  metrics = path_queries.quantile_metrics(ranks)
  assert (metrics['queries'], metrics['trivial']) == (6, 1)
  # A negative with an equal score counts as half. The fifth query has no
  # negatives.
  quantiles = [1, (8 - 3) / 8, 31 / 40, 30 / 40, (20 - 9.5) / 20]
  assert metrics['mean_quantile'] == pytest.approx(np.mean(quantiles))
  assert metrics['hits@10'] == pytest.approx(3 / 5)


def test_only_trivial_queries():
  none = np.zeros(2, np.int64)
  metrics = path_queries.quantile_metrics(ranks_lib.Ranks(none, none, none + 1))
  assert metrics == {'queries': 2, 'trivial': 2}


def small_config():
  return small.config(
    data={'name': 'walks', 'kind': 'walks', 'max_path_length': 2},
    model={'hidden_size': 64, 'feed_forward_size': 128, 'dropout': 0.0},
    train={
      'rows': 'query',
      'batch_size': 32,
      'num_epochs': 20,
      'validate_every_epochs': 10,
      'learning_rate': 3e-3,
      'target_mass': 1.0,
    },
  )


def test_training_on_sampled_paths_beats_chance(tmp_path):
  """The graph is a ring of 30 entities, which is easy to learn."""
  ring = np.array([[i, 0, (i + 1) % 30] for i in range(30)], np.int32)
  labels = small.labels(30, ['next'])
  triples = graph.KnowledgeGraph('ring', labels, ring, ring[:5], ring[5:10])
  data = walks.sample_path_data(triples, seed=0, longest=3)
  settings = small_config()
  folder = small.create_workdir(tmp_path, settings, data)
  task = tasks.make_task(settings, folder.data())
  assert isinstance(task, path_queries.PathQueries)
  assert task.max_length == 5
  worker = loop.Trainer(setup_lib.Setup(settings, task), folder)
  lengths = (worker.setup.training_set.queries.tokens != labels.pad_id + 1).sum(
    1
  )
  # Paths of one and of two relations have 3 and 4 tokens.
  assert set(lengths) == {3, 4}
  state = worker.run()
  results = task.evaluate(worker.ranker, state.params, 'test', choosing=False)
  assert results['mean_quantile'] > 0.7
  assert set(results['by_length']) <= {'1', '2', '3'}
  if '1' in results['by_length']:
    assert results['single_edges']['both']['mrr'] > 0.5


def test_a_path_length_that_no_path_has():
  data = random_data(0)
  long = data.train.take(data.train.length > 1)
  task = path_queries.PathQueries(
    paths.PathData(
      'x', data.vocabulary, INVERSE, long, data.valid, data.test, {}
    ),
    1,
  )
  with pytest.raises(config.ConfigError, match='max_path_length is 1'):
    task.training_queries()
