"""Tests the readers of Parquet, RDF, OpenKE and data in memory."""

import collections

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from test_formats import LABELS, TRIPLES, error_of, read, write

from coke_jax.data import text_files
from coke_jax.data.formats import extras


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp('formats')


# ------------------------------------------------------------ data in memory


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES)
def test_iterables_and_arrays(triples):
  assert read(triples)[0] == triples
  assert read(iter([list(triple) for triple in triples]))[0] == triples
  assert read(np.array(triples, dtype=object))[0] == triples


def test_integer_labels():
  assert read([(1, 2, 3), (np.int64(1), '2', 30)])[0] == [
    ('1', '2', '3'),
    ('1', '2', '30'),
  ]
  assert read(np.array([[1, 2, 3]]))[0] == [('1', '2', '3')]
  assert read(np.array([['1', 'r', '3']]))[0] == [('1', 'r', '3')]


def test_named_tuples_are_read_by_name():
  row = collections.namedtuple('row', ['year', 'tail', 'head', 'relation'])
  labels, log = read([row(1, 'b', 'a', 'r'), row(2, 'd', 'c', 's')])
  assert labels == [('a', 'r', 'b'), ('c', 's', 'd')]
  assert log.ignored_columns == ('year',)


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.sampled_from(['object', 'str', 'category']))
def test_pandas(triples, dtype):
  pandas = pytest.importorskip('pandas')
  head, relation, tail = map(list, zip(*triples, strict=True))
  frame = pandas.DataFrame(
    {'p': relation, 'o': tail, 'year': 1, 's': head}, index=[5] * len(head)
  )
  frame[['s', 'p', 'o']] = frame[['s', 'p', 'o']].astype(dtype)
  labels, log = read(frame)
  assert labels == triples
  assert log.ignored_columns == ('year',)


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES)
def test_polars(triples):
  polars = pytest.importorskip('polars')
  frame = polars.DataFrame(triples, schema=['from', 'type', 'to'], orient='row')
  assert read(frame)[0] == triples


@pytest.mark.parametrize(
  ('data', 'parts'),
  [
    ([('a', 'r', 'b'), ('a', 'r', None)], ['number 2', "('a', 'r', None)"]),
    ([('a', 'r', float('nan'))], ['number 1', 'empty or missing']),
    ([('a', 'r', 1.0)], ['number 1', 'label of type float']),
    ([('a', 'r', b'b')], ['number 1', 'label of type bytes']),
    ([('a', 'r', ['b'])], ['number 1', 'label of type list']),
    ([('a', 'r', 'b'), ('a', 'r')], ['number 2', '3 items']),
    ([('a', 'r', 'b'), 'abc'], ['number 2', "'abc'"]),
    (['abc'], ['number 1', 'a sequence of head, relation and tail']),
    ([('a', 'r', 'b', 'c')], ['number 1', 'columns']),
    (np.zeros((2, 2)), ['array', '(2, 2)']),
    (np.zeros((2, 3)), ['array, row 1', 'label of type float']),
    (7, ['int', 'a data frame']),
    ({'a': 1}, ['dict', 'a data frame']),
  ],
)
def test_bad_data_in_memory(data, parts):
  message = error_of(data)
  for part in parts:
    assert part in message


def test_repeated_names_of_pandas():
  pandas = pytest.importorskip('pandas')
  rows = [('a', 'b', 'r', 'c')]
  frame = pandas.DataFrame(rows, columns=['head', 'head', 'rel', 'tail'])
  assert (
    "use for example coke prepare with --columns=1,2,3 (in Python: columns=['1'"
    in (error_of(frame))
  )
  message = error_of(frame, columns=('head', 'rel', 'tail'))
  assert "more than one column 'head': expected positions from 1 to 4" in (
    message
  )
  assert read(frame, columns=('2', '3', '4'))[0] == [('b', 'r', 'c')]


