"""Compares explanations with a search over all paths of up to three facts."""

import numpy as np
import pytest
import small

import coke_jax
from coke_jax.predict.jobs import path_search

FACTS = [
  ('e03', 'likes', 'e04'),
  ('e07', 'near', 'e01'),
  ('e11', 'near', 'e02'),
  ('e05', 'likes', 'e05'),
]


@pytest.fixture(scope='module')
def model():
  return small.table_model()


@pytest.fixture(scope='module')
def path_model():
  return small.table_model(small.random_paths(), 5, 2)


def base_facts(model):
  facts = small.facts(model.data, *small.SPLITS)
  return {fact for fact in facts if not fact[1].startswith('**')}


def paths_by_hand(known, fact):
  """Returns the paths of other facts from a fact's head to its tail.

  Each path is a list of pairs: a fact, and whether the path follows this fact
  backwards.
  """
  known = known - {fact}
  found, waiting = [], [([], [fact[0]])]
  while waiting:
    path, visited = waiting.pop()
    if visited[-1] == fact[2] and path:
      found.append(path)
    elif len(path) < 3:
      for one in known:
        for backwards in (False, True):
          source, target = one[::-2] if backwards else one[::2]
          if source == visited[-1] and target not in visited:
            step = [*path, (one, backwards)]
            waiting.append((step, [*visited, target]))
  return found if fact[0] != fact[2] else []


def log_probability(model, question, answer):
  _, logs = small.scores_by_hand(model, question)
  return logs[small.ENTITIES.index(answer)]


def score_by_hand(model, path):
  """Returns the log-probability of a path."""
  if model.max_path_length > 1 and len(path) <= model.max_path_length:
    relations = [f'**{one[1]}' if back else one[1] for one, back in path]
    start = path[0][0][2 if path[0][1] else 0]
    end = path[-1][0][0 if path[-1][1] else 2]
    return log_probability(model, (start, *relations, '?'), end)
  total = 0.0
  for (head, relation, tail), backwards in path:
    if backwards:
      total += log_probability(model, ('?', relation, tail), head)
    else:
      total += log_probability(model, (head, relation, '?'), tail)
  return total


@pytest.mark.parametrize('kind', ['model', 'path_model'])
@pytest.mark.parametrize('fact', FACTS)
def test_paths(kind, fact, request):
  model = request.getfixturevalue(kind)
  expected = paths_by_hand(base_facts(model), fact)
  found = model.explain(fact, top=10_000)
  assert found.complete
  assert {one.facts for one in found.paths} == {
    tuple(step for step, _ in path) for path in expected
  }
  assert len(found.paths) == len(expected)
  scores = sorted(score_by_hand(model, path) for path in expected)[::-1]
  got = [one.score for one in found.paths]
  np.testing.assert_allclose(got, scores, atol=1e-4)
  np.testing.assert_allclose(
    [one.probability for one in found.paths], np.exp(scores), atol=1e-4
  )
  assert model.explain(fact, top=3).paths == found.paths[:3]


@pytest.mark.parametrize('fact', FACTS)
def test_the_fact_itself(model, fact):
  found = model.explain(fact)
  assert found.fact == fact
  assert found.score == pytest.approx(float(model.score(fact)[0]), abs=1e-5)
  assert found.known_in == small.known_in(model.data, (*fact[:2], '?'), fact[2])


def test_similar_facts():
  model = small.coke_model()
  static = model.embed_elements()
  unit = static.entities / np.linalg.norm(static.entities, axis=1)[:, None]
  vectors = dict(zip(static.labels, unit, strict=False))
  fact = FACTS[0]
  expected = {
    other: (vectors[fact[0]] @ vectors[other[0]])
    + (vectors[fact[2]] @ vectors[other[2]])
    for other in base_facts(model)
    if other[1] == fact[1] and other != fact
  }
  found = model.explain(fact, similar=4).similar
  order = sorted(expected, key=expected.get)[::-1]
  assert [one.fact for one in found] == order[:4]
  for one in found:
    assert one.similarity == pytest.approx(expected[one.fact] / 2, abs=1e-5)


def test_an_arrow_shows_the_direction(model):
  for one in model.explain(FACTS[0], top=100).paths:
    words = one.text.split(' ')
    assert words[0] == 'e03'
    assert words[-1] == 'e04'
    for (head, relation, tail), source, arrow, target in zip(
      one.facts, words[::2], words[1::2], words[2::2], strict=False
    ):
      if arrow == f'-{relation}->':
        assert (source, target) == (head, tail)
      else:
        assert arrow == f'<-{relation}-'
        assert (source, target) == (tail, head)


def test_no_path():
  data = small.random_graph(sizes=(1, 0, 0), repeats=False)
  found = small.table_model(data).explain(('e00', 'near', 'e01'))
  assert found.paths == ()
  assert found.complete


def test_an_inverse_relation(path_model):
  assert path_model.explain(('e04', '**likes', 'e03')) == path_model.explain(
    ('e03', 'likes', 'e04')
  )


@pytest.mark.parametrize('limit', ['MAX_PATHS', 'MAX_EDGES'])
def test_limits(model, limit, monkeypatch):
  everything = {one.facts for one in model.explain(FACTS[0], top=1000).paths}
  monkeypatch.setattr(path_search, limit, 5)
  found = model.explain(FACTS[0], top=1000)
  assert not found.complete
  assert {one.facts for one in found.paths} < everything


def test_several_facts(model):
  found = model.explain(FACTS)
  assert found == [model.explain(fact) for fact in FACTS]
  assert model.explain([]) == []


@pytest.mark.parametrize(
  ('fact', 'arguments', 'message'),
  [
    (('e03', 'near', '?'), {}, 'expected a fact'),
    (('e03', 'nera', 'e04'), {}, 'unknown relation'),
    (('e03', 'near', 'e04'), {'top': -1}, 'top is -1'),
    (('e03', 'near', 'e04'), {'similar': 0.5}, 'similar is 0.5'),
  ],
)
def test_mistakes(model, fact, arguments, message):
  with pytest.raises(coke_jax.QuestionError, match=message):
    model.explain(fact, **arguments)


def test_a_path_has_no_explanation(path_model):
  with pytest.raises(coke_jax.QuestionError, match='2 relations'):
    path_model.explain(('e03', 'near', 'near', 'e04'))
