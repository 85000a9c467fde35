"""Tests of vocabularies, of graphs read from files, and of published counts."""

import hypothesis
import numpy as np
import pytest
import small
from hypothesis import strategies as st

from coke_jax.data import arrays, graph, graph_cache, text_files, triple_files
from coke_jax.data import vocabulary as vocabulary_lib

LAYOUT = triple_files.TripleFormat()

# For each data set: entities, relations, lines of each split, and triples of
# valid and of test with an entity that is not in train.
PUBLISHED = {
  'FB15k': (14_951, 1_345, (483_142, 50_000, 59_071), (0, 0)),
  'WN18': (40_943, 18, (141_442, 5_000, 5_000), (0, 0)),
  'FB15k-237': (14_541, 237, (272_115, 17_535, 20_466), (9, 28)),
  'WN18RR': (40_943, 11, (86_835, 3_034, 3_134), (210, 210)),
  'Nations': (14, 55, (1_592, 199, 201), (0, 0)),
  'UMLS': (135, 46, (5_216, 652, 661), (0, 0)),
  'Kinship': (104, 25, (8_544, 1_068, 1_074), (0, 0)),
  'Countries-S1': (271, 2, (1_111, 24, 24), (0, 0)),
  'Countries-S2': (271, 2, (1_063, 24, 24), (0, 0)),
  'Countries-S3': (271, 2, (985, 24, 24), (0, 0)),
  'CoDEx-S': (2_034, 42, (32_888, 1_827, 1_828), (0, 0)),
  'CoDEx-M': (17_050, 51, (185_584, 10_310, 10_311), (0, 0)),
}
# Entities that are in no training triple. All other data sets have none.
UNSEEN_ENTITIES = {'FB15k-237': 36, 'WN18RR': 384}


def labels(read: graph.KnowledgeGraph, split: str) -> list[tuple[str, ...]]:
  entities, relations = read.vocabulary.entities, read.vocabulary.relations
  return [
    (entities[h], relations[r], entities[t])
    for h, r, t in read.split(split).tolist()
  ]


TRAIN = [
  ('b', 'likes', 'a'),
  ('a', 'knows', 'b'),
  ('b', 'likes', 'a'),
  ('b', 'likes', 'b'),
]
VALID = [('a', 'likes', 'z'), ('a', 'knows', 'b')]
TEST = [('a', 'hates', 'b'), ('Ä', 'likes', 'Ä'), ('Ä', 'likes', 'Ä')]


@pytest.fixture
def example(tmp_path):
  small.write_splits(tmp_path, train=TRAIN, valid=VALID, test=TEST)
  return triple_files.read_graph(tmp_path, 'toy', LAYOUT)


def test_a_large_graph_is_read_from_the_cache(tmp_path, example, monkeypatch):
  """With min_bytes=0, every graph is large enough for the cache."""

  def read():
    return graph_cache.read_graph_cached(
      tmp_path, 'toy', LAYOUT, tmp_path / 'cache', min_bytes=0
    )

  def fail(*_):
    raise AssertionError('parsed the files again')

  assert arrays.equal(read(), example)
  with monkeypatch.context() as patched:
    patched.setattr(triple_files, 'read_graph', fail)
    assert arrays.equal(read(), example)
  small.write_splits(tmp_path, train=TRAIN, valid=VALID)  # Test is now empty.
  assert len(read().test) == 0
  assert len(list((tmp_path / 'cache').iterdir())) == 2


def test_a_small_graph_is_not_cached(tmp_path, example):
  read = graph_cache.read_graph_cached(
    tmp_path, 'toy', LAYOUT, tmp_path / 'cache'
  )
  assert arrays.equal(read, example)
  assert not (tmp_path / 'cache').exists()


# --------------------------------------------------------------- vocabulary


def test_ids_are_entities_relations_mask_pad():
  vocabulary = small.labels('abc', 'rs')
  assert vocabulary.num_entities == 3
  assert vocabulary.num_relations == 2
  assert vocabulary.mask_id == 5
  assert vocabulary.pad_id == 6
  assert vocabulary.num_tokens == 7
  assert vocabulary.entity_ids == {'a': 0, 'b': 1, 'c': 2}
  assert vocabulary.relation_ids == {'r': 0, 's': 1}
  assert (vocabulary.entity_id('c'), vocabulary.relation_id('s')) == (2, 1)