def test_missing_values_of_pandas():
  pandas = pytest.importorskip('pandas')
  frame = pandas.DataFrame(
    {'h': ['a', None, 'c', 'd'], 'r': ['r'] * 4, 't': ['b', 'b', np.nan, 'NA']}
  )
  assert error_of(frame).startswith('data frame, row 2: ')
  labels, log = read(frame, on_bad_line='skip')
  assert labels == [('a', 'r', 'b'), ('d', 'r', 'NA')]
  assert log.left_out == {'empty or missing label': 2}
  frame = pandas.DataFrame({'h': [1, None], 'r': ['r'] * 2, 't': ['b', 'b']})
  message = error_of(frame)
  assert message.startswith('data frame, row 1: 1.0 is a label of type float')
  assert "The column 'h' has a missing value in row 2" in message
  frame['h'] = frame['h'].astype('Int64')
  assert error_of(frame).startswith('data frame, row 2: ')


# --------------------------------------------------------------------- Parquet


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.booleans())
def test_parquet(folder, triples, dictionary):
  pyarrow = pytest.importorskip('pyarrow')
  parquet = pytest.importorskip('pyarrow.parquet')
  head, relation, tail = map(list, zip(*triples, strict=True))
  table = pyarrow.table(
    {'target': tail, 'w': [0.5] * len(head), 'source': head, 'rel': relation}
  )
  if dictionary:
    place = table.schema.get_field_index('rel')
    column = table.column('rel').dictionary_encode()
    table = table.set_column(place, 'rel', column)
  assert read(table)[0] == triples
  parquet.write_table(table, folder / 'a.parquet', row_group_size=5)
  labels, log = read(folder / 'a.parquet', weight='w', min_weight=0.5)
  assert labels == triples
  assert log.ignored_columns == ()


