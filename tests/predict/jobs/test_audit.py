"""Compares `Model.audit` with a loop over all facts."""

import collections

import numpy as np
import pytest
import small

import coke_jax
from coke_jax.predict.jobs import facts as facts_lib


@pytest.fixture(scope='module')
def model():
  return small.table_model()


def side_score(model, question, answer):
  """Returns the score of a fact's head or tail."""
  facts = small.facts(model.data, *small.SPLITS)
  known = small.reached(facts, question)
  _, logs = small.scores_by_hand(model, question)
  score = logs[small.ENTITIES.index(answer)] + np.log(len(known))
  if len(known) == 1:
    place = 2 if question[0] == '?' else 0
    same = [fact for fact in facts if fact[1] == question[1]]
    met = collections.Counter(fact[place] for fact in same)
    single = sum(number == 1 for number in met.values())
    score += np.log((single + 1) / (len(same) + 2)) / 2
  return score


def by_hand(model, splits, relations=small.RELATIONS):
  """Returns the facts of splits with their scores, lowest score first."""
  known = set()
  for split in splits:
    words = model.data.vocabulary
    for h, r, t in model.data.split(split).tolist():
      known.add((words.relations[r], words.entities[h], words.entities[t]))
  found = []
  for relation, head, tail in sorted(known):
    if relation in relations:
      logs = [
        side_score(model, (head, relation, '?'), tail),
        side_score(model, ('?', relation, tail), head),
      ]
      found.append(((head, relation, tail), sum(logs) / 2))
  return sorted(found, key=lambda pair: round(pair[1], 5))


@pytest.mark.parametrize(
  'splits', [small.SPLITS, ('train',), ('test', 'valid')]
)
def test_scores_and_order(model, splits):
  expected = by_hand(model, splits)
  found = model.audit(top=1000, splits=splits)
  assert {one.fact for one in found} == {fact for fact, _ in expected}
  np.testing.assert_allclose(
    [one.score for one in found], [score for _, score in expected], atol=1e-5
  )
  scores = dict(expected)
  for one in found:
    assert one.score == pytest.approx(scores[one.fact], abs=1e-5)
    assert one.known_in == small.known_in(
      model.data, (*one.fact[:2], '?'), one.fact[2]
    )
  assert model.audit(top=4, splits=splits) == found[:4]


def test_one_relation(model):
  expected = by_hand(model, small.SPLITS, ['near'])
  found = model.audit('near', top=1000)
  assert len(found) == len(expected)
  assert {one.fact[1] for one in found} == {'near'}


def test_ranks_and_expected_entities(model):
  for one in model.audit(top=5, expected=2):
    tail, head = model.rank(one.fact)
    assert (one.tail_rank, one.head_rank) == (tail.rank, head.rank)
    for question, expected in [
      ((*one.fact[:2], '?'), one.expected_tails),
      (('?', *one.fact[1:]), one.expected_heads),
    ]:
      answers = model.predict(question, top=2, new_only=True, exclude_own=True)
      assert expected == tuple(answer.label for answer in answers)
  assert model.audit(top=1, expected=0)[0].expected_heads == ()


@pytest.mark.parametrize('few', [0, 1, 2])
def test_the_limit_of_few_answers_does_not_change_the_scores(few, monkeypatch):
  model = small.table_model()
  expected = model.audit(top=1000)
  monkeypatch.setattr(facts_lib, 'FEW_ANSWERS', few)
  found = model.audit(top=1000)
  assert {one.fact for one in found} == {one.fact for one in expected}
  scores = {one.fact: one.score for one in expected}
  for one in found:
    assert one.score == pytest.approx(scores[one.fact], abs=1e-5)


def test_small_batches_give_the_same_facts(model):
  expected = model.audit(top=9)
  other = small.table_model()
  other.predictor.scorer.batch_size = 3
  found = other.audit(top=9)
  assert [one.fact for one in found] == [one.fact for one in expected]


def test_audited_facts_of_path_data_have_no_inverse_relations():
  model = small.table_model(small.random_paths(), 5, 2)
  found = model.audit(top=10_000)
  assert {one.fact[1] for one in found} == set(small.RELATIONS)
  facts = small.facts(model.data, *small.SPLITS)
  base = {fact for fact in facts if not fact[1].startswith('**')}
  assert {one.fact for one in found} == base


@pytest.mark.parametrize(
  'arguments',
  [
    {'relations': 'nera'},
    {'splits': ['dev']},
    {'splits': 'train'},
    {'top': 0},
    {'expected': -1},
  ],
)
def test_mistakes(model, arguments):
  with pytest.raises(coke_jax.QuestionError):
    model.audit(**arguments)
