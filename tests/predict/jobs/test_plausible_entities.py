"""Compares `PlausibleEntities` with plain loops."""

import numpy as np
import pytest
import small

from coke_jax.data import graph
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.predict.jobs import plausible_entities


def by_hand(triples, relation, side):
  """Finds the entities that can be on one side of new facts of a relation.

  Side 0 is the head, and side 2 is the tail. Returns a dict from these entities
  to their values, which `PlausibleEntities.heads` defines.
  """
  roles = {
    (number, place): {t[place] for t in triples if t[1] == number}
    for number in {t[1] for t in triples}
    for place in (0, 2)
  }
  known = roles.get((relation, side), set())
  expected = {}
  for others in roles.values():
    share = len(others & known) / (len(others) + 1)
    for entity in others - known if share >= 0.9 else ():
      expected[entity] = max(share, expected.get(entity, 0))
  counts = [
    sum(t[1] == relation and t[side] == entity for t in triples)
    for entity in known
  ]
  exceptions = sum(count > 1 for count in counts)
  single = len(counts) >= 20 and exceptions <= 0.01 * len(counts)
  return expected if single else dict.fromkeys(known, 1.0)


@pytest.mark.parametrize('seed', range(5))
def test_random_graphs(seed):
  made = small.random_graph(
    seed=seed, sizes=(90, 9, 9), entities=60, relations=4, repeats=False
  )
  # Each of the first 40 entities is the head of one fact of relation 3. Each of
  # the last 20 entities is the head of at most one such fact.
  own = made.train[made.train[:, 1] == 3]
  own = own[np.unique(own[:, 0], return_index=True)[1]]
  more = np.array([[i, 3, 1] for i in range(40) if i not in own[:, 0]])
  train = np.concatenate([made.train[made.train[:, 1] != 3], own, more])
  made = graph.KnowledgeGraph(
    'random', made.vocabulary, train.astype(np.int32), own[:0], own[:0]
  )
  facts = facts_lib.known(made)
  entities = plausible_entities.PlausibleEntities(facts, 60, 4)
  triples = [tuple(triple) for triple in facts.triples.tolist()]
  for relation in range(4):
    for side, found in (
      (0, entities.heads(relation)),
      (2, entities.tails(relation)),
    ):
      expected = by_hand(triples, relation, side)
      if side == 2:
        expected = dict.fromkeys(expected, 1.0)
      rows = np.flatnonzero(found)
      assert set(rows.tolist()) == set(expected)
      for row in rows.tolist():
        assert found[row] == pytest.approx(expected[row])
  assert by_hand(triples, 3, 0).keys().isdisjoint(own[:, 0].tolist())


def countries(without):
  """Returns a graph of 30 countries and their neighbors and capitals.

  The countries in `without` have no capital.
  """
  names = [f'country {i:02}' for i in range(30)]
  names += [f'city {i:02}' for i in range(30)]
  words = small.labels(names, ['borders', 'capital'])
  train = [(i, 0, (i + step) % 30) for i in range(30) for step in (1, 2)]
  train += [(i, 1, 30 + i) for i in range(30) if i not in without]
  empty = np.zeros((0, 3), np.int32)
  train = np.array(train, np.int32)
  return graph.KnowledgeGraph('countries', words, train, empty, empty)


def test_a_country_has_one_capital():
  facts = facts_lib.known(countries(without=(3, 7)))
  entities = plausible_entities.PlausibleEntities(facts, 60, 2)
  # 28 of the 30 countries with neighbors have a capital.
  heads = entities.heads(1)
  assert np.flatnonzero(heads).tolist() == [3, 7]
  np.testing.assert_allclose(heads[[3, 7]], 28 / 31)
  # 28 cities are already a capital. The other two are in no known fact.
  assert not entities.tails(1).any()
  # A country has several neighbors.
  assert np.flatnonzero(entities.heads(0) == 1).tolist() == list(range(30))
  assert np.flatnonzero(entities.tails(0)).tolist() == list(range(30))


def test_a_model_finds_the_missing_facts_of_single_valued_relations():
  made = countries(without=(3, 7))
  # Now each city is the capital of up to two countries.
  tails = made.train[:, 2]
  tails[made.train[:, 1] == 1] = 30 + (tails[made.train[:, 1] == 1] - 30) // 2
  model = small.table_model(made)
  found = model.discover('capital', top=1000)
  assert {new.fact[0] for new in found} == {'country 03', 'country 07'}
  assert {new.known_tails for new in found} == {0}
  assert len(found) == 2 * 15
  for new in found:
    expected = np.log(new.probability * 28 / 31)
    assert new.score == pytest.approx(expected, rel=1e-4)
