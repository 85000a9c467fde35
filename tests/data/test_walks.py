"""Tests the distributions of sampled walks, and the writing of path files."""

import collections
import lzma

import numpy as np
import pytest
import small

from coke_jax.data import (
  adjacency,
  atomic_files,
  graph,
  inverses,
  path_files,
  paths,
  text_files,
  vocabulary,
  walks,
)


def make_graph(train, relations=('likes', 'knows')):
  """Returns a graph with 6 entities whose valid and test splits are empty."""
  empty = np.zeros((0, 3), np.int32)
  triples = np.array(train, dtype=np.int32)
  return graph.KnowledgeGraph(
    'toy', small.labels(6, relations), triples, empty, empty
  )


def random_graph():
  return small.random_graph(entities=30, sizes=(80, 10, 20))


def rows_of(found):
  return [
    (source, tuple(row[:length]), target)
    for source, row, length, target in zip(
      found.source.tolist(),
      found.relations.tolist(),
      found.length.tolist(),
      found.target.tolist(),
      strict=True,
    )
  ]


def plain_edges(data, triples, forward):
  """Returns the edges in both directions as a set."""
  found = set()
  for head, relation, tail in triples.tolist():
    index = int(forward[relation])
    found |= {(head, index, tail), (tail, int(data.inverse[index]), head)}
  return found


def reaches(edges, source, steps, target):
  reached = {source}
  for step in steps:
    reached = {t for (h, r, t) in edges if h in reached and r == step}
  return target in reached


def test_splits_are_distinct_paths_of_their_graphs():
  triples = random_graph()
  data = walks.sample_path_data(triples, seed=3, longest=4)
  _, forward = inverses.with_inverses(triples.vocabulary, '**')
  train, valid, test = (rows_of(data.split(split)) for split in graph.SPLITS)
  for rows in (train, valid, test):
    assert len(set(rows)) == len(rows)
    assert {len(steps) for _, steps, _ in rows} == {1, 2, 3, 4}
  assert not set(train) & set(valid)
  assert not (set(train) | set(valid)) & set(test)
  edges = {
    split: plain_edges(data, triples.split(split), forward)
    for split in graph.SPLITS
  }
  for rows, known in (
    (train, edges['train']),
    (valid, edges['train'] | edges['valid']),
    (test, edges['train'] | edges['test']),
  ):
    assert all(reaches(known, *row) for row in rows)
  for split in ('valid', 'test'):
    assert data.deduction[split].tolist() == [
      reaches(edges['train'], *row) for row in rows_of(data.split(split))
    ]
  single = {row for row in train if len(row[1]) == 1}
  assert single == {
    (h, (int(forward[r]),), t) for h, r, t in triples.train.tolist()
  }


def test_the_seed_determines_the_walks():
  triples = random_graph()
  one, same, other = (
    walks.sample_path_data(triples, seed=seed) for seed in (1, 1, 2)
  )
  assert rows_of(one.train) == rows_of(same.train)
  assert rows_of(one.test) == rows_of(same.test)
  assert set(rows_of(one.train)) != set(rows_of(other.train))


def sample(triples, count, longest, seed=0, num_entities=6):
  built = adjacency.from_triples(
    np.array(triples, dtype=np.int32), num_entities, np.array([1, 0, 3, 2])
  )
  return walks.sample_walks(
    built, count, longest=longest, generator=np.random.default_rng(seed)
  )


def test_steps_draw_a_relation_and_then_a_tail(monkeypatch):
  # The walks need several chunks. The last chunk is not full.
  monkeypatch.setattr(walks, 'WALKS_PER_CHUNK', 7001)
  # Entity 0 has three tails with relation 0 and one tail with relation 2. One
  # of the triples is duplicated.
  triples = [(0, 0, 1), (0, 0, 1), (0, 0, 2), (0, 0, 3), (0, 2, 4)]
  count = 60_000
  found = sample(triples, count, longest=2)
  # Entity 5 has no edge.
  assert set(np.unique(found.source)) == {0, 1, 2, 3, 4}
  assert np.bincount(found.source) / count == pytest.approx([0.2] * 5, abs=0.01)
  first = found.take(found.source == 0)
  share = (first.relations[:, 0] == 0).mean()
  assert share == pytest.approx(0.5, abs=0.02)
  # From entity 1, the first step leads to 0, because there is no other edge.
  # The second step leads to 1, 2, 3 or 4.
  second = found.take(found.source == 1)
  assert (second.relations[:, 0] == 1).all()
  ends = np.bincount(second.target, minlength=5) / len(second)
  assert ends == pytest.approx([0, 1 / 6, 1 / 6, 1 / 6, 1 / 2], abs=0.02)


def test_lengths_are_uniform():
  count = 40_000
  found = sample([(0, 0, 1), (1, 2, 1)], count, longest=5)
  counts = collections.Counter(found.length.tolist())
  assert counts.keys() == {2, 3, 4, 5}
  for length in counts:
    assert counts[length] / count == pytest.approx(0.25, abs=0.015)
  assert (found.relations[:, :2] >= 0).all()


