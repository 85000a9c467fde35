"""Compares ranks with a brute-force reference, and tests the metrics of ranks.

Ranks can be compared exactly only if the last bits of a score do not depend on
the shape of the batch. The scores of `TableModel` are exact sums of small
integers. If the scale and bias of the prediction layer norm are 0, the scores
of CoKE are the entity biases. With other parameters of CoKE, tests
allow for rounding.
"""

import itertools
import json
import math
import pathlib
import sys

import jax
import numpy as np
import pytest
import small

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.data import graph, queries
from coke_jax.evaluate import counting as counting_lib
from coke_jax.evaluate import device_call, link_prediction
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.model import encoder

ENTITIES, RELATIONS = 23, 4


def random_graph(seed: int, sizes=(60, 17, 19)) -> graph.KnowledgeGraph:
  """Draws a graph whose test triples contain entities that train lacks."""
  made = small.random_graph(
    seed=seed, sizes=sizes, entities=ENTITIES, relations=RELATIONS, unseen=3
  )
  if sizes[2]:
    made.test[0, 0], made.test[1, 2] = ENTITIES - 1, ENTITIES - 2
  return made


def table_model(seed: int = 0, levels: int = 4) -> small.TableModel:
  return small.TableModel(
    small.labels(ENTITIES, RELATIONS), levels=levels, seed=seed
  )


def coke() -> encoder.CoKE:
  return small.coke(ENTITIES, RELATIONS, num_layers=1, dropout=0.3)


@pytest.fixture(scope='module')
def parameters():
  return small.random_params(coke(), seed=1, scale=0.3)


@pytest.fixture(scope='module')
def counted():
  """Returns a ranker for the tables of any `table_model`."""
  return ranker_lib.Ranker(table_model(), 8 * parallel.num_devices())


@pytest.fixture(scope='module')
def ranker():
  """Returns a ranker of `coke()` with batches of 8 rows on each device."""
  return ranker_lib.Ranker(coke(), 8 * parallel.num_devices())


# -------------------------------------------------------------- the reference


def sides(triples: np.ndarray) -> list[tuple[str, tuple[int, int, int]]]:
  """Lists the queries in the order of the results: tails, then heads."""
  listed = [tuple(map(int, triple)) for triple in triples]
  return [('tail', t) for t in listed] + [('head', t) for t in listed]


def other_candidates(
  side, triple, known: set[tuple[int, int, int]]
) -> list[int]:
  """Lists the candidates except the gold entity."""
  head, relation, tail = triple
  others = []
  for entity in range(ENTITIES):
    if side == 'tail':
      other, gold = (head, relation, entity), tail
    else:
      other, gold = (entity, relation, tail), head
    if entity != gold and other not in known:
      others.append(entity)
  return others


def reference(scores, made: graph.KnowledgeGraph, split, filter_splits):
  """Counts better, equal and candidate entities of each query, by loops.

  `scores(side, triple)` returns the scores of all entities, [V].

  Returns:
    int64 [3, N], the three counts of each query.
  """
  known = {
    tuple(map(int, triple))
    for name in filter_splits
    for triple in made.split(name)
  }
  rows = []
  for side, triple in sides(made.split(split)):
    of = scores(side, triple)
    gold = of[triple[2] if side == 'tail' else triple[0]]
    others = [of[entity] for entity in other_candidates(side, triple, known)]
    rows.append(
      (
        sum(score > gold for score in others),
        sum(score == gold for score in others),
        len(others) + 1,
      )
    )
  return np.array(rows).reshape(-1, 3).T


def table_scores(tables: list[np.ndarray], made: graph.KnowledgeGraph):
  words = made.vocabulary

  def of(side, triple) -> list[float]:
    head, relation, tail = triple
    tokens = [head, words.num_entities + relation, tail]
    tokens[0 if side == 'head' else 2] = words.mask_id
    shift = 0 if side == 'head' else 2
    return [
      sum(float(tables[k][token, e]) for k, token in enumerate(tokens)) + shift
      for e in range(ENTITIES)
    ]

  return of


