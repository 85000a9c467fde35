"""Compares predicted relations with a loop over all relations."""

import numpy as np
import pytest
import small

import coke_jax


@pytest.fixture(scope='module')
def model():
  return small.table_model(
    small.random_graph(relations=('hates', 'likes', 'near', 'unused'))
  )


@pytest.fixture(scope='module')
def path_model():
  return small.table_model(small.random_paths(), 5, 2)


def by_hand(model, head, tail):
  """Returns relations and log-probabilities, best first."""
  edges = small.facts(model.data, *small.SPLITS)
  relations = model.data.vocabulary.relations
  scores = []
  for relation in relations:
    score = 0.0
    for question, answer in [
      ((head, relation, '?'), tail),
      (('?', relation, tail), head),
    ]:
      _, logs = small.scores_by_hand(model, question)
      known = len(small.reached(edges, question))
      score += logs[small.ENTITIES.index(answer)] + np.log(known or 0.1)
    scores.append(score)
  logs = np.array(scores) - np.logaddexp.reduce(scores)
  pairs = zip(relations, logs, strict=True)
  return sorted(pairs, key=lambda pair: -round(pair[1], 4))


def same(found, expected):
  assert [one.label for one in found] == [label for label, _ in expected]
  assert [one.rank for one in found] == list(range(1, len(found) + 1))
  logs = [score for _, score in expected]
  np.testing.assert_allclose([one.score for one in found], logs, atol=1e-4)
  probabilities = [one.probability for one in found]
  np.testing.assert_allclose(probabilities, np.exp(logs), atol=1e-4)


@pytest.mark.parametrize('kind', ['model', 'path_model'])
def test_relations(kind, request):
  model = request.getfixturevalue(kind)
  for head, tail in [('e03', 'e04'), ('e07', 'e07'), ('e11', 'e02')]:
    expected = by_hand(model, head, tail)
    found = model.relations(head, tail)
    same(found, expected)
    same(model.relations(head, tail, top=2), expected[:2])
    assert sum(one.probability for one in found) == pytest.approx(1)
    for one in found:
      question = (head, one.label, '?')
      assert one.known_in == small.known_in(model.data, question, tail)
    new = [one for one in found if not one.known_in]
    without = model.relations(head, tail, new_only=True)
    assert [one.label for one in without] == [one.label for one in new]


def test_predict_gives_the_same_relations(model):
  head, relation, tail = sorted(small.facts(model.data, 'train'))[0]
  asked = [(head, '?', tail), (tail, '?', head), ('e05', '?', tail)]
  both = model.predict(asked, top=3)
  for (first, _, last), found in zip(asked, both, strict=True):
    assert found == model.relations(first, last, top=3)
    assert found == model.predict((first, '?', last), top=3)
  limited = model.predict(asked[0], candidates=['near', relation])
  assert {one.label for one in limited} == {'near', relation}


def test_small_batches_give_the_same_relations(model):
  other = small.table_model(model.data)
  other.predictor.scorer.batch_size = 3
  for found, expected in zip(
    other.relations('e03', 'e04'), model.relations('e03', 'e04'), strict=True
  ):
    assert found.label == expected.label
    assert found.score == pytest.approx(expected.score, abs=1e-5)


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'top': 0}, 'top is 0'),
    ({'candidates': ['e03']}, 'unknown relation'),
    ({'type_matching': True}, 'type_matching is True'),
    ({'exclude_own': True}, 'exclude_own is True'),
  ],
)
def test_mistakes(model, arguments, message):
  with pytest.raises(coke_jax.QuestionError, match=message):
    model.predict(('e03', '?', 'e04'), **arguments)