def test_a_loop_is_walked_both_ways():
  found = sample([(2, 0, 2)], 500, longest=2)
  assert set(found.source) == set(found.target) == {2}
  assert set(found.relations.ravel()) == {0, 1}


def test_graphs_without_walks_are_errors():
  with pytest.raises(ValueError, match='at least 2'):
    sample([(0, 0, 1)], 5, longest=1)
  with pytest.raises(ValueError, match='no edge'):
    sample(np.empty((0, 3)), 5, longest=2)
  one_way = adjacency.from_triples(
    np.array([[0, 0, 1]], dtype=np.int32), 2, np.array([-1])
  )
  with pytest.raises(ValueError, match='no outgoing edges'):
    walks.sample_walks(
      one_way, 5, longest=2, generator=np.random.default_rng(0)
    )


def test_empty_valid_and_test():
  data = walks.sample_path_data(make_graph([(0, 0, 1)]), seed=0)
  assert len(data.train) > 1
  assert len(data.valid) == len(data.test) == 0


def test_a_relation_that_starts_with_the_inverse_marker_is_an_error():
  triples = make_graph([(0, 0, 1)], relations=('**likes', 'knows'))
  with pytest.raises(text_files.DataError, match='another inverse marker'):
    walks.sample_path_data(triples, seed=0)
  data = walks.sample_path_data(triples, seed=0, inverse_marker='~')
  assert set(data.vocabulary.relations) == {
    '**likes',
    'knows',
    '~**likes',
    '~knows',
  }


@pytest.mark.parametrize(
  'layout', [paths.PathFormat(), paths.PathFormat('|', ';', '~')]
)
def test_written_paths_are_read_back(tmp_path, layout):
  data = walks.sample_path_data(
    random_graph(), seed=5, inverse_marker=layout.inverse_marker
  )
  folder = tmp_path / 'new' / 'paths'
  path_files.write_paths(folder, data, layout)
  names = {path.name for path in folder.iterdir()}
  assert names == {
    'train',
    'dev',
    'test',
    'dev_deduction',
    'dev_induction',
    'test_deduction',
    'test_induction',
  }
  back = path_files.read_paths(folder, 'toy', layout)
  # Entities that have no edge are not in the files. So ids can differ, but
  # labels do not.
  for split in graph.SPLITS:
    assert labelled(back, split) == labelled(data, split)
    if split != 'train':
      expected = data.deduction[split].tolist()
      assert back.deduction[split].tolist() == expected


def labelled(data, split):
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  return [
    (entities[source], tuple(relations[r] for r in steps), entities[target])
    for source, steps, target in rows_of(data.split(split))
  ]


def test_nothing_is_overwritten(tmp_path):
  data = walks.sample_path_data(make_graph([(0, 0, 1)]), seed=0)
  (tmp_path / 'valid.txt.xz').write_bytes(b'')
  with pytest.raises(text_files.DataError, match='already exists'):
    path_files.write_paths(tmp_path, data, paths.PathFormat())
  assert [path.name for path in tmp_path.iterdir()] == ['valid.txt.xz']


def test_labels_that_contain_a_delimiter_are_errors(tmp_path):
  triples = make_graph([(0, 0, 1)], relations=('likes,a lot', 'knows'))
  data = walks.sample_path_data(triples, seed=0)
  with pytest.raises(text_files.DataError, match='likes,a lot'):
    path_files.write_paths(tmp_path, data, paths.PathFormat())
  path_files.write_paths(
    tmp_path, data, paths.PathFormat(relation_delimiter=' > ')
  )


def test_an_interrupted_writer_leaves_no_file(tmp_path):
  def interrupt():
    with atomic_files.whole_file(tmp_path / 'train') as path:
      path.write_text('half')
      raise KeyboardInterrupt

  with pytest.raises(KeyboardInterrupt):
    interrupt()
  assert not list(tmp_path.iterdir())


def test_sampling_from_wordnet_gives_the_released_sizes(benchmark_folder):
  folder = benchmark_folder('PathQueryWN')
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  splits, sizes = [], []
  for name in ('train', 'dev', 'test'):
    text = lzma.decompress((folder / f'{name}.xz').read_bytes()).decode()
    sizes.append(text.count('\n'))
    single = [line for line in text.splitlines() if ',' not in line]
    triples = [
      (entities[head], relations[relation], entities[tail])
      for head, relation, tail in (line.split('\t') for line in single)
    ]
    splits.append(np.array(triples, dtype=np.int32))
  made = vocabulary.Vocabulary(tuple(entities), tuple(relations))
  data = walks.sample_path_data(
    graph.KnowledgeGraph('WordNet', made, *splits), seed=0
  )
  for split, size in zip(graph.SPLITS, sizes, strict=True):
    assert len(data.split(split)) == pytest.approx(size, rel=0.03)
  assert np.bincount(data.train.length)[1:] == pytest.approx(
    [110_361, 411_209, 505_297, 545_669, 557_003], rel=0.03
  )
  keys = np.concatenate(
    paths.path_keys([data.split(split) for split in graph.SPLITS])
  )
  keys.sort()
  assert np.diff(keys).all()  # All paths of all splits are distinct.
