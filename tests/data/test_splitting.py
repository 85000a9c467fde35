"""Tests the random split on many small graphs, by brute force."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from coke_jax.data import splitting, text_files

GRAPHS = st.lists(
  st.tuples(st.integers(0, 8), st.integers(0, 2), st.integers(0, 8)),
  max_size=80,
).map(lambda rows: np.array(rows, dtype=np.int32).reshape(-1, 3))
SHARES = st.builds(
  splitting.Shares,
  valid=st.floats(0, 0.45),
  test=st.floats(0, 0.45),
  seed=st.integers(0, 5),
  keep_together=st.sampled_from(splitting.TOGETHER),
)


def same_group(one, other, keep_together):
  """Returns whether two triples must be in the same split."""
  h, r, t = one
  pairs = {h, t} == {other[0], other[2]}
  return pairs and (keep_together == 'pairs' or r == other[1])


@hypothesis.settings(deadline=None)
@hypothesis.given(GRAPHS, SHARES)
def test_a_split_has_the_documented_properties(triples, shares):
  parts = splitting.split(triples, shares)
  rows = np.concatenate(list(parts.values()))
  assert sorted(rows.tolist()) == list(range(len(triples)))
  for part in parts.values():
    assert part.tolist() == sorted(part.tolist())
  splits = {name: triples[part].tolist() for name, part in parts.items()}
  entities = {e for h, _, t in splits['train'] for e in (h, t)}
  relations = {r for _, r, _ in splits['train']}
  for name, share in (('valid', shares.valid), ('test', shares.test)):
    assert len(splits[name]) <= round(share * len(triples))
    for head, relation, tail in splits[name]:
      assert {head, tail} <= entities
      assert relation in relations
  for name, others in splits.items():
    for other_name, other_rows in splits.items():
      if name < other_name:
        assert not any(
          same_group(one, other, shares.keep_together)
          for one in others
          for other in other_rows
        )


@hypothesis.settings(deadline=None)
@hypothesis.given(GRAPHS, SHARES, st.randoms())
def test_the_order_of_triples_does_not_matter(triples, shares, random):
  order = list(range(len(triples)))
  random.shuffle(order)
  shuffled = triples[order]
  parts, others = (splitting.split(t, shares) for t in (triples, shuffled))
  for name in parts:
    assert collections.Counter(
      map(tuple, triples[parts[name]].tolist())
    ) == collections.Counter(map(tuple, shuffled[others[name]].tolist()))


def test_shares_are_reached_and_seeds_differ():
  triples = np.random.default_rng(0).integers(0, 50, (5000, 3), np.int32)
  parts = [
    splitting.split(triples, splitting.Shares(0.1, 0.2, seed))
    for seed in (0, 1, 0)
  ]
  for part in parts:
    assert abs(len(part['valid']) - 500) <= 2
    assert abs(len(part['test']) - 1000) <= 2
  assert parts[0]['test'].tolist() == parts[2]['test'].tolist()
  assert parts[0]['test'].tolist() != parts[1]['test'].tolist()


def test_every_triple_is_equally_likely_in_test():
  """Each entity has 19 triples, so train needs no specific triple."""
  entities = np.arange(20)
  triples = np.array([(h, 0, t) for h in entities for t in entities if h < t])
  counts = np.zeros(len(triples))
  for seed in range(200):
    counts[
      splitting.split(triples, splitting.Shares(0, 0.3, seed))['test']
    ] += 1
  assert abs(counts.mean() - 60) < 1
  assert counts.min() > 30
  assert counts.max() < 90


@pytest.mark.parametrize(
  'wrong',
  [
    {'valid': -0.1},
    {'test': 1.0},
    {'valid': 0.5, 'test': 0.5},
    {'test': float('nan')},
    {'seed': -1},
    {'keep_together': 'all'},
  ],
)
def test_wrong_values_raise_an_error(wrong):
  with pytest.raises(text_files.DataError, match='expected'):
    splitting.Shares(**wrong)
