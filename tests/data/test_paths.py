"""Tests of path data: reading, queries, keys, cache and published counts."""

import bz2
import gzip
import logging
import lzma
import multiprocessing

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coke_jax.data import path_cache, path_files, paths, text_files

TRAIN = 'a\tr\tb\nb\t**r,s\tc\na\tr,s,**s\tb\n'
DEV = 'c\t**s\tb\nd\tr\ta\n'
TEST = 'b\ts\tc\n'
LAYOUT = paths.PathFormat()


def make_folder(folder, train=TRAIN, dev=DEV, test=TEST, **others):
  contents = {'train': train, 'dev': dev, 'test': test, **others}
  for name, text in contents.items():
    (folder / name).write_bytes(text.encode())
  return folder


def read(folder, layout=LAYOUT):
  return path_files.read_paths(folder, 'toy', layout)


def as_labels(data, split):
  found = data.split(split)
  entities, relations = data.vocabulary.entities, data.vocabulary.relations
  return [
    (
      entities[source],
      tuple(relations[relation] for relation in row if relation >= 0),
      entities[target],
    )
    for source, row, target in zip(
      found.source, found.relations, found.target, strict=True
    )
  ]


def test_reading_gives_the_lines_in_their_order(tmp_path):
  data = read(make_folder(tmp_path))
  assert data.vocabulary.entities == ('a', 'b', 'c', 'd')
  assert data.vocabulary.relations == ('**r', '**s', 'r', 's')
  assert data.inverse.tolist() == [2, 3, 0, 1]
  assert as_labels(data, 'train') == [
    ('a', ('r',), 'b'),
    ('b', ('**r', 's'), 'c'),
    ('a', ('r', 's', '**s'), 'b'),
  ]
  assert as_labels(data, 'valid') == [('c', ('**s',), 'b'), ('d', ('r',), 'a')]
  assert data.train.relations.tolist() == [[2, -1, -1], [0, 3, -1], [2, 3, 1]]
  assert data.test.relations.shape == (1, 3)  # As wide as train.
  assert data.train.source.dtype == data.train.relations.dtype == np.int32
  assert data.train.length.tolist() == [1, 2, 3]
  assert data.train.last_relation.tolist() == [2, 3, 1]
  assert data.deduction == {}


def test_without_any_inverse_no_relation_gets_one(tmp_path):
  data = read(make_folder(tmp_path, 'a\tr,s\tb\n', '', ''))
  assert data.vocabulary.relations == ('r', 's')
  assert data.inverse.tolist() == [-1, -1]
  assert len(data.valid) == len(data.test) == 0


def test_a_relation_seen_only_as_an_inverse_gets_its_forward_relation(tmp_path):
  data = read(make_folder(tmp_path, 'a\t**r,s\tb\n', '', ''))
  assert data.vocabulary.relations == ('**r', '**s', 'r', 's')
  assert data.inverse[data.inverse].tolist() == [0, 1, 2, 3]


def test_another_format(tmp_path):
  folder = make_folder(tmp_path, 'a|r;~s|b,c\n', '', '')
  data = read(folder, paths.PathFormat('|', ';', '~'))
  assert as_labels(data, 'train') == [('a', ('r', '~s'), 'b,c')]
  assert data.vocabulary.relations == ('r', 's', '~r', '~s')


def test_labels_are_opaque(tmp_path):
  folder = make_folder(tmp_path, ' a\tr ,NA\t"nan"\n', '', '')
  data = read(folder)
  assert as_labels(data, 'train') == [(' a', ('r ', 'NA'), '"nan"')]


@pytest.mark.parametrize(
  ('suffix', 'opener'), [('.gz', gzip), ('.bz2', bz2), ('.xz', lzma)]
)
def test_compressed_files_and_other_names(tmp_path, suffix, opener):
  plain, packed = tmp_path / 'plain', tmp_path / 'packed'
  plain.mkdir()
  packed.mkdir()
  make_folder(plain)
  for name, text in (('train', TRAIN), ('valid', DEV), ('test', TEST)):
    with opener.open(packed / f'{name}.txt{suffix}', 'wb') as stream:
      stream.write(text.encode())
  for split in ('train', 'valid', 'test'):
    assert as_labels(read(packed), split) == as_labels(read(plain), split)