def assert_ranks(ranks: ranks_lib.Ranks, better, equal, candidates) -> None:
  assert ranks.better.tolist() == list(better)
  assert ranks.equal.tolist() == list(equal)
  assert ranks.candidates.tolist() == list(candidates)
  for column in (ranks.better, ranks.equal, ranks.candidates):
    assert column.dtype == np.int64


# --------------------------------------------------------------- exact scores


@pytest.mark.parametrize(
  ('size', 'levels'), [(1, 2), (3, 2), (7, 50), (64, 3), (1024, 1)]
)
def test_ranks_equal_the_reference(size, levels):
  made = random_graph(size)
  model = table_model(size, levels)
  exact = ranker_lib.Ranker(model, size * parallel.num_devices())
  task = link_prediction.LinkPrediction(made)
  for split, filter_splits in (
    ('test', graph.SPLITS),
    ('valid', ('train', 'valid')),
    ('test', ('train',)),
  ):
    params = parallel.replicate(model.tables)
    ranks = task.rank(exact, params, split, filter_splits)
    scores = table_scores(model.tables, made)
    wanted = reference(scores, made, split, filter_splits)
    assert_ranks(ranks, *wanted)
    if levels == 1:  # All scores are equal.
      assert ranks.realistic.tolist() == ((wanted[2] + 1) / 2).tolist()


@pytest.mark.parametrize('size', [5, 64])
def test_ranks_among_candidates(size):
  made = random_graph(size)
  model = table_model(size)
  masked = queries.from_triples(made.test, made.vocabulary)
  candidates = np.random.default_rng(size).random((len(masked), ENTITIES)) < 0.4
  ranks = ranker_lib.Ranker(model, size * parallel.num_devices()).rank_among(
    parallel.replicate(model.tables), masked, lambda rows: candidates[rows]
  )
  of = table_scores(model.tables, made)
  wanted = []
  for row, (side, triple) in enumerate(sides(made.test)):
    gold = triple[2] if side == 'tail' else triple[0]
    scores = of(side, triple)
    others = [
      scores[e] for e in range(ENTITIES) if candidates[row, e] and e != gold
    ]
    better = sum(score > scores[gold] for score in others)
    equal = sum(score == scores[gold] for score in others)
    wanted.append((better, equal, len(others) + 1))
  assert_ranks(ranks, *zip(*wanted, strict=True))


def test_the_config_selects_the_queries_that_determine_the_checkpoint():
  made = random_graph(8)
  config = small.config(train={'choose_by': 'tail r1'})
  task = tasks.make_task(config, made)
  assert (task.side, task.relation) == ('tail', 'r1')
  config.train.choose_by = 'head a relation'
  with pytest.raises(config_lib.ConfigError, match="is 'head a relation'"):
    tasks.make_task(config, made)


def test_choosing_a_checkpoint_does_not_use_test(counted):
  """When a checkpoint is chosen, only train and valid are in the filter."""
  made = random_graph(8, sizes=(40, 30, 60))
  task = link_prediction.LinkPrediction(made)
  tables = table_model(8, levels=30).tables
  params = parallel.replicate(tables)
  for choosing, splits in ((True, ('train', 'valid')), (False, graph.SPLITS)):
    results = task.evaluate(counted, params, 'valid', choosing=choosing)
    ranks = task.rank(counted, params, 'valid', splits)
    expected = task.summarize(ranks, 'valid')
    assert results == {**expected, 'filter': list(splits)}
    assert task.choosing_metric(results) == results['both']['mrr']
    for side, relation in itertools.product(
      ('both', 'head', 'tail'), made.vocabulary.relations
    ):
      for chosen in ('', relation):
        options = {'side': side, 'relation': chosen}
        part = results['by_relation'][relation] if chosen else results
        metric = link_prediction.LinkPrediction(
          made, **options
        ).choosing_metric(results)
        assert metric == part[side]['mrr']
    wanted = reference(table_scores(tables, made), made, 'valid', splits)
    mean = float(np.mean(wanted[0] + wanted[1] / 2 + 1))
    assert results['both']['mean_rank'] == pytest.approx(mean)
    assert results['queries'] == 2 * len(made.valid)


