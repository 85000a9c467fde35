"""Tests the leak report by brute force on small graphs."""

import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from coke_jax.data import graph as graph_lib
from coke_jax.data import leak_table, leaks, vocabulary

ENTITIES = tuple('abcdefg')
RELATIONS = tuple('rstu')
ROWS = st.lists(
  st.tuples(st.integers(0, 6), st.integers(0, 3), st.integers(0, 6)),
  max_size=60,
)


def make(train, valid=(), test=()):
  return graph_lib.KnowledgeGraph(
    'small',
    vocabulary.Vocabulary(ENTITIES, RELATIONS),
    *(
      np.array(rows, dtype=np.int32).reshape(-1, 3)
      for rows in (train, valid, test)
    ),
  )


def swap(pairs):
  return {(t, h) for h, t in pairs}


def brute_force(graph, threshold, min_shared):
  """Finds the leaks of a graph, and the triples that can be copied from train.

  Returns:
    A dict from (kind, relation, other) to (shared, overlap, given_away), the
      fields of `leaks.RelationLeak`.
    A nested dict. Item [kind][split] is the set of the row numbers of the
      triples that can be copied.
  """
  rows = {
    s: list(map(tuple, graph.split(s).tolist())) for s in graph_lib.SPLITS
  }
  pairs = {
    r: {(h, t) for part in rows.values() for h, q, t in part if q == r}
    for r in range(len(RELATIONS))
  }
  train = set(rows['train'])
  found = {}
  gone = {kind: {s: set() for s in leaks.EVALUATED} for kind in leaks.KINDS}
  for r in pairs:
    for s in pairs:
      for kind in leaks.KINDS:
        one, other = pairs[r], pairs[s]
        if (r == s) != (kind == 'symmetric') or r > s:
          continue
        if kind != 'duplicate':
          one = {(h, t) for h, t in one if h != t}
          other = swap({(h, t) for h, t in other if h != t})
        shared = len(one & other)
        larger = max(len(one), len(other))
        if shared < min_shared or shared / max(larger, 1) < threshold:
          continue
        given = {}
        for split in leaks.EVALUATED:
          hits = set()
          for place, (h, q, t) in enumerate(rows[split]):
            for mine, theirs in ((r, s), (s, r)):
              twin = (h, theirs, t) if kind == 'duplicate' else (t, theirs, h)
              loop = h == t and kind != 'duplicate'
              if q == mine and twin in train and not loop:
                hits.add(place)
          gone[kind][split] |= hits
          given[split] = len(hits)
        found[kind, RELATIONS[r], RELATIONS[s]] = (
          shared,
          shared / larger,
          given,
        )
  return found, gone


@hypothesis.settings(deadline=None)
@hypothesis.given(ROWS, ROWS, ROWS, st.floats(0.01, 1), st.integers(1, 3))
def test_relations_by_brute_force(train, valid, test, threshold, min_shared):
  graph = make(train, valid, test)
  report = leaks.find(graph, threshold=threshold, min_shared=min_shared)
  found, gone = brute_force(graph, threshold, min_shared)
  assert {
    (leak.kind, leak.relation, leak.other): (
      leak.shared,
      leak.overlap,
      leak.given_away,
    )
    for leak in report.relations
  } == found
  for kind in leaks.KINDS:
    assert report.given_away[kind] == {
      split: len(rows) for split, rows in gone[kind].items()
    }
  for split in leaks.EVALUATED:
    together = set().union(*(gone[kind][split] for kind in leaks.KINDS))
    assert report.given_away['any'][split] == len(together)
  tests = [leak.given_away['test'] for leak in report.relations]
  assert tests == sorted(tests, reverse=True)


@hypothesis.settings(deadline=None)
@hypothesis.given(ROWS, ROWS, ROWS)
def test_links_and_labels_by_brute_force(train, valid, test):
  graph = make(train, valid, test)
  report = leaks.find(graph)
  seen = {e for h, _, t in train for e in (h, t)}
  kinds = {r for _, r, _ in train}
  degree = [sum((h == e) + (t == e) for h, _, t in train) for e in range(7)]
  hub = degree.index(max(degree))
  assert report.hubs == 1
  assert report.hub_examples == {ENTITIES[hub]: degree[hub]}
  unseen = set()
  for split, rows in (('valid', valid), ('test', test)):
    reverse = [
      h != t and any((a, c) == (t, h) for a, _, c in train) for h, _, t in rows
    ]
    same = [
      any((a, c) == (h, t) and b != r for a, b, c in train) for h, r, t in rows
    ]
    assert report.linked['reverse'][split] == sum(reverse)
    assert report.linked['same direction'][split] == sum(same)
    assert report.linked['any'][split] == sum(
      a or b for a, b in zip(reverse, same, strict=True)
    )
    assert report.in_train[split] == sum(row in train for row in rows)
    assert report.unseen_entities[split] == sum(
      not {h, t} <= seen for h, _, t in rows
    )
    names = {ENTITIES[e] for h, _, t in rows for e in {h, t} - seen}
    names |= {RELATIONS[r] for _, r, _ in rows if r not in kinds}
    assert report.unseen_labels[split] == len(names)
    unseen |= names
    assert report.unseen_relations[split] == sum(
      r not in kinds for _, r, _ in rows
    )
    share = np.mean([hub in (h, t) for h, _, t in rows]) if rows else 0
    assert report.hub_share[split] == pytest.approx(share)
  assert set(report.unseen_examples) <= unseen
  assert len(report.unseen_examples) == min(5, len(unseen))


@hypothesis.settings(deadline=None)
@hypothesis.given(ROWS, ROWS, ROWS)
def test_every_report_is_json_and_a_table(train, valid, test):
  report = leaks.find(make(train, valid, test), min_shared=1, threshold=0.2)
  loaded = json.loads(json.dumps(report.to_json()))
  assert loaded['given_away'] == report.given_away
  assert len(loaded['relations']) == len(report.relations)
  table = leak_table.format_table(report, most=2)
  listed = [line.split() for line in table.splitlines()]
  kinds = [words[0] for words in listed if words[0] in leaks.KINDS]
  assert len(kinds) == min(2, len(report.relations))


def test_a_planted_inverse_and_its_table():
  pairs = [(i % 7, (3 * i + 1) % 7) for i in range(7)]
  train = [(h, 0, t) for h, t in pairs] + [(t, 1, h) for h, t in pairs[:5]]
  test = [(t, 1, h) for h, t in pairs[5:]]
  report = leaks.find(make(train, [], test), min_shared=2)
  (leak,) = [leak for leak in report.relations if leak.kind == 'inverse']
  assert (leak.relation, leak.other) == ('r', 's')
  assert leak.given_away == {'valid': 0, 'test': 2}
  assert '100.0%' in leak_table.format_table(report)


@pytest.mark.parametrize('wrong', [{'threshold': 0}, {'min_shared': 0}])
def test_wrong_arguments_raise_an_error(wrong):
  with pytest.raises(ValueError, match='expected'):
    leaks.find(make([]), **wrong)