def test_the_error_of_an_unknown_label_names_close_ones():
  vocabulary = small.labels(('Germany', 'France'), ('capital', 'border'))
  with pytest.raises(KeyError, match=r"entity 'germny'.*'Germany'"):
    vocabulary.entity_id('germny')
  with pytest.raises(KeyError, match=r"relation 'borders'.*'border'"):
    vocabulary.relation_id('borders')
  with pytest.raises(KeyError, match="unknown entity 'qqqq'"):
    vocabulary.entity_id('qqqq')
  with pytest.raises(KeyError):
    vocabulary.entity_id('capital')  # This is the label of a relation.


def test_closest_is_best_first_and_ignores_case():
  known = ['num_epochs', 'NUM_EPOCHS_MAX', 'seed']
  assert vocabulary_lib.closest('Num_Epoch', known)[0] == 'num_epochs'
  assert vocabulary_lib.closest('xyz', known) == []


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.text(max_size=4), unique=True, max_size=8))
def test_sort_labels(unsorted):
  index = text_files.LabelIndex()
  for label in unsorted:
    assert index[label] == len(index) - 1
  ordered, places = vocabulary_lib.sort_labels(index)
  assert list(ordered) == sorted(unsorted)
  assert places.dtype == np.int32
  assert [ordered[place] for place in places] == unsorted


# -------------------------------------------------------------------- graph


def test_every_line_is_kept_in_order(example):
  assert labels(example, 'train') == TRAIN
  assert labels(example, 'valid') == VALID
  assert labels(example, 'test') == TEST
  assert labels(example, 'train') + labels(example, 'test') == [
    (
      example.vocabulary.entities[h],
      example.vocabulary.relations[r],
      example.vocabulary.entities[t],
    )
    for h, r, t in example.triples('train', 'test').tolist()
  ]
  assert all(example.split(name).dtype == np.int32 for name in graph.SPLITS)


def test_labels_of_all_splits_are_sorted_by_code_point(example):
  assert example.vocabulary.entities == ('a', 'b', 'z', 'Ä')
  assert example.vocabulary.relations == ('hates', 'knows', 'likes')


def test_ids_do_not_depend_on_the_order_of_lines(tmp_path, example):
  small.write_splits(
    tmp_path / 'again', train=TRAIN[::-1], valid=VALID[::-1], test=TEST
  )
  again = triple_files.read_graph(tmp_path / 'again', 'again', LAYOUT)
  assert again.vocabulary == example.vocabulary
  assert again.train.tolist() == example.train[::-1].tolist()


def test_distinct_and_duplicates(example):
  counts = [example.num_distinct(name) for name in graph.SPLITS]
  assert counts == [3, 2, 2]


def test_unseen_entities(example):
  unseen = [example.has_unseen_entity(example.split(s)) for s in graph.SPLITS]
  assert unseen[0].tolist() == [False] * 4
  assert unseen[1].tolist() == [True, False]
  # A relation unseen in train does not count as an unseen entity.
  assert unseen[2].tolist() == [False, True, True]


def test_summary(example):
  rows = {
    cells[0]: cells[1:]
    for cells in map(str.split, example.summary().splitlines())
  }
  first = example.summary().splitlines()[0]
  assert 'toy: 4 entities, 3 relations' in first
  # The columns are: lines, distinct, duplicates, also in train, unseen entity,
  # unseen relation.
  assert rows['train'] == ['4', '3', '1', '0', '0', '0']
  assert rows['valid'] == ['2', '2', '0', '1', '1', '0']
  assert rows['test'] == ['3', '2', '1', '0', '2', '1']


def test_an_unknown_split_is_an_error(example):
  with pytest.raises(ValueError, match=r"'dev': expected one of .*'valid'"):
    example.split('dev')