def test_training_queries_are_both_sides_of_train():
  made = random_graph(9)
  task = link_prediction.LinkPrediction(made)
  masked, mask = task.training_queries(), made.vocabulary.mask_id
  assert task.max_length == 3
  assert masked.tokens.tolist() == [
    [h, ENTITIES + r, mask] for h, r, _ in made.train.tolist()
  ] + [[mask, ENTITIES + r, t] for _, r, t in made.train.tolist()]
  assert masked.indices.tolist() == [
    *made.train[:, 2].tolist(),
    *made.train[:, 0].tolist(),
  ]


def test_the_filter_decides_the_ranks(counted):
  """If the filter lacks the answers of test, the ranks get worse."""
  made = random_graph(5, sizes=(40, 10, 60))
  params = parallel.replicate(table_model(5, levels=30).tables)
  task = link_prediction.LinkPrediction(made)
  every = task.rank(counted, params, 'test')
  some = task.rank(counted, params, 'test', ('train', 'valid'))
  assert (some.candidates >= every.candidates).all()
  assert (some.candidates > every.candidates).any()
  assert (some.better >= every.better).all()
  assert (some.better > every.better).any()


def test_every_copy_of_a_repeated_triple_is_ranked(counted):
  triple = np.array([[0, 0, 1]] * 3, dtype=np.int32)
  words = random_graph(0).vocabulary
  made = graph.KnowledgeGraph('x', words, triple, triple, triple)
  zeros = table_model(levels=1).tables
  ranks = link_prediction.LinkPrediction(made).rank(
    counted, parallel.replicate(zeros), 'test'
  )
  assert_ranks(ranks, [0] * 6, [ENTITIES - 1] * 6, [ENTITIES] * 6)


def test_an_empty_split(counted):
  made = random_graph(0, sizes=(10, 0, 0))
  results = link_prediction.LinkPrediction(made).evaluate(
    counted,
    parallel.replicate(table_model().tables),
    'test',
    choosing=False,
  )
  assert results['queries'] == 0
  assert results['both'] == results['head'] == results['tail'] == {}
  assert 'random, test' in link_prediction.format_table(results)


def test_queries_need_exactly_one_gold_answer(counted):
  made = random_graph(0)
  masked = queries.from_triples(made.train, made.vocabulary).grouped()
  with pytest.raises(ValueError, match='one gold answer'):
    counted.rank_filtered(
      parallel.replicate(table_model().tables),
      masked,
      masked.known_answers(masked, made.vocabulary.num_entities),
    )


def test_the_ranks_are_the_same_on_eight_devices(tmp_path):
  """The scores are exact, so the ranks must be those of one device."""
  path = tmp_path / 'ranks.json'
  small.run_script(__file__, path, devices=8)
  written = json.loads(path.read_text())
  assert written['devices'] == 8
  assert written['ranks'] == ranks_of_both_models()


def ranks_of_both_models() -> dict[str, list]:
  """Returns the ranks of two models with exact scores."""
  made = random_graph(11)
  # The scale and bias of the prediction layer norm are 0.
  params = small.random_params(coke(), seed=2, scale=0.3)
  params['prediction_norm'] = {
    name: np.zeros(8, np.float32) for name in ('scale', 'bias')
  }
  params['entity_bias'] = (np.arange(ENTITIES) % 4).astype(np.float32)
  ranks = {}
  table = table_model(11, levels=3)
  for name, scored, parameters_of_it in (
    ('table', table, table.tables),
    ('coke', coke(), params),
  ):
    got = link_prediction.LinkPrediction(made).rank(
      ranker_lib.Ranker(scored, 16),
      parallel.replicate(parameters_of_it),
      'test',
    )
    columns = (got.better, got.equal, got.candidates)
    ranks[name] = [column.tolist() for column in columns]
  wanted = reference(
    lambda side, triple: params['entity_bias'], made, 'test', graph.SPLITS
  )
  assert ranks['coke'] == wanted.tolist()
  return ranks