@pytest.mark.parametrize(
  ('line', 'expected'),
  [
    ('a\tr', 'expected 3 non-empty fields'),
    ('a\tr\tb\tc', 'got 4'),
    ('a\t\tb', 'got 3, 1 of them empty'),
    ('', 'got 1, 1 of them empty'),
    ('a r b', 'got 1'),
    ('a\tr,\tb', "relation 2 of 2 is ''"),
    ('a\t,r\tb', "relation 1 of 2 is ''"),
    ('a\tr,,s\tb', "relation 2 of 3 is ''"),
    ('a\tr,**\tb', r"relation 2 of 2 is '\*\*'"),
    ('a\t****r\tb', r"relation 1 of 1 is '\*\*\*\*r'"),
  ],
)
def test_wrong_lines_are_named(tmp_path, line, expected):
  folder = make_folder(tmp_path, f'a\tr\tb\n{line}\nb\tr\ta\n')
  with pytest.raises(text_files.DataError, match=expected) as error:
    read(folder)
  assert str(error.value).startswith(f'{folder / "train"}:2: ')
  assert repr(line)[1:-1] in str(error.value)


def test_a_wrong_path_among_many_right_ones_is_found(tmp_path):
  lines = 'a\tr\tb\n' * 5000
  folder = make_folder(tmp_path, lines + 'a\tr,\tb\n' + lines)
  with pytest.raises(text_files.DataError, match='train:5001:'):
    read(folder)


@pytest.mark.parametrize('too_many', [0, 1])
def test_the_longest_path(tmp_path, too_many):
  relations = ['r'] * (path_files.MAX_RELATIONS + too_many)
  folder = make_folder(tmp_path, f'a\tr\tb\nb\t{",".join(relations)}\ta\n')
  if too_many:
    with pytest.raises(text_files.DataError, match=r'train:2: .*at most 1,000'):
      read(folder)
  else:
    assert read(folder).train.length.tolist() == [1, 1000]


def test_missing_and_empty_files(tmp_path):
  with pytest.raises(text_files.DataError, match='contains no path'):
    read(make_folder(tmp_path, train=''))
  (tmp_path / 'train').unlink()
  with pytest.raises(text_files.DataError, match='no file of train'):
    read(tmp_path)


@pytest.mark.parametrize(
  'arguments',
  [
    {'delimiter': ''},
    {'relation_delimiter': '\n'},
    {'inverse_marker': ''},
    {'delimiter': ','},
    {'inverse_marker': ',*'},
  ],
)
def test_ambiguous_formats_are_errors(arguments):
  with pytest.raises(text_files.DataError, match='expected'):
    paths.PathFormat(**arguments)


def test_deduction(tmp_path):
  first, second = DEV.splitlines(keepends=True)
  folder = make_folder(tmp_path, dev_deduction=second, dev_induction=first)
  assert {k: v.tolist() for k, v in read(folder).deduction.items()} == {
    'valid': [False, True]
  }


@pytest.mark.parametrize(
  ('deduction', 'induction', 'expected'),
  [
    (DEV, DEV, r'dev:1: this path is in both'),
    (DEV.splitlines()[0] + '\n', '', r'dev:2: this path is in neither'),
    (DEV + TEST, '', r'dev_deduction:3: this path is not in dev'),
  ],
)
def test_wrong_deduction(tmp_path, deduction, induction, expected):
  folder = make_folder(
    tmp_path, dev_deduction=deduction, dev_induction=induction
  )
  with pytest.raises(text_files.DataError, match=expected):
    read(folder)


def test_an_induction_file_without_a_deduction_file_is_an_error(tmp_path):
  folder = make_folder(tmp_path, test_induction=TEST)
  with pytest.raises(text_files.DataError, match='expected one test_deduction'):
    read(folder)


