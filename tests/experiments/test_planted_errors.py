"""Tests the errors that are planted to measure `Model.audit`."""

import numpy as np
import pytest
import small

from experiments import planted_errors


@pytest.mark.parametrize('same_type', [False, True])
def test_planted_errors(same_type):
  graph = small.random_graph(sizes=(60, 9, 9), repeats=False)
  train, wrong = planted_errors.plant(graph, 0.2, 0, same_type)
  assert wrong.sum() == 12
  np.testing.assert_array_equal(train[~wrong], graph.train[~wrong])
  known = set(map(tuple, graph.triples(*small.SPLITS).tolist()))
  for before, after in zip(graph.train[wrong], train[wrong], strict=True):
    assert tuple(after.tolist()) not in known
    changed = np.flatnonzero(before != after)
    assert len(changed) == 1
    assert changed[0] != 1
    if same_type:
      same = graph.train[graph.train[:, 1] == after[1]]
      assert after[changed[0]] in same[:, changed[0]]


def test_a_seed_gives_the_same_errors():
  graph = small.random_graph(repeats=False)
  first = planted_errors.plant(graph, 0.1, 3, False)
  second = planted_errors.plant(graph, 0.1, 3, False)
  np.testing.assert_array_equal(first[0], second[0])