# ---------------------------------------------------------------- a real model


def test_coke_ranks_within_rounding_of_the_reference(ranker, parameters):
  """Entities within 1e-4 of the gold score may count as better or not."""
  made = random_graph(3)
  # Entities 4 and 9 are copies of entity 2, with equal scores up to rounding.
  params = dict(parameters)
  embedding = params['element_embedding'].copy()
  bias = params['entity_bias'].copy()
  embedding[[4, 9]], bias[[4, 9]] = embedding[2], bias[2]
  params['element_embedding'], params['entity_bias'] = embedding, bias
  ranks = link_prediction.LinkPrediction(made).rank(
    ranker, parallel.replicate(params), 'test'
  )
  known = {tuple(map(int, t)) for t in made.triples(*graph.SPLITS)}
  masked = queries.from_triples(made.test, made.vocabulary)
  scores = np.asarray(
    jax.jit(coke().apply)(
      {'params': params}, masked.tokens, masked.mask_position
    ),
    dtype=np.float64,
  )
  spread = scores.max(axis=1) - scores.min(axis=1)
  assert (spread > 0.1).all()  # Scores differ between entities.
  loose = 0
  for row, (side, triple) in enumerate(sides(made.test)):
    gold = scores[row, triple[2] if side == 'tail' else triple[0]]
    others = scores[row, other_candidates(side, triple, known)]
    assert ranks.candidates[row] == len(others) + 1
    above, near = others > gold + 1e-4, abs(others - gold) <= 1e-4
    assert above.sum() <= ranks.better[row]
    assert ranks.better[row] + ranks.equal[row] <= (above | near).sum()
    loose += int(near.sum() > 2)  # Copies of an entity are always near.
  assert loose < len(ranks.better) / 4


def test_dropout_is_off(ranker, parameters):
  task = link_prediction.LinkPrediction(random_graph(3))
  params = parallel.replicate(parameters)
  once, twice = (task.rank(ranker, params, 'test') for _ in range(2))
  assert_ranks(once, twice.better, twice.equal, twice.candidates)


def test_a_constant_model_ranks_at_the_mean(ranker, parameters):
  made = random_graph(3)
  zero = jax.tree.map(np.zeros_like, parameters)
  task = link_prediction.LinkPrediction(made)
  ranks = task.rank(ranker, parallel.replicate(zero), 'test')
  results = task.summarize(ranks, 'test')
  wanted = reference(lambda *_: [0.0] * ENTITIES, made, 'test', graph.SPLITS)
  assert_ranks(ranks, *wanted)
  assert not ranks.better.any()
  assert ranks.realistic.tolist() == ((ranks.candidates + 1) / 2).tolist()
  assert ranks.optimistic.tolist() == [1] * len(ranks.better)
  assert ranks.pessimistic.tolist() == ranks.candidates.tolist()
  for side in ('both', 'head', 'tail'):
    assert results[side]['adjusted_mean_rank_index'] == pytest.approx(0)
  assert results['optimistic']['mrr'] == 1


@pytest.mark.parametrize('value', [math.nan, math.inf])
@pytest.mark.parametrize(
  ('leaf', 'place'),
  [
    # Changes the score of one entity in all queries.
    ('entity_bias', (5,)),
    # Changes the embedding of a relation, which is in some queries.
    ('element_embedding', (ENTITIES + 1, 0)),
    # Changes the embedding of an entity that is not in train.
    ('element_embedding', (ENTITIES - 1, 0)),
  ],
)
def test_a_score_that_is_not_finite_is_an_error(
  ranker, parameters, value, leaf, place
):
  params = dict(parameters)
  params[leaf] = params[leaf].copy()
  params[leaf][place] = value
  with pytest.raises(FloatingPointError, match='not finite'):
    link_prediction.LinkPrediction(random_graph(3)).rank(
      ranker, parallel.replicate(params), 'test'
    )