def test_take_and_up_to(tmp_path):
  train = read(make_folder(tmp_path)).train
  assert train.take(np.array([2, 0])).length.tolist() == [3, 1]
  short = train.up_to(2)
  assert short.relations.tolist() == [[2, -1], [0, 3]]
  assert len(train.up_to(9)) == 3
  assert train.single_edges().tolist() == [[0, 2, 1]]


def test_shapes_are_checked():
  one = np.zeros(1, dtype=np.int32)
  with pytest.raises(ValueError, match='expected'):
    paths.PathSet(one, one, one)
  with pytest.raises(ValueError, match='expected'):
    paths.PathSet(one, one[:, None], np.zeros(2, dtype=np.int32))


def test_summary(tmp_path):
  text = read(make_folder(tmp_path, train=TRAIN + TRAIN)).summary()
  assert '4 entities, 1 of them in no training path; 4 relations' in text
  rows = {
    row.split()[0]: row.split()[1:]
    for row in text.splitlines()
    if row[0] == ' '
  }
  assert rows['train'] == ['6', '3', '3', '0', '2', '2', '2']
  assert rows['valid'] == ['2', '2', '0', '1', '2', '0', '0']


def test_an_unknown_split(tmp_path):
  with pytest.raises(ValueError, match='expected one of'):
    read(make_folder(tmp_path)).split('dev')


def test_queries_by_hand(tmp_path):
  data = read(make_folder(tmp_path))
  both = paths.queries_from_paths(data.train, data.vocabulary)
  mask, pad = data.vocabulary.mask_id, data.vocabulary.pad_id
  assert (mask, pad) == (8, 9)
  assert both.tokens.tolist() == [
    [0, 6, mask, pad, pad],
    [1, 4, 7, mask, pad],
    [0, 6, 7, 5, mask],
    [mask, 6, 1, pad, pad],
    [mask, 4, 7, 2, pad],
    [mask, 6, 7, 5, 1],
  ]
  assert both.mask_position.tolist() == [2, 3, 4, 0, 0, 0]
  assert both.indices.tolist() == [1, 2, 1, 0, 1, 0]
  assert both.indptr.tolist() == list(range(7))
  assert both.tokens.dtype == both.mask_position.dtype == np.int32
  tail = paths.queries_from_paths(data.train, data.vocabulary, side='tail')
  head = paths.queries_from_paths(data.train, data.vocabulary, side='head')
  assert (tail.tokens == both.tokens[:3]).all()
  assert (head.tokens == both.tokens[3:]).all()
  empty = data.train.take(np.zeros(3, dtype=bool))
  assert len(paths.queries_from_paths(empty, data.vocabulary)) == 0
  with pytest.raises(ValueError, match='middle'):
    paths.queries_from_paths(data.train, data.vocabulary, side='middle')


def as_set(rows, width):
  relations = np.full((len(rows), width), -1, dtype=np.int32)
  for row, (_, steps, _) in enumerate(rows):
    relations[row, : len(steps)] = steps
  source = np.array([row[0] for row in rows], dtype=np.int32)
  target = np.array([row[2] for row in rows], dtype=np.int32)
  return paths.PathSet(source, relations, target)


@given(
  st.lists(
    st.tuples(
      st.integers(0, 2),
      st.lists(st.integers(0, 1), min_size=1, max_size=3),
      st.integers(0, 2),
    ),
    max_size=40,
  ),
  st.integers(0, 40),
  st.sampled_from([0, 2**30]),
)
@settings(deadline=None)
def test_keys_are_equal_where_paths_are(rows, cut, far):
  # With `far` = 2**30, keys would overflow if they were not renumbered.
  rows = [(s + far, [r + far for r in steps], t) for s, steps, t in rows]
  sets = [as_set(rows[:cut], 3), as_set(rows[cut:], 3)]
  keys = np.concatenate(paths.path_keys(sets)).tolist()
  plain = [(s, tuple(steps), t) for s, steps, t in rows]
  assert len(set(zip(keys, plain, strict=True))) == len(set(plain))
  assert len(set(keys)) == len(set(plain))