def test_bad_parquet(folder):
  pyarrow = pytest.importorskip('pyarrow')
  parquet = pytest.importorskip('pyarrow.parquet')
  path = write(folder, 'no.parquet', 'a,r,b\n')
  assert error_of(path).startswith(f'{path}: cannot be read: ')
  path = folder / 'wrong.parquet'
  parquet.write_table(
    pyarrow.table({'h': ['a', None], 'r': ['r', 'r'], 't': [1, 2]}), path
  )
  assert error_of(path).startswith(f"{path}, row 2: (None, 'r', 2): ")
  assert "no column 'x'" in error_of(path, columns=('h', 'x', 't'))
  whole = path.read_bytes()
  path.write_bytes(whole[: len(whole) // 2])
  assert error_of(path).startswith(f'{path}: cannot be read: ')


# ------------------------------------------------------------------------- RDF

IRIS = st.text(
  st.characters(
    exclude_categories=['Cs', 'Cc', 'Zs', 'Zl', 'Zp', 'Co', 'Cn'],
    exclude_characters='<>"{}|^`\\%[]:/?#@',
    max_codepoint=0xD7FF,
  ),
  max_size=6,
).map('http://example.org/x{}'.format)


@hypothesis.settings(deadline=None)
@hypothesis.given(
  st.lists(st.tuples(IRIS, IRIS, st.one_of(IRIS, LABELS)), min_size=1)
)
def test_n_triples(folder, triples):
  pyoxigraph = pytest.importorskip('pyoxigraph')
  lines, kept, literals = [], [], 0
  for head, relation, tail in triples:
    text = f'<{tail}>'
    if tail.startswith('http://example.org/x'):
      kept.append((head, relation, tail))
    else:
      text = str(pyoxigraph.Literal(tail))
      literals += 1
    lines.append(f'<{head}> <{relation}> {text} .\n')
  path = write(folder, 'a.nt', '# comment\n' + ''.join(lines))
  labels, log = read(path)
  assert labels == kept
  assert log.left_out == ({'literal as tail': literals} if literals else {})
  labels, log = read(path, literals='keep')
  assert log.left_out == {}
  assert [label for label in labels if label[2][0] != '"'] == kept
  # The label of a literal is its text in the file.
  assert [f' {label[2]} .\n' for label in labels if label[2][0] == '"'] == [
    line[line.index(' "') :] for line in lines if ' "' in line
  ]


def test_turtle(folder):
  pytest.importorskip('pyoxigraph')
  text = """
    @prefix : <http://example.org/> .
    :a :knows :b , [ :knows _:someone ] ; :name "A"@de .
    [] a :Thing .
  """
  thing = 'http://www.w3.org/1999/02/22-rdf-syntax-ns#type'
  for _ in range(2):  # Both times, nameless blank nodes get the same labels.
    labels, log = read(write(folder, 'a.ttl', text))
    e = 'http://example.org/'
    assert sorted(labels) == sorted(
      [
        (f'{e}a', f'{e}knows', f'{e}b'),
        (f'{e}a', f'{e}knows', '_:[1]'),
        ('_:[1]', f'{e}knows', '_:someone'),
        ('_:[2]', thing, f'{e}Thing'),
      ]
    )
    assert log.left_out == {'literal as tail': 1}
  labels, _ = read(folder / 'a.ttl', literals='keep')
  assert (f'{e}a', f'{e}name', '"A"@de') in labels


@pytest.mark.parametrize(
  ('name', 'text', 'parts'),
  [
    ('a.nt', '<http://a> <http://b> <http://c> .\n<http://a> x\n', [':2: ']),
    ('a.ttl', ':a :b :c .\n', [':1: ']),
    ('a.nt', b'<http://a> <http://b> <http://\xff> .\n', [':1: ', 'UTF-8']),
  ],
)
def test_bad_rdf(folder, name, text, parts):
  pytest.importorskip('pyoxigraph')
  path = write(folder, name, text)
  message = error_of(path)
  assert message.startswith(str(path))
  for part in parts:
    assert part in message
  with pytest.raises(text_files.DataError, match='no columns'):
    read(path, columns=('1', '2', '3'))


def test_a_missing_library_is_named(folder):
  with pytest.raises(text_files.DataError, match=r'coke_jax\[formats\]'):
    extras.load('no_such_library.part', folder / 'a.parquet')


# ---------------------------------------------------------------------- OpenKE


def openke(folder, entities, relations, triples, name='train2id.txt'):
  for file, index in (('entity', entities), ('relation', relations)):
    lines = [f'{label}\t{i}\n' for label, i in index.items()]
    write(folder, f'{file}2id.txt', f'{len(index)}\n{"".join(lines)}')
  lines = [
    f'{entities[h]} {entities[t]} {relations[r]}\n' for h, r, t in triples
  ]
  return write(folder, name, f'{len(triples)}\n{"".join(lines)}')


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.randoms())
def test_openke(folder, triples, random):
  entities = list({e for h, _, t in triples for e in (h, t)})
  relations = list({r for _, r, _ in triples})
  random.shuffle(entities)
  random.shuffle(relations)
  path = openke(
    folder,
    {label: i for i, label in enumerate(entities)},
    {label: i for i, label in enumerate(relations)},
    triples,
  )
  assert read(path)[0] == triples


@pytest.mark.parametrize(
  ('name', 'old', 'new', 'parts'),
  [
    ('train2id.txt', '2\n', '3\n', ['line 1 states 3', '2 follow']),
    ('train2id.txt', '0 1 0', '0 5 0', [':2: ', "'0 5 0'", 'id 5']),
    ('train2id.txt', '0 1 0', '0 1', [':2: ', 'got 2 fields']),
    ('train2id.txt', '2\n', 'x\n', [':1: ', 'the number of lines']),
    ('entity2id.txt', 'b\t1', 'b', [':3: ', 'a label, a tab and an id']),
    ('entity2id.txt', 'b\t1', 'b\t0', [':3: ', 'id 0', 'earlier']),
    ('entity2id.txt', 'b\t1', 'a\t1', [':3: ', 'line 2 has']),
    ('relation2id.txt', '1\n', '4\n', ['line 1 states 4', '1 follow']),
  ],
)
def test_bad_openke(tmp_path, name, old, new, parts):
  triples = [('a', 'r', 'b'), ('b', 'r', 'a')]
  path = openke(tmp_path, {'a': 0, 'b': 1}, {'r': 0}, triples)
  changed = tmp_path / name
  changed.write_text(changed.read_text().replace(old, new, 1))
  message = error_of(path)
  assert message.startswith(str(changed))
  for part in parts:
    assert part in message