def test_a_wrong_batch_size():
  count = parallel.num_devices()
  if count == 1:
    pytest.skip('one device accepts every batch size')
  with pytest.raises(ValueError, match='batch_size'):
    ranker_lib.Ranker(coke(), count + 1)


def test_the_default_batch_size_bounds_memory():
  count = parallel.num_devices()
  for entities in (1, 10, 14_541, 1_000_000, 100_000_000):
    rows = device_call.batch_rows(entities)
    assert rows % count == 0
    assert 1 <= rows // count <= 1024
    if rows // count > 1:
      assert rows // count * entities * 4 <= 64 * 2**20
  assert ranker_lib.Ranker(coke()).batch_size == 1024 * count


# ------------------------------------------------------------------ counting


def test_counting_by_hand():
  scores = np.array(
    [
      [5.0, 3.0, 3.0, 1.0, 3.0],
      [0.0, 0.0, 0.0, 0.0, 0.0],
      [1.0, 2.0, math.nan, 4.0, 5.0],
      [-math.inf, 2.0, 3.0, 4.0, 5.0],
    ],
    dtype=np.float32,
  )
  counts, finite = jax.jit(counting_lib.count_filtered)(
    scores,
    np.array([1, 4, 4, 0], dtype=np.int32),
    # In row 0, entity 2 and the gold entity 1 are filtered. The gold entity
    # stays a candidate nevertheless. In row 1, entity 0 is filtered once, and
    # entity 3 twice. Rows 4 and 7 do not exist.
    np.array([0, 0, 1, 1, 1, 4, 7], dtype=np.int32),
    np.array([2, 1, 0, 3, 3, 0, 0], dtype=np.int32),
  )
  assert finite.tolist() == [True, True, False, False]
  assert counts['better'][:2].tolist() == [1, 0]
  assert counts['equal'][:2].tolist() == [1, 2]
  assert counts['candidates'].tolist() == [4, 3, 5, 5]


def test_counting_on_random_scores_with_ties():
  generator = np.random.default_rng(0)
  count = jax.jit(counting_lib.count_filtered)
  for _ in range(20):
    scores = generator.integers(-2, 3, size=(6, 11)).astype(np.float32)
    gold = generator.integers(0, 11, size=6).astype(np.int32)
    row = generator.integers(0, 9, size=40).astype(np.int32)
    entity = generator.integers(0, 11, size=40).astype(np.int32)
    of = generator.integers(0, 6, size=6).astype(np.int32)
    counts, _ = jax.device_get(count(scores, gold, row, entity, of))
    filtered = set(zip(row.tolist(), entity.tolist(), strict=True))
    for b in range(6):
      others = [
        scores[b, e]
        for e in range(11)
        if e != gold[b] and (of[b], e) not in filtered
      ]
      assert counts['better'][b] == sum(s > scores[b, gold[b]] for s in others)
      assert counts['equal'][b] == sum(s == scores[b, gold[b]] for s in others)
      assert counts['candidates'][b] == len(others) + 1


def test_counting_among_candidates():
  generator = np.random.default_rng(1)
  count = jax.jit(counting_lib.count_among)
  for _ in range(20):
    scores = generator.integers(-2, 3, size=(6, 11)).astype(np.float32)
    gold = generator.integers(0, 11, size=6).astype(np.int32)
    candidates = generator.random((6, 11)) < generator.random()
    counts, _ = jax.device_get(count(scores, gold, candidates))
    for b in range(6):
      others = [
        scores[b, e] for e in range(11) if candidates[b, e] and e != gold[b]
      ]
      assert counts['better'][b] == sum(s > scores[b, gold[b]] for s in others)
      assert counts['equal'][b] == sum(s == scores[b, gold[b]] for s in others)
      assert counts['candidates'][b] == len(others) + 1


# ------------------------------------------------------------------- metrics


