"""Compares `Model.discover` with a loop over all possible facts."""

import collections
import itertools

import numpy as np
import pytest
import small

import coke_jax
from coke_jax.data import graph
from coke_jax.predict.jobs import discover, plausible_entities
from coke_jax.predict.jobs import facts as facts_lib


def model_of(seed):
  """Returns a model of a graph in which `near` is symmetric."""
  made = small.random_graph(seed=seed)
  near = made.train[made.train[:, 1] == 1][:, ::-1]
  train = np.concatenate([made.train, near])
  made = graph.KnowledgeGraph(
    'random', made.vocabulary, train, made.valid, made.test
  )
  return small.table_model(made)


def by_hand(
  model, relations, top, per_head, type_matching, splits=small.SPLITS
):
  """Returns the new facts and their scores, best first."""
  known = small.facts(model.data, 'train', *splits)
  words = model.data.vocabulary
  plausible = plausible_entities.PlausibleEntities(
    facts_lib.known(model.data, dict.fromkeys(['train', *splits])),
    words.num_entities,
    words.num_relations,
  )
  found = []
  for relation in relations:
    own = [fact for fact in known if fact[1] == relation]
    heads, tails = dict.fromkeys(small.ENTITIES, 1.0), small.ENTITIES
    if type_matching:
      number = words.relations.index(relation)
      heads = dict(zip(heads, plausible.heads(number), strict=True))
      tails = list(itertools.compress(tails, plausible.tails(number)))
    loops = any(fact[0] == fact[2] for fact in own)
    for head, expected in heads.items():
      if not expected:
        continue
      _, scores = small.scores_by_hand(model, (head, relation, '?'))
      count = sum(fact[0] == head for fact in own)
      scores = scores + np.log(max(count, 1) * expected)
      for tail in tails:
        fact = (head, relation, tail)
        if fact not in known and (loops or head != tail):
          found.append((-scores[small.ENTITIES.index(tail)], *fact))
  found.sort(key=lambda row: (round(row[0], 4), row[2], row[1], row[3]))
  count, kept, seen = collections.Counter(), [], set()
  for score, head, relation, tail in found:
    count[head] += 1
    if per_head is not None and count[head] > per_head:
      continue
    own = [fact for fact in known if fact[1] == relation and fact[0] != fact[2]]
    back = sum((t, r, h) in known for h, r, t in own)
    if back >= len(own) / 2 and (tail, relation, head) in seen:
      continue
    seen.add((head, relation, tail))
    kept.append(((head, relation, tail), -score))
  return kept[:top]


@pytest.mark.parametrize('seed', range(3))
def test_new_facts(seed):
  model = model_of(seed)
  choices = [None, 'near', ['likes'], ['near', 'likes']]
  for relations, top, per_head, matching in itertools.product(
    choices, (1, 7, 10_000), (None, 1, 3), (True, False)
  ):
    asked = relations or small.RELATIONS
    asked = [asked] if isinstance(asked, str) else asked
    expected = by_hand(model, asked, top, per_head, matching)
    found = model.discover(
      relations, top=top, per_head=per_head, type_matching=matching
    )
    assert [one.fact for one in found] == [fact for fact, _ in expected]
    scores = [score for _, score in expected]
    np.testing.assert_allclose([one.score for one in found], scores, atol=1e-5)
    known = small.facts(model.data, *small.SPLITS)
    for one in found[:20]:
      head, relation, tail = one.fact
      tails = small.reached(known, (head, relation, '?'))
      assert one.known_tails == len(tails)
      logs = small.scores_by_hand(model, (head, relation, '?'))[1]
      expected = np.exp(logs[small.ENTITIES.index(tail)])
      assert one.probability == pytest.approx(expected, rel=1e-4)


def test_facts_of_other_splits_are_new():
  model = model_of(4)
  expected = by_hand(model, small.RELATIONS, 10_000, None, True, ())
  found = model.discover(top=10_000, splits=('train',))
  assert [one.fact for one in found] == [fact for fact, _ in expected]


def test_small_batches_give_the_same_facts():
  model = model_of(3)
  expected = model.discover(top=9, per_head=2)
  model.predictor.scorer.batch_size = 3
  assert model.discover(top=9, per_head=2) == expected


def test_new_facts_of_path_data_have_no_inverse_relations():
  model = small.table_model(small.random_paths(), 5, 2)
  found = model.discover(top=10_000)
  assert {one.fact[1] for one in found} == set(small.RELATIONS)
  known = small.facts(model.data, *small.SPLITS)
  assert not known & {one.fact for one in found}
  assert model.discover('**near', top=3) == model.discover('near', top=3)


def test_type_matching_finds_nothing_for_a_relation_without_facts():
  made = small.random_graph(relations=('likes', 'near', 'unused'))
  for split in small.SPLITS:
    triples = made.split(split)
    triples[triples[:, 1] == 2, 1] = 0
  model = small.table_model(made)
  assert model.discover('unused') == []
  assert len(model.discover('unused', type_matching=False, top=5)) == 5


@pytest.mark.parametrize(
  'arguments',
  [
    {'relations': 'nera'},
    {'relations': ['near', 3]},
    {'top': 0},
    {'per_head': 0},
    {'splits': ['dev']},
    {'top': 'all'},
  ],
)
def test_mistakes(arguments):
  with pytest.raises(coke_jax.QuestionError):
    model_of(0).discover(**arguments)


def test_base_relations_of_path_data():
  data = small.random_paths()
  labels = [
    data.vocabulary.relations[r] for r in facts_lib.base_relations(data)
  ]
  assert labels == list(small.RELATIONS)


@pytest.mark.parametrize(
  ('pairs', 'expected'),
  [
    ([], False),
    ([(1, 1)], False),
    ([(0, 1), (1, 0)], True),
    ([(0, 1), (1, 0), (2, 3)], True),
    ([(0, 1), (1, 0), (2, 3), (3, 4), (5, 3)], False),
  ],
)
def test_symmetric_relations(pairs, expected):
  triples = np.array([(h, 0, t) for h, t in pairs], np.int32).reshape(-1, 3)
  assert discover.is_symmetric(triples) == expected