def test_valid_and_test_may_be_empty(tmp_path):
  small.write_splits(tmp_path, train=TRAIN)
  read = triple_files.read_graph(tmp_path, 'x', LAYOUT)
  assert read.valid.shape == read.test.shape == (0, 3)
  assert read.num_distinct('test') == 0
  assert not len(read.has_unseen_entity(read.test))
  assert 'valid' in read.summary()


def test_an_empty_train_file_is_an_error(tmp_path):
  small.write_splits(tmp_path, valid=VALID)
  with pytest.raises(text_files.DataError, match=r'train\.txt.*no triple'):
    triple_files.read_graph(tmp_path, 'x', LAYOUT)


@pytest.mark.parametrize('missing', graph.SPLITS)
def test_a_missing_split_is_an_error(tmp_path, missing):
  small.write_splits(tmp_path, train=TRAIN)
  (tmp_path / f'{missing}.txt').unlink()
  with pytest.raises(text_files.DataError, match=f'no file of {missing}'):
    triple_files.read_graph(tmp_path, 'x', LAYOUT)


def test_a_wrong_line_in_the_last_file_is_an_error(tmp_path):
  small.write_splits(tmp_path, train=TRAIN)
  (tmp_path / 'test.txt').write_text('a\tr\tb\na b c\n')
  with pytest.raises(text_files.DataError, match=r'test\.txt:2: '):
    triple_files.read_graph(tmp_path, 'x', LAYOUT)


def test_the_layout_applies_to_every_file(tmp_path):
  for split in graph.SPLITS:
    text = f'subject;object;predicate\n{split};z;r\n'
    (tmp_path / f'{split}.tsv').write_text(text)
  layout = triple_files.TripleFormat(('head', 'tail', 'relation'), ';', True)
  read = triple_files.read_graph(tmp_path, 'x', layout)
  assert [labels(read, s) for s in graph.SPLITS] == [
    [(split, 'r', 'z')] for split in graph.SPLITS
  ]


_NAME = st.sampled_from(['a', 'b', 'c', 'd', 'é', '0'])
_TRIPLES = st.lists(st.tuples(_NAME, _NAME, _NAME), max_size=6)


@hypothesis.settings(
  deadline=None,
  max_examples=50,
  suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)
@hypothesis.given(train=_TRIPLES.filter(len), valid=_TRIPLES, test=_TRIPLES)
def test_graph_against_sets(tmp_path, train, valid, test):
  small.write_splits(tmp_path, train=train, valid=valid, test=test)
  read = triple_files.read_graph(tmp_path, 'x', LAYOUT)
  splits = {'train': train, 'valid': valid, 'test': test}
  everything = train + valid + test
  entities = {e for h, _, t in everything for e in (h, t)}
  assert read.vocabulary.entities == tuple(sorted(entities))
  assert read.vocabulary.relations == tuple(
    sorted({relation for _, relation, _ in everything})
  )
  seen = {e for h, _, t in train for e in (h, t)}
  for name, triples in splits.items():
    assert labels(read, name) == triples
    assert read.num_distinct(name) == len(set(triples))
    assert read.has_unseen_entity(read.split(name)).tolist() == [
      not {h, t} <= seen for h, _, t in triples
    ]


# ---------------------------------------------------------- published counts


@pytest.mark.parametrize('name', PUBLISHED)
def test_published_counts(name, benchmark_folder):
  entities, relations, lines, unseen = PUBLISHED[name]
  read = triple_files.read_graph(benchmark_folder(name), name, LAYOUT)
  assert read.vocabulary.num_entities == entities
  assert read.vocabulary.num_relations == relations
  assert tuple(len(read.split(split)) for split in graph.SPLITS) == lines
  assert unseen == tuple(
    int(read.has_unseen_entity(read.split(split)).sum())
    for split in ('valid', 'test')
  )
  seen = len(np.unique(read.train[:, [0, 2]]))
  assert entities - seen == UNSEEN_ENTITIES.get(name, 0)
  if name.startswith('WN'):  # Leading zeros of labels are kept.
    assert all(len(label) == 8 for label in read.vocabulary.entities)