def test_ranks_by_hand():
  ranks = ranks_lib.Ranks(
    better=np.array([0, 2, 0]),
    equal=np.array([0, 3, 1]),
    candidates=np.array([10, 10, 2]),
  )
  assert ranks.optimistic.tolist() == [1, 3, 1]
  assert ranks.pessimistic.tolist() == [1, 6, 2]
  assert ranks.realistic.tolist() == [1, 4.5, 1.5]
  taken = ranks.take(np.array([False, True, True]))
  assert_ranks(taken, [2, 0], [3, 1], [10, 2])


def test_metrics_by_hand():
  metrics = ranks_lib.rank_metrics(
    np.array([1.0, 1.5, 4.0, 11.0]), np.array([21, 21, 11, 31])
  )
  assert metrics == {
    'mrr': pytest.approx((1 + 2 / 3 + 1 / 4 + 1 / 11) / 4),
    'hits@1': 0.25,  # A tie for rank 1 has rank 1.5.
    'hits@3': 0.5,
    'hits@10': 0.75,
    'mean_rank': 4.375,
    # The expected mean rank is (11 + 11 + 6 + 16) / 4 = 11.
    'adjusted_mean_rank_index': pytest.approx(1 - 3.375 / 10),
  }
  assert all(type(value) is float for value in metrics.values())


@pytest.mark.parametrize(
  ('ranks', 'candidates', 'index'),
  [
    ([1, 1], [7, 9], 1.0),  # All ranks are the best ones.
    ([4, 5], [7, 9], 0.0),  # All ranks are those expected from random scores.
    ([7, 9], [7, 9], -1.0),  # All ranks are the last ones.
    ([1, 1], [1, 1], 1.0),  # There are no other candidates.
  ],
)
def test_adjusted_mean_rank_index(ranks, candidates, index):
  metrics = ranks_lib.rank_metrics(np.array(ranks), np.array(candidates))
  assert metrics['adjusted_mean_rank_index'] == pytest.approx(index)


def test_metrics_of_no_ranks():
  assert ranks_lib.rank_metrics(np.zeros(0), np.zeros(0)) == {}


def test_relation_categories_by_hand():
  listed = {
    'one to one': [(0, 1), (2, 3), (4, 4)],
    'one to many': [(0, 1), (0, 2), (0, 3), (4, 5)],
    'many to one': [(1, 0), (2, 0), (3, 0), (5, 4)],
    'many to many': [(0, 1), (0, 2), (1, 1), (1, 2)],
    # 3 triples with 2 heads have 1.5 tails per head, which counts as N.
    'at the border': [(0, 1), (0, 2), (3, 4)],
    # 7 triples with 5 heads have 1.4 tails per head, which counts as 1.
    'below the border': [
      *[(0, 10), (0, 11), (1, 12), (1, 13), (2, 14), (3, 15), (4, 16)]
    ],
    # A repeated triple counts once.
    'repeated': [(0, 1), (0, 1), (0, 1)],
  }
  triples = np.array(
    [
      (head, relation, tail)
      for relation, pairs in enumerate(listed.values())
      for head, tail in pairs
    ],
    dtype=np.int32,
  )
  words = small.labels(17, (*listed, 'unused'))
  made = graph.KnowledgeGraph(
    'x', words, triples[::3], triples[1::3], triples[2::3]
  )
  categories = link_prediction.relation_categories(made)
  named = dict(zip(words.relations, categories.tolist(), strict=True))
  assert named == {
    'one to one': '1-1',
    'one to many': '1-N',
    'many to one': 'N-1',
    'many to many': 'N-N',
    'at the border': '1-N',
    'below the border': '1-1',
    'repeated': '1-1',
    'unused': '1-1',
  }


