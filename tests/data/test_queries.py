"""Compares queries with plain Python lists and sets."""

import tracemalloc

import hypothesis
import numpy as np
import pytest
import small
from hypothesis import strategies as st

from coke_jax.data import entity_sets, grouping, queries

# The ids are 0 to 3 for entities, 4 and 5 for relations, 6 for MASK, 7 for PAD.
VOCABULARY = small.labels(4, 2)
MASK, PAD = VOCABULARY.mask_id, VOCABULARY.pad_id
WIDTH = 5

# The tokens of a query without padding, and its answers.
Row = tuple[tuple[int, ...], list[int]]


def build(rows: list[Row], width: int = WIDTH) -> queries.Queries:
  tokens = np.full((len(rows), width), PAD, dtype=np.int32)
  for place, (row, _) in enumerate(rows):
    tokens[place, : len(row)] = row
  return queries.Queries(
    tokens,
    np.array([row.index(MASK) for row, _ in rows], dtype=np.int32),
    np.cumsum([0] + [len(answers) for _, answers in rows], dtype=np.int64),
    np.array([a for _, answers in rows for a in answers], dtype=np.int32),
  )


def rows_of(made: queries.Queries) -> list[Row]:
  check(made)
  return [
    (
      tuple(token for token in made.tokens[i].tolist() if token != PAD),
      made.indices[made.indptr[i] : made.indptr[i + 1]].tolist(),
    )
    for i in range(len(made))
  ]


def members(sets: entity_sets.EntitySets) -> list[list[int]]:
  indptr, indices = sets.csr(np.arange(len(sets)))
  return [indices[indptr[i] : indptr[i + 1]].tolist() for i in range(len(sets))]


def check(made: queries.Queries) -> None:
  """Checks dtypes, shapes, the single MASK of each row, and the padding."""
  assert made.tokens.dtype == np.int32
  assert made.mask_position.dtype == np.int32
  assert made.indptr.dtype == np.int64
  assert made.indices.dtype == np.int32
  assert made.mask_position.shape == (len(made),)
  assert made.indptr.shape == (len(made) + 1,)
  assert made.indptr[0] == 0
  assert made.indptr[-1] == len(made.indices)
  masked = made.tokens == MASK
  assert (masked.sum(axis=1) == 1).all()
  assert (masked.argmax(axis=1) == made.mask_position).all()
  padded = made.tokens == PAD
  assert (padded[:, 1:] >= padded[:, :-1]).all()


# The tokens of a path query with 1 to 3 relations. One end is masked.
_SEQUENCE = st.builds(
  lambda entity, relations, masks_head: (
    (MASK, *relations, entity) if masks_head else (entity, *relations, MASK)
  ),
  st.integers(0, 2),
  st.lists(st.integers(4, 5), min_size=1, max_size=3),
  st.booleans(),
)
_ROWS = st.lists(
  st.tuples(_SEQUENCE, st.lists(st.integers(0, 3), max_size=5)), max_size=12
)
_TRIPLES = st.lists(
  st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 3)),
  max_size=15,
)


def to_array(triples: list[tuple[int, int, int]]) -> np.ndarray:
  return np.array(triples, dtype=np.int32).reshape(-1, 3)


# ---------------------------------------------------------------- from triples


def test_from_triples_by_hand():
  triples = to_array([(0, 1, 2), (3, 0, 3)])
  tail = queries.from_triples(triples, VOCABULARY, side='tail')
  head = queries.from_triples(triples, VOCABULARY, side='head')
  both = queries.from_triples(triples, VOCABULARY)
  assert rows_of(tail) == [((0, 5, MASK), [2]), ((3, 4, MASK), [3])]
  assert rows_of(head) == [((MASK, 5, 2), [0]), ((MASK, 4, 3), [3])]
  assert rows_of(both) == rows_of(tail) + rows_of(head)
  # The triples are not modified.
  assert triples.tolist() == [[0, 1, 2], [3, 0, 3]]


