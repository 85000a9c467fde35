"""Tests the warnings about suspicious labels."""

import itertools

import pytest
import small

from coke_jax import tasks
from coke_jax.data import (
  label_checks,
  prepare,
  reading_cache,
  text_files,
  triple_files,
)
from coke_jax.data.formats import options as formats_options

PEOPLE = [f'person {i}' for i in range(10)]
TRIPLES = [
  (head, relation, tail)
  for head, tail in itertools.permutations(PEOPLE, 2)
  for relation in ('knows', 'trusts')
]


def read(folder, columns='head relation tail', triples=TRIPLES):
  small.write_splits(folder, train=triples)
  layout = triple_files.TripleFormat(tuple(columns.split()))
  return triple_files.read_graph(folder, 'people', layout)


def test_usual_labels_give_no_warning(tmp_path):
  assert label_checks.warnings(read(tmp_path), relation_delimiter=',') == []
  assert label_checks.warnings(small.random_graph()) == []
  assert label_checks.warnings(small.random_paths()) == []


@pytest.mark.parametrize(
  'columns', ['head tail relation', 'relation head tail']
)
def test_another_order_of_the_columns(tmp_path, columns):
  """Every person is read as a relation, and also as an entity."""
  (warning,) = label_checks.warnings(read(tmp_path, columns))
  assert '10 of 10 relations are also entities' in warning
  assert 'data.columns' in warning
  first = dict(zip(columns.split(), TRIPLES[0], strict=True))
  assert (
    f'head {first["head"]!r}, relation {first["relation"]!r}, tail '
    f'{first["tail"]!r}'
  ) in warning
  assert len(warning.splitlines()) == 4


def test_as_many_relations_as_triples(tmp_path):
  triples = [(f'e{i}', f'r{i}', f'e{i + 1}') for i in range(40)]
  (warning,) = label_checks.warnings(read(tmp_path, triples=triples))
  assert 'there are 40 relations in 40 training triples' in warning
  assert label_checks.warnings(read(tmp_path, triples=triples[:20])) == []


@pytest.mark.parametrize(
  ('head', 'relation', 'expected'),
  [
    ('?', 'r', "'?' is the label of an entity"),
    ('[MASK]', 'r', "entity labels '[MASK]': special tokens"),
    ('a', '[PAD]', "relation labels '[PAD]': special tokens"),
    ('a\rb', 'r', "entity labels with a tab or carriage return: 'a\\rb'"),
    ('a', 'r,s', "relation labels with ',', which separates"),
  ],
)
def test_labels_with_a_second_meaning(tmp_path, head, relation, expected):
  data = read(tmp_path, triples=[*TRIPLES, (head, relation, 'person 1')])
  (warning,) = label_checks.warnings(data, relation_delimiter=',')
  assert expected in warning
  assert 'expected' in warning


def test_a_delimiter_matters_only_for_paths(tmp_path):
  data = read(tmp_path, triples=[*TRIPLES, ('a', 'r,s', 'b')])
  assert label_checks.warnings(data) == []


@pytest.mark.parametrize('kind', ['triples', 'walks', 'paths'])
def test_warnings_are_logged_when_data_are_read(tmp_path, caplog, kind):
  triples = [*TRIPLES, ('?', 'knows', 'person 1')]
  if kind != 'paths':
    triples.append(('person 1', 'a,b', 'person 2'))
  small.write_splits(tmp_path, train=triples)
  length = 1 if kind == 'triples' else 2
  config = small.config(
    data={'dir': str(tmp_path), 'kind': kind, 'max_path_length': length}
  )
  tasks.read_data(config)
  assert "'?' is the label of an entity" in caplog.text
  assert ("'a,b'" in caplog.text) == (kind == 'walks')


def test_a_missing_split_file_names_similar_files(tmp_path):
  names = ['train.csv', 'train2id.txt', 'Train.txt', 'val.tsv', 'notes.txt']
  for name in names:
    (tmp_path / name).write_text('')
  (tmp_path / 'training').mkdir()
  for split, similar in (
    ('train', ['Train.txt', 'train.csv', 'train2id.txt']),
    ('valid', ['val.tsv']),
    ('test', []),
  ):
    with pytest.raises(text_files.DataError) as caught:
      text_files.find_split(tmp_path, split)
    message = str(caught.value)
    assert [name for name in sorted(names) if name in message] == similar
    assert ('may be empty' in message) == (split != 'train')


SIGNS = ("'?' is the label of an entity", '10 of 10 relations are also')


@pytest.mark.parametrize('kind', ['folder', 'file', 'triples', 'config'])
def test_every_way_to_read_data_gives_each_warning_once(tmp_path, caplog, kind):
  rows = [(head, tail, relation) for head, relation, tail in TRIPLES]
  rows.append(('?', 'person 1', 'knows'))
  small.write_splits(tmp_path, train=rows)
  (tmp_path / 'valid.txt').write_bytes(
    b'person 1\tperson 2\tknows\nperson 2\tperson 3\tknows\r\n'
  )
  with (tmp_path / 'train.txt').open('ab') as file:
    file.write(b'person 1\tperson 2\tfears\r\n')
  if kind == 'config':
    tasks.read_data(small.config(data={'dir': str(tmp_path)}))
  else:
    sources = {
      'folder': tmp_path,
      'file': tmp_path / 'train.txt',
      'triples': rows,
    }
    prepare.prepare(sources[kind])
  for sign in SIGNS:
    assert caplog.text.count(sign) == 1
  ends = ['train.txt'] * (kind != 'triples')
  ends += ['valid.txt'] * (kind in ('folder', 'config'))
  for name in ends:
    assert caplog.text.count(f'{name}: 1 lines end with CR LF and ') == 1
  assert caplog.text.count('lines end with') == len(ends)


@pytest.mark.parametrize('name', ['a.csv', 'a.tsv', 'train2id.txt'])
def test_line_ends_of_other_formats(tmp_path, caplog, name):
  """Counts of line ends ignore breaks inside quotes, and are cached."""
  text = 'a,r,b,x\r\nc,r,a,"y\ny"\r\nc,r,b,z'
  options = formats_options.Options(columns=('1', '2', '3'))
  if name == 'a.tsv':
    text = text.replace('\ny', '').replace(',', '\t')
  if name == 'train2id.txt':
    for word in ('entity', 'relation'):
      (tmp_path / f'{word}2id.txt').write_text('3\na\t0\nb\t1\nc\t2\n')
    text = '3\r\n0 1 0\r\n2 0 0\r\n2 1 0'
    options = formats_options.Options()
  path = tmp_path / name
  for end in ('\r\n', '\n'):
    path.write_bytes((text + end).encode())
    for _ in range(2):
      caplog.clear()
      found = reading_cache.read(
        {'train': path},
        options,
        'drop',
        cache_folder=tmp_path / 'cache',
        min_bytes=0,
      )
      (log,) = found.sources
      lines = log.windows_ends + log.unix_ends
      assert log.unix_ends == (end == '\n')
      assert lines == (4 if name == 'train2id.txt' else 3)
  prepare.prepare(path, columns=options.columns)
  assert f'{path}: {lines - 1} lines end with CR LF and 1 ' in caplog.text