@pytest.fixture(scope='module')
def summarized():
  """Summarizes the ranks of three test triples."""
  words = small.labels(12, ('friend', 'parent'))
  train = [(0, 1, 1), (0, 1, 2), (0, 1, 3), (5, 0, 6)]
  # Entities 4 and 11 are not in train.
  test = [(0, 1, 4), (6, 0, 5), (0, 1, 11)]
  made = graph.KnowledgeGraph(
    'mine',
    words,
    np.array(train, dtype=np.int32),
    np.zeros((0, 3), dtype=np.int32),
    np.array(test, dtype=np.int32),
  )
  # The first three items belong to queries for the tail, the last three to
  # queries for the head.
  ranks = ranks_lib.Ranks(
    better=np.array([0, 1, 3, 9, 0, 0]),
    equal=np.array([0, 0, 2, 0, 0, 0]),
    candidates=np.full(6, 10),
  )
  return link_prediction.LinkPrediction(made).summarize(ranks, 'test')


def test_summary(summarized):
  assert summarized['dataset'] == 'mine'
  assert summarized['split'] == 'test'
  assert summarized['queries'] == 6
  assert summarized['triples_with_unseen_entity'] == 2
  names = {'mrr', 'hits@1', 'hits@3', 'hits@10', 'mean_rank'}
  for side in ('both', 'head', 'tail'):
    assert names <= set(summarized[side])
  assert summarized['tail']['mean_rank'] == (1 + 2 + 5) / 3
  assert summarized['head']['mean_rank'] == (10 + 1 + 1) / 3
  assert summarized['both']['mean_rank'] == 20 / 6
  assert summarized['both']['mrr'] == pytest.approx(
    (1 + 1 / 2 + 1 / 5 + 1 / 10 + 1 + 1) / 6
  )
  assert summarized['both']['hits@1'] == 3 / 6
  assert summarized['tail']['hits@3'] == 2 / 3
  assert summarized['optimistic']['mean_rank'] == 19 / 6
  assert summarized['pessimistic']['mean_rank'] == 21 / 6
  json.dumps(summarized, allow_nan=False)


def test_summary_of_relations_and_categories(summarized):
  relations = summarized['by_relation']
  assert set(relations) == {'friend', 'parent'}
  assert relations['friend']['category'] == '1-1'
  assert relations['friend']['queries'] == 2
  assert relations['friend']['tail']['mean_rank'] == 2
  assert relations['friend']['head']['mean_rank'] == 1
  assert relations['parent']['category'] == '1-N'
  assert relations['parent']['queries'] == 4
  assert relations['parent']['both']['mean_rank'] == (1 + 5 + 10 + 1) / 4
  categories = summarized['by_category']
  assert set(categories) == {'1-1', '1-N'}  # Only these have queries.
  assert categories['1-N']['head'] == relations['parent']['head']
  assert categories['1-1']['both'] == relations['friend']['both']


def test_a_summary_computes_the_categories_once(monkeypatch):
  """Each computation of the categories takes a pass over all triples."""
  calls = []
  original = link_prediction.relation_categories

  def counting(made):
    calls.append(made)
    return original(made)

  monkeypatch.setattr(link_prediction, 'relation_categories', counting)
  made = random_graph(0)
  rows = 2 * len(made.test)
  counts = np.zeros(rows, dtype=np.int64)
  link_prediction.LinkPrediction(made).summarize(
    ranks_lib.Ranks(counts, counts, counts + 5), 'test'
  )
  assert len(calls) == 1


def test_table(summarized):
  text = link_prediction.format_table(summarized)
  lines = text.splitlines()
  rows = {line[:14].strip(): line[14:].split() for line in lines[1:]}
  assert 'mine, test' in lines[0]
  assert rows[''] == [
    'queries',
    'mrr',
    'hits@1',
    'hits@3',
    'hits@10',
    'mean_rank',
  ]
  assert rows['both'] == ['6', '0.6333', '0.5000', '0.6667', '1.0000', '3.3']
  assert rows['head (? r o)'][0] == '3'
  assert rows['tail (s r ?)'][5] == '2.7'
  assert rows['1-N'][0] == '4'
  assert '2 of 3 triples contain an entity unseen' in text


if __name__ == '__main__':  # See test_the_ranks_are_the_same_on_eight_devices.
  output = {
    'devices': parallel.num_devices(),
    'ranks': ranks_of_both_models(),
  }
  pathlib.Path(sys.argv[1]).write_text(json.dumps(output))
