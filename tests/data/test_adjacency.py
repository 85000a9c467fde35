"""Compares traversals and candidate sets with loops over Python sets."""

import itertools
import lzma

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coke_jax.data import adjacency, deduction, path_files, paths, vocabulary
from coke_jax.evaluate import path_negatives

ENTITIES = 7  # The last entity has no edge.
RELATIONS = 3  # relation r + RELATIONS is the inverse of r
INVERSE = (np.arange(2 * RELATIONS) + RELATIONS) % (2 * RELATIONS)

edges = st.lists(
  st.tuples(
    st.integers(0, ENTITIES - 2),
    st.integers(0, 2 * RELATIONS - 1),
    st.integers(0, ENTITIES - 2),
  ),
  max_size=20,
)
path_rows = st.lists(
  st.tuples(
    st.integers(0, ENTITIES - 1),
    st.lists(st.integers(0, 2 * RELATIONS - 1), min_size=1, max_size=4),
    st.integers(0, ENTITIES - 1),
  ),
  max_size=20,
)


def both_directions(triples):
  """Returns the set of all edges and their inverses."""
  found = set()
  for head, relation, tail in triples:
    found.add((head, relation, tail))
    found.add((tail, (relation + RELATIONS) % (2 * RELATIONS), head))
  return found


def walk(graph, source, steps):
  """Returns the entities that `steps` reach, by loops over all edges."""
  reached = {source}
  for step in steps:
    reached = {t for (h, r, t) in graph if h in reached and r == step}
  return reached


def ends(graph, relation):
  return {t for (_, r, t) in graph if r == relation}


def as_triples(triples):
  return np.array(triples, dtype=np.int32).reshape(-1, 3)


def build(triples, entities=ENTITIES, inverse=INVERSE):
  return adjacency.from_triples(
    as_triples(triples), entities, inverse.astype(np.int32)
  )


def as_paths(rows, width=4):
  relations = np.full((len(rows), width), -1, dtype=np.int32)
  for row, (_, steps, _) in enumerate(rows):
    relations[row, : len(steps)] = steps
  return paths.PathSet(
    np.array([row[0] for row in rows], dtype=np.int32),
    relations,
    np.array([row[2] for row in rows], dtype=np.int32),
  )