# --- the cache ---


def cached(folder, cache, layout=LAYOUT):
  return path_cache.read_paths_cached(folder, 'toy', layout, cache)


def assert_same(one, other):
  assert one.vocabulary == other.vocabulary
  assert one.inverse.tolist() == other.inverse.tolist()
  for split in ('train', 'valid', 'test'):
    for field in ('source', 'relations', 'target'):
      a = getattr(one.split(split), field)
      b = getattr(other.split(split), field)
      assert a.dtype == b.dtype
      assert a.tolist() == b.tolist()
  assert one.deduction.keys() == other.deduction.keys()
  for split, mask in one.deduction.items():
    assert mask.tolist() == other.deduction[split].tolist()


def forbid_reading(monkeypatch):
  def fail(*_):
    raise AssertionError('read the files again')

  monkeypatch.setattr(path_files, 'read_paths', fail)


def test_the_second_reading_uses_the_cache(tmp_path, monkeypatch, caplog):
  folder = tmp_path / 'data'
  folder.mkdir()
  text = TRAIN + 'ünïcode \x00\t**r\td\n'
  make_folder(folder, text, dev_deduction='', dev_induction=DEV)
  cache = tmp_path / 'cache' / 'deep'
  first = cached(folder, cache)
  assert_same(first, read(folder))
  assert [path.suffix for path in cache.iterdir()] == ['.npz']
  with monkeypatch.context() as patched:
    forbid_reading(patched)
    second = cached(folder, cache)
  assert_same(first, second)
  assert not caplog.records


def test_changed_content_or_another_format_is_read_again(tmp_path):
  folder, cache = tmp_path / 'data', tmp_path / 'cache'
  folder.mkdir()
  make_folder(folder)
  cached(folder, cache)
  (folder / 'test').write_text('b\ts\td\n')
  assert as_labels(cached(folder, cache), 'test') == [('b', ('s',), 'd')]
  other = cached(folder, cache, paths.PathFormat(relation_delimiter=';'))
  assert other.train.relations.shape[1] == 1
  make_folder(folder, dev_deduction=DEV, dev_induction='')
  assert cached(folder, cache).deduction['valid'].all()
  assert len(list(cache.iterdir())) == 4