@hypothesis.settings(deadline=None)
@hypothesis.given(_TRIPLES)
def test_from_triples(triples):
  both = queries.from_triples(to_array(triples), VOCABULARY)
  assert rows_of(both) == [((h, 4 + r, MASK), [t]) for h, r, t in triples] + [
    ((MASK, 4 + r, t), [h]) for h, r, t in triples
  ]


# ------------------------------------------------------------------- grouping


@hypothesis.settings(deadline=None)
@hypothesis.given(_ROWS)
def test_grouped(rows):
  merged: dict[tuple[int, ...], list[int]] = {}
  for tokens, answers in rows:
    merged.setdefault(tokens, []).extend(answers)
  assert rows_of(build(rows).grouped()) == list(merged.items())


def test_grouped_keeps_repeated_answers():
  rows: list[Row] = [((0, 4, MASK), [1]), ((0, 4, MASK), [1, 2])]
  assert rows_of(build(rows).grouped()) == [((0, 4, MASK), [1, 1, 2])]


def test_rows_with_a_common_prefix_are_not_merged():
  rows: list[Row] = [
    ((0, 4, MASK), [1]),
    ((0, 4, 4, MASK), [2]),
    ((0, 4, 4, 4, MASK), [3]),
    ((MASK, 4, 0), [1]),
  ]
  assert rows_of(build(rows).grouped()) == rows


@hypothesis.settings(deadline=None)
@hypothesis.given(rows=_ROWS, most=st.integers(1, 4))
def test_split_answers(rows, most):
  wanted: list[Row] = []
  for tokens, answers in rows:
    starts = range(0, len(answers), most) or [0]
    wanted.extend((tokens, answers[s : s + most]) for s in starts)
  assert rows_of(build(rows).split_answers(most)) == wanted


@hypothesis.settings(deadline=None)
@hypothesis.given(
  st.lists(st.lists(st.integers(0, 2**31 - 1), min_size=3, max_size=3))
)
def test_group_rows(rows):
  array = np.array(rows, dtype=np.int64).reshape(-1, 3)
  group, count = grouping.group_rows(array)
  assert count == len({tuple(row) for row in rows})
  assert sorted(set(group.tolist())) == list(range(count))
  named = dict(zip(map(tuple, rows), group.tolist(), strict=True))
  assert [named[tuple(row)] for row in rows] == group.tolist()
  distinct = sorted(map(list, {tuple(row) for row in rows}))
  assert grouping.distinct_rows(array).tolist() == distinct
  narrow = array % 1000  # These columns fit into one integer key.
  distinct = sorted(map(list, {tuple(row) for row in narrow.tolist()}))
  assert grouping.distinct_rows(narrow).tolist() == distinct


# -------------------------------------------------------------------- filters


@hypothesis.settings(deadline=None)
@hypothesis.given(rows=_ROWS, known=_ROWS)
def test_known_answers(rows, known):
  sets = build(rows).known_answers(build(known), 99)
  assert sets.set_of.dtype == sets.indices.dtype == np.int32
  assert len(sets) == len(rows)
  got = members(sets)
  assert got == [
    sorted({a for row, answers in known if row == tokens for a in answers})
    for tokens, _ in rows
  ]


@hypothesis.settings(deadline=None)
@hypothesis.given(rows=_TRIPLES, known=_TRIPLES)
def test_known_answers_of_triples(rows, known):
  made = queries.from_triples(to_array(rows), VOCABULARY)
  sets = made.known_answers(
    queries.parts_from_triples(to_array(known), VOCABULARY),
    VOCABULARY.num_entities,
  )
  wanted = [{t for a, b, t in known if (a, b) == (h, r)} for h, r, _ in rows]
  wanted += [{h for h, a, b in known if (a, b) == (r, t)} for _, r, t in rows]
  assert [set(one) for one in members(sets)] == wanted