@pytest.mark.parametrize('edges_per_chunk', [1, 3, adjacency.EDGES_PER_CHUNK])
def test_traversal_equals_brute_force(edges_per_chunk):
  with pytest.MonkeyPatch.context() as patched:
    patched.setattr(adjacency, 'EDGES_PER_CHUNK', edges_per_chunk)

    @given(edges, path_rows)
    @settings(max_examples=100, deadline=None)
    def check(triples, rows):
      graph, found = both_directions(triples), as_paths(rows)
      half = len(triples) // 2
      # `shared` adds triples to a base graph. The base graph already has the
      # triples from half // 2 to half.
      shared = adjacency.from_triples(
        as_triples(triples[half // 2 :]),
        ENTITIES,
        INVERSE.astype(np.int32),
        build(triples[:half]),
      )
      sets = build(triples).traverse(found.source, found.relations)
      same = shared.traverse(found.source, found.relations)
      for field in ('set_of', 'indptr', 'indices'):
        assert getattr(same, field).tolist() == getattr(sets, field).tolist()
      for relation in range(shared.num_relations):
        assert set(shared.candidates(relation)) == ends(graph, relation)
      mask = shared.candidate_mask()
      assert (mask == build(triples).candidate_mask()).all()
      expected = [walk(graph, source, steps) for source, steps, _ in rows]
      every = np.arange(len(rows))
      indptr, indices = sets.csr(every)
      assert indices.dtype == np.int32
      for row, (low, high) in enumerate(itertools.pairwise(indptr)):
        assert indices[low:high].tolist() == sorted(expected[row])
      assert sets.sizes.tolist() == [len(reached) for reached in expected]
      mask = sets.mask(every[::-1])
      assert mask.shape == (len(rows), ENTITIES)
      for row, reached in zip(mask, expected[::-1], strict=True):
        assert np.flatnonzero(row).tolist() == sorted(reached)
      assert sets.contains(found.target).tolist() == [
        row[2] in reached for row, reached in zip(rows, expected, strict=True)
      ]

    check()


@given(edges)
@settings(deadline=None)
def test_edges_and_candidates_equal_brute_force(triples):
  graph, built = both_directions(triples), build(triples)
  assert {tuple(edge) for edge in built.edges.tolist()} == graph
  assert len(built.edges) == len(graph)
  mask = built.candidate_mask()
  assert mask.shape == (2 * RELATIONS, ENTITIES)
  for relation in range(2 * RELATIONS):
    expected = sorted(ends(graph, relation))
    assert built.candidates(relation).tolist() == expected
    assert np.flatnonzero(mask[relation]).tolist() == expected
    dense = built.matrix(relation).toarray()
    assert set(zip(*np.nonzero(dense), strict=True)) == {
      (h, t) for (h, r, t) in graph if r == relation
    }


@given(edges, edges, path_rows)
@settings(deadline=None)
def test_evaluation_sets_equal_brute_force(train, single, rows):
  # The first test paths are single edges. The other test paths are random, and
  # often do not reach their targets.
  rows = [(h, [r], t) for h, r, t in single] + rows
  data = paths.PathData(
    name='toy',
    vocabulary=vocabulary.Vocabulary(tuple('abcdefg'), ()),
    inverse=INVERSE.astype(np.int32),
    train=as_paths([(h, [r], t) for h, r, t in train]),
    valid=as_paths([]),
    test=as_paths(rows),
    deduction={},
  )
  found = path_negatives.evaluation_sets(data, 'test')
  edges_of_rows = [(s, steps[0], t) for s, steps, t in rows if len(steps) == 1]
  graph = both_directions([*train, *edges_of_rows])
  every = np.arange(len(rows))
  answers = found.answers.mask(every)
  candidates = found.candidate_mask[found.last_relation]
  for row, (source, steps, target) in enumerate(rows):
    reached = walk(graph, source, steps)
    candidate = ends(graph, steps[-1])
    negatives = candidate - reached - {target}
    assert reached <= candidate
    assert found.num_negatives[row] == len(negatives)
    assert found.trivial[row] == (not negatives)
    assert found.reached[row] == (target in reached)
    kept = candidates[row] & ~answers[row]
    kept[target] = False
    assert set(np.flatnonzero(kept).tolist()) == negatives
  deducible = deduction.deducible(
    data.test, data.train.single_edges(), ENTITIES, data.inverse
  )
  trained = both_directions(train)
  assert deducible.tolist() == [t in walk(trained, s, p) for s, p, t in rows]


def test_by_hand():
  # The graph has the path 0 -r-> 1 -r-> 2, a parallel edge 0 -s-> 1 and a loop
  # 3 -r-> 3. Entity 6 has no edge.
  built = build([(0, 0, 1), (1, 0, 2), (0, 1, 1), (0, 0, 1), (3, 0, 3)])
  queries = [
    (0, [0], {1}),
    (0, [0, 0], {2}),
    (0, [0, 0, 0], set()),  # a dead end
    (6, [0], set()),  # a source without edges
    (3, [0, 0, 0, 0], {3}),
    (3, [3], {3}),  # the loop in its inverse direction
    (2, [3, 3], {0}),
    (1, [4, 0], {1}),
    (0, [2], set()),  # a relation without edges
  ]
  found = as_paths([(source, steps, 0) for source, steps, _ in queries])
  sets = built.traverse(found.source, found.relations)
  indptr, indices = sets.csr(np.arange(len(queries)))
  for (low, high), (*_, expected) in zip(
    itertools.pairwise(indptr), queries, strict=True
  ):
    assert set(indices[low:high].tolist()) == expected
  assert len(np.unique(sets.set_of)) < len(queries)  # Equal sets are shared.
  assert built.candidates(0).tolist() == [1, 2, 3]
  assert built.candidates(3).tolist() == [0, 1, 3]


def test_without_inverses_edges_have_one_direction():
  built = build([(0, 0, 1), (1, 1, 2)], inverse=np.array([-1, -1]))
  assert built.edges.tolist() == [[0, 0, 1], [1, 1, 2]]
  assert built.candidates(0).tolist() == [1]


def test_no_queries():
  found = as_paths([])
  sets = build([(0, 0, 1)]).traverse(found.source, found.relations)
  assert len(sets) == 0
  assert sets.mask(np.arange(0)).shape == (0, ENTITIES)


@pytest.mark.parametrize(
  ('source', 'relations', 'expected'),
  [
    ([ENTITIES], [[0]], 'source'),
    ([-1], [[0]], 'source'),
    ([0], [[2 * RELATIONS]], 'relations'),
    ([0], [[-2]], 'relations'),
    ([0], [[-1, 0]], 'gaps'),
  ],
)
def test_ids_out_of_range_are_errors(source, relations, expected):
  with pytest.raises(ValueError, match=expected):
    build([(0, 0, 1)]).traverse(
      np.array(source, dtype=np.int32), np.array(relations, dtype=np.int32)
    )


def test_real_paths_of_wordnet(benchmark_folder, tmp_path):
  folder = benchmark_folder('PathQueryWN')
  # Evaluation needs only the training paths with a single edge.
  text = lzma.decompress((folder / 'train.xz').read_bytes())
  single = [line for line in text.splitlines() if b',' not in line]
  (tmp_path / 'train').write_bytes(b'\n'.join(single))
  for path in folder.glob('*.xz'):
    if path.name != 'train.xz':
      (tmp_path / path.name).symlink_to(path)
  data = path_files.read_paths(tmp_path, 'PathQueryWN', paths.PathFormat())
  unreached = {'valid': 0, 'test': 30}
  graph = set()
  for head, relation, tail in np.concatenate(
    [data.train.single_edges(), data.test.single_edges()]
  ).tolist():
    graph |= {(head, relation, tail), (tail, int(data.inverse[relation]), head)}
  neighbours: dict[tuple[int, int], set[int]] = {}
  for head, relation, tail in graph:
    neighbours.setdefault((head, relation), set()).add(tail)
  for split, count in unreached.items():
    sets = path_negatives.evaluation_sets(data, split)
    assert (~sets.reached).sum() == count
    assert not sets.trivial.any()
    found = data.split(split)
    deducible = deduction.deducible(
      found,
      data.train.single_edges(),
      data.vocabulary.num_entities,
      data.inverse,
    )
    assert (deducible == data.deduction[split]).all()
  # After the loop, `sets` belongs to the test split.
  for row in range(0, len(data.test), 50):
    reached = {int(data.test.source[row])}
    for step in data.test.relations[row, : data.test.length[row]].tolist():
      reached = set().union(
        *(neighbours.get((entity, step), set()) for entity in reached)
      )
    (mask,) = sets.answers.mask(np.array([row]))
    assert set(np.flatnonzero(mask).tolist()) == reached