@pytest.mark.parametrize('damage', ['empty', 'cut', 'bit', 'text', 'other'])
def test_a_damaged_cache_is_replaced_with_a_warning(
  tmp_path, monkeypatch, caplog, damage
):
  folder, cache = tmp_path / 'data', tmp_path / 'cache'
  folder.mkdir()
  make_folder(folder)
  first = cached(folder, cache)
  (path,) = cache.iterdir()
  content = bytearray(path.read_bytes())
  if damage == 'empty':
    content = bytearray()
  elif damage == 'cut':
    content = content[: len(content) // 2]
  elif damage == 'bit':
    place = content.index(first.train.relations.tobytes())
    content[place + 4] ^= 1
  elif damage == 'text':
    content = bytearray(b'not what was written here')
  path.write_bytes(content)
  if damage == 'other':
    np.savez(path, entities=np.zeros(3))
  with caplog.at_level(logging.WARNING):
    assert_same(cached(folder, cache), first)
  (record,) = caplog.records
  assert str(path) in record.getMessage()
  assert 'damaged' in record.getMessage()
  forbid_reading(monkeypatch)
  assert_same(cached(folder, cache), first)


def test_a_cache_that_cannot_be_written_gives_a_warning(tmp_path, caplog):
  folder, cache = tmp_path / 'data', tmp_path / 'cache'
  folder.mkdir()
  make_folder(folder)
  cache.write_text('a file where the folder should be')
  with caplog.at_level(logging.WARNING):
    assert_same(cached(folder, cache), read(folder))
  assert any('cannot be written' in r.getMessage() for r in caplog.records)


def test_wrong_files_are_not_cached(tmp_path):
  folder, cache = tmp_path / 'data', tmp_path / 'cache'
  folder.mkdir()
  make_folder(folder, train='a\tr,\tb\n')
  with pytest.raises(text_files.DataError):
    cached(folder, cache)
  assert not cache.exists()


def test_two_processes_at_once(tmp_path):
  folder, cache = tmp_path / 'data', tmp_path / 'cache'
  folder.mkdir()
  make_folder(folder, train=TRAIN * 2000)
  context = multiprocessing.get_context('spawn')
  processes = [
    context.Process(target=cached, args=(folder, cache)) for _ in range(2)
  ]
  for process in processes:
    process.start()
  for process in processes:
    process.join()
  assert [process.exitcode for process in processes] == [0, 0]
  assert [path.suffix for path in cache.iterdir()] == ['.npz']
  assert_same(cached(folder, cache), read(folder))


# --- the real data ---


# The counts that Wang et al. (2019) report.
WORDNET = {
  'entities': 38_551,
  'relations': 11,
  'train_triples': 110_361,
  'test_triples': 10_462,
  'train_paths': 2_129_539,
  'dev_paths': 11_277,
  'test_paths': 46_577,
}
FREEBASE = {
  'relations': 13,
  'dev_triples': 5_908,
  'test_triples': 23_733,
  'dev_paths': 27_163,
  'test_paths': 109_557,
}


def link_all_but_train(folder, target):
  for path in folder.glob('*.xz'):
    if path.name != 'train.xz':
      (target / path.name).symlink_to(path)


def test_counts_of_wordnet(benchmark_folder, tmp_path):
  folder, expected = benchmark_folder('PathQueryWN'), WORDNET
  # To save time, only the single edges of train are read. Longer paths consist
  # of single edges, so all entities of train are read.
  text = lzma.decompress((folder / 'train.xz').read_bytes())
  assert text.count(b'\n') == expected['train_paths']
  single = [line for line in text.splitlines() if b',' not in line]
  (tmp_path / 'train').write_bytes(b'\n'.join(single))
  link_all_but_train(folder, tmp_path)
  data = read(tmp_path)
  assert len(data.train) == expected['train_triples']
  assert data.vocabulary.num_entities == expected['entities']
  assert data.vocabulary.num_relations == 2 * expected['relations']
  assert '38,551 entities, 357 of them in no training path' in data.summary()
  assert len(data.valid) == data.num_distinct('valid') == expected['dev_paths']
  assert len(data.test) == data.num_distinct('test') == expected['test_paths']
  assert data.has_unseen_entity(data.valid).sum() == 263
  assert data.has_unseen_entity(data.test).sum() == 1268
  assert data.deduction['valid'].sum() == 7873
  assert data.deduction['test'].sum() == 24749
  lengths = np.bincount(data.test.length).tolist()
  assert lengths == [0, 10462, 6450, 9023, 10223, 10419]
  assert lengths[1] == expected['test_triples']
  # The paper states 2,602 single edges in dev. The files contain four more.
  assert np.bincount(data.valid.length)[1] == 2606


def test_counts_of_freebase(benchmark_folder, tmp_path):
  folder, expected = benchmark_folder('PathQueryFB'), FREEBASE
  # Reading train takes half a minute, so this test uses dev as train.
  (tmp_path / 'train.xz').symlink_to(folder / 'dev.xz')
  link_all_but_train(folder, tmp_path)
  data = read(tmp_path)
  assert data.vocabulary.num_relations == 2 * expected['relations']
  assert len(data.valid) == data.num_distinct('valid') == expected['dev_paths']
  assert len(data.test) == data.num_distinct('test') == expected['test_paths']
  assert len(data.valid.single_edges()) == expected['dev_triples']
  assert len(data.test.single_edges()) == expected['test_triples']
  assert data.deduction['valid'].sum() == 20710
  assert data.deduction['test'].sum() == 77883
