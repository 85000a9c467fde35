"""Compares `Model.similar` with a loop over all entities."""

import numpy as np
import pytest
import small

import coke_jax


@pytest.fixture(scope='module')
def model():
  return small.coke_model()


def by_hand(vectors, entity, allowed):
  """Returns the entities and cosines, nearest first."""
  own = vectors[entity]
  found = []
  for label in allowed:
    other = vectors[label]
    cosine = own @ other / np.linalg.norm(own) / np.linalg.norm(other)
    if label != entity:
      found.append((label, float(cosine)))
  return sorted(found, key=lambda pair: -pair[1])


def same(found, expected):
  assert [one.label for one in found] == [label for label, _ in expected]
  assert [one.rank for one in found] == list(range(1, len(found) + 1))
  np.testing.assert_allclose(
    [one.similarity for one in found], [s for _, s in expected], atol=1e-5
  )


def test_static_embeddings(model):
  static = model.embed_elements()
  vectors = dict(zip(static.labels, static.vectors, strict=True))
  expected = by_hand(vectors, 'e04', small.ENTITIES)
  same(model.similar('e04', top=100), expected)
  same(model.similar('e04', top=3), expected[:3])


@pytest.mark.parametrize('side', ['head', 'tail'])
@pytest.mark.parametrize('type_matching', [True, False])
def test_contextual_embeddings(model, side, type_matching):
  place = 2 if side == 'head' else 0
  vectors = {}
  for label in small.ENTITIES:
    ends = (label, 'near', '?') if side == 'head' else ('?', 'near', label)
    vectors[label] = model.embed([ends]).vectors[0, place]
  allowed = small.ENTITIES
  if type_matching:
    facts = small.facts(model.data, *small.SPLITS)
    near = [fact for fact in facts if fact[1] == 'near']
    allowed = {fact[2 - place] for fact in near}
  found = model.similar(
    'e04', relation='near', side=side, type_matching=type_matching, top=100
  )
  same(found, by_hand(vectors, 'e04', sorted(allowed)))


@pytest.mark.parametrize(
  ('arguments', 'message'),
  [
    ({'entity': 'E04'}, "unknown entity 'E04'"),
    ({'relation': 'nera'}, 'unknown relation'),
    ({'relation': 'near', 'side': 'both'}, 'side is'),
    ({'top': 0}, 'top is 0'),
    ({'type_matching': True}, 'expected a relation'),
  ],
)
def test_mistakes(model, arguments, message):
  with pytest.raises(coke_jax.QuestionError, match=message):
    model.similar(**{'entity': 'e04', **arguments})