def test_answers_of_a_hub_are_stored_once():
  degree, lines = 2_000, 1_000
  vocabulary = small.labels(degree + 1, 2)
  facts = np.zeros((degree, 3), np.int32)
  facts[:, 0] = np.arange(1, degree + 1)  # Entity 0 is the tail of all facts.
  hub = queries.from_triples(facts[:lines], vocabulary, side='head')
  known = queries.from_triples(facts, vocabulary)
  tracemalloc.start()
  sets = hub.known_answers(known, vocabulary.num_entities)
  _, peak = tracemalloc.get_traced_memory()
  tracemalloc.stop()
  assert sets.sizes.tolist() == [degree] * lines
  assert sets.indices.tolist() == facts[:, 0].tolist()
  # A copy of the answers for each query would take 4 * degree * lines bytes.
  assert peak < 100 * (degree + lines)


@hypothesis.settings(deadline=None)
@hypothesis.given(
  rows=st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1), st.integers(0, 2)),
    min_size=1,
  ),
  others=st.lists(st.tuples(*[st.integers(0, 3)] * 3)),
  factor=st.sampled_from([1, 2**30]),
)
def test_row_finder(rows, others, factor):
  """With `factor` = 2**30, the columns do not fit into one integer key."""
  finder = grouping.RowFinder(np.array(rows) * factor)
  places = {row: place for place, row in enumerate(sorted(set(rows)))}
  assert finder.group.tolist() == [places[row] for row in rows]
  assert finder.num_groups == len(places)
  group, index = finder.find(np.array(others).reshape(-1, 3) * factor)
  wanted = [
    (places[row], place) for place, row in enumerate(others) if row in places
  ]
  assert list(zip(group.tolist(), index.tolist(), strict=True)) == wanted


# ----------------------------------------------------------- take, concatenate


@hypothesis.settings(deadline=None)
@hypothesis.given(rows=_ROWS.filter(len), data=st.data())
def test_take(rows, data):
  places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
  taken = build(rows).take(np.array(places, dtype=np.int64))
  assert rows_of(taken) == [rows[place] for place in places]
  flags = data.draw(
    st.lists(st.booleans(), min_size=len(rows), max_size=len(rows))
  )
  taken = build(rows).take(np.array(flags))
  assert rows_of(taken) == [
    row for row, flag in zip(rows, flags, strict=True) if flag
  ]


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(_ROWS, min_size=1, max_size=3))
def test_concatenate(parts):
  joined = queries.concatenate([build(part) for part in parts])
  assert rows_of(joined) == [row for part in parts for row in part]


@hypothesis.settings(deadline=None)
@hypothesis.given(
  st.lists(st.tuples(st.integers(0, 50), st.integers(0, 5)), max_size=10)
)
def test_ranges(pairs):
  starts = np.array([start for start, _ in pairs], dtype=np.int64)
  counts = np.array([count for _, count in pairs], dtype=np.int64)
  assert grouping.ranges(starts, counts).tolist() == [
    number for start, count in pairs for number in range(start, start + count)
  ]


@pytest.mark.parametrize(
  ('mask_position', 'indptr'),
  [
    (np.zeros(2, np.int32), np.zeros(2, np.int64)),
    (np.zeros(1, np.int32), np.zeros(3, np.int64)),
  ],
)
def test_inconsistent_shapes_are_errors(mask_position, indptr):
  tokens = np.array([[0, 4, MASK], [1, 4, MASK]], dtype=np.int32)
  with pytest.raises(ValueError, match=r'expected .*\[N, K\]'):
    queries.Queries(tokens, mask_position, indptr, np.zeros(0, np.int32))


def test_an_unknown_side_is_an_error():
  with pytest.raises(ValueError, match='middle'):
    queries.from_triples(to_array([(0, 0, 0)]), VOCABULARY, side='middle')
