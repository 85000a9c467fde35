"""Tests that readers give exact labels, or errors with file and line."""

import contextlib
import csv
import gzip
import io
import json

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

import coke_jax
from coke_jax.data import text_files
from coke_jax.data.formats import options, readers, rows

ODD = [
  'a',
  'NA',
  'nan',
  'null',
  'None',
  '007',
  '1e5',
  '-0.0',
  'True',
  ' leading and trailing ',
  '"quoted"',
  '"half quoted',
  'in"side',
  '""',
  "it's",
  'with, comma',
  'with; semicolon',
  '#comment',
  '\\N',
  'back\\slash',
  'Zürich',
  'Zu\u0308rich',
  '🂡',
  'no\u00a0break',
  'nul\x00inside',
  'line\u2028separator',
  'next\x85line',
  'inner\ufeffmark',
  'https://example.org/a?b=c&d#e',
]
LABELS = st.one_of(
  st.sampled_from(ODD),
  st.text(
    st.characters(exclude_categories=['Cs'], exclude_characters='\t\n\r\ufeff'),
    min_size=1,
    max_size=6,
  ),
)
TRIPLES = st.lists(st.tuples(LABELS, LABELS, LABELS), min_size=1, max_size=12)


def read(data, **changes):
  """Reads a source. Returns the labels of its triples, and the log."""
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  chosen = options.Options(**changes)
  source = readers.open_source(data, chosen)
  triples, numbers = rows.collect(source, entities, relations, chosen)
  assert triples.dtype == np.int32
  assert triples.shape == (len(numbers), 3)
  names, kinds = list(entities), list(relations)
  assert set(triples[:, [0, 2]].ravel().tolist()) == set(range(len(names)))
  assert set(triples[:, 1].tolist()) == set(range(len(kinds)))
  left = sum(source.log.left_out.values())
  assert source.log.rows == len(triples) + left
  labels = [(names[h], kinds[r], names[t]) for h, r, t in triples.tolist()]
  return labels, source.log


def write(folder, name, content):
  path = folder / name
  data = content.encode() if isinstance(content, str) else content
  path.write_bytes(data)
  return path


def as_csv(triples, header=None, **dialect):
  """Returns the bytes of a CSV file."""
  out = io.StringIO(newline='')
  writer = csv.writer(out, **dialect)
  writer.writerows([header, *triples] if header else triples)
  return out.getvalue().encode()


def error_of(data, **changes):
  with pytest.raises(text_files.DataError) as caught:
    read(data, **changes)
  return str(caught.value)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp('formats')


# ------------------------------------------------------------------ CSV and TSV


@hypothesis.settings(deadline=None)
@hypothesis.given(
  TRIPLES,
  st.sampled_from([',', ';', '|', '\t', ' ', '§']),
  st.sampled_from(['"', "'"]),
  st.sampled_from(['\n', '\r\n']),
  st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
  st.booleans(),
)
def test_csv(folder, triples, delimiter, quote, end, quoting, mark):
  data = as_csv(
    triples,
    header=('head', 'relation', 'tail'),
    delimiter=delimiter,
    quotechar=quote,
    lineterminator=end,
    quoting=quoting,
  )
  path = write(folder, 'a.csv', (b'\xef\xbb\xbf' if mark else b'') + data)
  labels, log = read(path, delimiter=delimiter, quote=quote)
  assert labels == triples
  assert log.left_out == {}
  assert log.header == ('head', 'relation', 'tail')


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.sampled_from(['\t', '||', ' :: ']))
def test_tsv_is_split_at_the_delimiter_only(folder, triples, delimiter):
  lines = [delimiter.join(triple) for triple in triples]
  fields = [line.split(delimiter) for line in lines]
  # Discards labels such as 'a|': '||' splits 'a|||b' into 'a' and '|b'.
  hypothesis.assume([tuple(row) for row in fields] == triples)
  path = write(folder, 'a.tsv', '\n'.join(lines))
  labels, log = read(path, delimiter=delimiter, header='no')
  assert labels == triples
  assert log.header == ()


def test_a_quoted_label_may_have_a_line_break(folder):
  path = write(folder, 'a.csv', 'a,r,"b\nc"\nd,r,e\n')
  message = error_of(path)
  assert message.startswith(f'{path}:1: ')
  assert 'line break' in message
  labels, _ = read(path, escape_labels=True)
  assert labels == [('a', 'r', 'b\\nc'), ('d', 'r', 'e')]
  labels, log = read(path, on_bad_line='skip')
  assert labels == [('d', 'r', 'e')]
  assert list(log.left_out.values()) == [1]


@pytest.mark.parametrize(
  ('header', 'columns'),
  [
    ('tail,relation,head', ()),
    ('OBJECT,Predicate,subject', ()),
    ('t,r,h', ()),
    ('x,y,z', ('z', 'y', 'x')),
    ('3,2,1', ('3', '2', '1')),  # Positions, unless header is 'yes'.
  ],
)
def test_columns_by_name(folder, header, columns):
  path = write(folder, 'a.csv', f'{header}\nb,r,a\n')
  labels, log = read(path, columns=columns)
  if columns[:1] == ('3',):
    assert labels == [('1', '2', '3'), ('a', 'r', 'b')]
    labels, log = read(path, columns=columns, header='yes')
    assert labels == [('b', 'r', 'a')]
  else:
    assert labels == [('a', 'r', 'b')]
  assert log.header == tuple(header.split(','))


def test_other_columns_are_not_read(folder):
  text = 'source,head,relation,tail,year\nx,a,r,b,1\ny,c,r,d,\n'
  labels, log = read(write(folder, 'a.csv', text))
  assert labels == [('a', 'r', 'b'), ('c', 'r', 'd')]
  assert log.ignored_columns == ('source', 'year')
  path = write(folder, 'b.tsv', 'a\tb\tr\tx\n')
  assert read(path, columns=('1', '3', '2'))[0] == [('a', 'r', 'b')]


def test_weights(folder):
  text = 'head,relation,tail,score\na,r,b,.5\na,r,c,.49\na,r,d,1e3\n'
  path = write(folder, 'a.csv', text)
  labels, log = read(path, weight='score', min_weight=0.5)
  assert labels == [('a', 'r', 'b'), ('a', 'r', 'd')]
  assert log.left_out == {'weight below 0.5': 1}
  assert log.examples == {'weight below 0.5': f'{path}:3'}
  assert read(path, weight='4', header='yes', min_weight=0.5)[0] == labels
  path = write(folder, 'b.tsv', '1\ta\tr\tb\n0\tc\tr\td\n')
  assert read(path, weight='1', min_weight=1)[0] == [('a', 'r', 'b')]
  path = write(folder, 'c.csv', 'x,y,z,w\na,r,b,1\n')
  assert read(path, weight='w')[0] == [('a', 'r', 'b')]


def test_labels_of_any_allowed_length(folder):
  label = 'b' * (1 << 18)
  for name, text in (
    ('long.csv', f'a,r,{label}\n'),
    ('long.tsv', f'a\tr\t{label}\n'),
  ):
    assert read(write(folder, name, text))[0] == [('a', 'r', label)]


@pytest.mark.parametrize(
  ('text', 'changes', 'parts'),
  [
    ('a,r,b\na,r\n', {}, [':2: ', "'a,r'", 'expected 3 fields', 'got 2']),
    ('a,r,b\n\na,,b\n', {}, [':3: ', "('a', '', 'b')", 'empty or missing']),
    ('a,r,b\n"a,r,b\n', {}, [':2: ', "'\"a,r,b'", 'unexpected end of data']),
    ('a,r,b\n"a"x,r,b\n', {}, [':2: ', "expected after '\"'"]),
    ('a;r;b\n', {}, [':1: ', "--column-delimiter=';'"]),
    (
      'head,relation,tail\n',
      {'columns': ('head', 'relatoin', 'tail')},
      [':1: ', "no column 'relatoin'", "did you mean 'relation'"],
    ),
    ('a,r,b,c\n', {}, [':1: ', "'a', 'r', 'b', 'c'", '--columns=']),
    ('a,r,b\n', {'columns': ('1', '2', '4')}, [':1: ', "'4'", '1 to 3']),
    ('a,a,b\n', {'columns': ('a', 'x', 'b')}, [':1: ', 'more than one column']),
    (
      'head,relation,tail,w\na,r,b,much\n',
      {'weight': 'w'},
      [':2: ', "'much'", 'expected a number'],
    ),
    ('a,r,b\na,r,\ufeffb\n', {}, [':2: ', 'byte-order mark']),
    ('a,r,b'.encode('utf-16'), {}, [':1: ', 'UTF-16']),
    (b'a,r,b\na,r,\xff\n', {}, [':2: ', '0xff', 'column 5', 'not UTF-8']),
    ('a,r,b\rc,r,d\r', {}, [':1: ', 'new-line character']),
    ('a,r,' + 'b' * 300_000, {}, [':1: ', 'of more than 262,144 characters']),
    ('a,r,"b\n' + 'b\n' * 200_000, {}, [':1: ', 'at the end of each field']),
    ('a,r,' + 'ß' * 140_000, {}, [':1: ', 'is a label of 280,000 bytes']),
    ('a\tr\t' + 'b' * 300_000, {'format': 'tsv'}, [':1: ', '300,000 bytes']),
    ('a,r,' + 'b' * (1 << 20), {}, [':1: ', 'longer than 1,048,576 bytes']),
  ],
)
def test_errors_name_file_line_and_value(folder, text, changes, parts):
  path = write(folder, 'wrong.csv', text)
  message = error_of(path, **changes)
  assert message.startswith(str(path))
  for part in parts:
    assert part in message


def test_bad_rows_are_left_out_and_counted(folder):
  text = (
    b'a,r,b\n\na,r\n"open,r,b\na,,b\na,r,\xff\n"x"y,r,b\nc,r,d\n"open,r,d\n'
  )
  path = write(folder, 'a.csv', text)
  labels, log = read(path, on_bad_line='skip')
  assert labels == [('a', 'r', 'b'), ('c', 'r', 'd')]
  assert log.left_out == {
    'blank line': 1,
    'wrong number of fields': 1,
    'wrong quoting': 3,
    'empty or missing label': 1,
    'not UTF-8': 1,
  }
  assert log.examples['wrong quoting'] == f'{path}:4'
  assert '3 left out: wrong quoting (first: ' in str(log)


@hypothesis.settings(deadline=None)
@hypothesis.given(st.binary(max_size=200))
def test_any_bytes_give_rows_or_an_error(folder, data):
  for name in ('a.csv', 'a.tsv', 'a.jsonl'):
    path = write(folder, name, data)
    for remedy in options.BAD_ROWS:
      with contextlib.suppress(text_files.DataError):
        read(path, on_bad_line=remedy)


def test_compressed_files(folder):
  path = write(folder, 'a.csv.gz', gzip.compress(b'a,r,b\n'))
  assert read(path)[0] == [('a', 'r', 'b')]
  path = write(folder, 'b.csv.gz', gzip.compress(b'a,r,b\n')[:-3])
  assert 'end too early' in error_of(path)
  path = write(folder, 'c.csv', gzip.compress(b'a,r,b\n'))
  assert f'{path}: is compressed with gzip: expected' in error_of(path)


# ------------------------------------------------------------------- JSON lines


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.booleans(), st.booleans())
def test_json_lines(folder, triples, ascii_only, arrays):
  keys = ('object', 'subject', 'predicate')
  lines = []
  for h, r, t in triples:
    value = dict(zip(keys, (t, h, r), strict=True), extra=[1])
    lines.append(
      json.dumps([h, r, t] if arrays else value, ensure_ascii=ascii_only)
    )
  path = write(folder, 'a.jsonl', '\n'.join(lines))
  labels, log = read(path)
  assert labels == triples
  assert log.ignored_columns == (() if arrays else ('extra',))


def test_numbers_in_json_are_labels_as_written(folder):
  path = write(folder, 'a.jsonl', '[1, 1.0, 1e2]\n[12345678901234567890, 1, 2]')
  assert read(path)[0] == [
    ('1', '1.0', '1e2'),
    ('12345678901234567890', '1', '2'),
  ]


@pytest.mark.parametrize(
  ('line', 'parts'),
  [
    ('{"head": "a", "relation": "r"}', ['the keys head, relation, tail']),
    ('{"head": "a", "relation": "r", "tail": null}', ['empty or missing']),
    ('{"head": "a", "relation": "r", "tail": true}', ['bool', 'a text']),
    ('{"head": "a", "relation": "r", "tail": ["b"]}', ['list', 'a text']),
    ('{"head": "a", "relation": "r", "tail": "\\ud800"}', ['surrogate']),
    ('{"head": "a", "relation": "r", "tail": "a\\tb"}', ['a tab']),
    ('{"head": "a", "head": "b", "relation": "r", "tail": "t"}', ['twice']),
    ('["a", "r", "b"]', ['expected an object, as in the first line']),
    ('{"head": "a"', ['column 13', 'expected one JSON object or array']),
    ('[' * 100_000, ['expected an object, as in the first line']),
    ('7', ['expected an object, as in the first line']),
  ],
)
def test_bad_json(folder, line, parts):
  good = '{"head": "a", "relation": "r", "tail": "b"}'
  path = write(folder, 'wrong.jsonl', f'{good}\n\n{line}\n{good}\n')
  message = error_of(path)
  assert message.startswith(f'{path}:3: ')
  for part in parts:
    assert part in message
  labels, log = read(path, on_bad_line='skip')
  assert labels == [('a', 'r', 'b')] * 2
  assert sum(log.left_out.values()) == 2


@pytest.mark.parametrize(
  ('line', 'changes', 'part'),
  [
    ('{"head": 1}', {}, 'expected an array, as in the first line'),
    ('[1, 2]', {'columns': ('1', '2', '4')}, 'expected at least 4 items'),
    ('', {'columns': ('a', 'b', 'c')}, 'because the columns have no names'),
    ('', {'columns': ()}, "(in Python: columns=['1', '2', '3'])"),
  ],
)
def test_arrays_have_no_column_names(folder, line, changes, part):
  path = write(folder, 'wrong.jsonl', f'["a", "r", "b", "c"]\n{line}\n')
  message = error_of(path, **{'columns': ('1', '2', '3'), **changes})
  assert part in message
  assert 'column names' not in message


def test_triples_of_a_set_are_sorted():
  """The order of a set of texts differs between processes."""
  triples = {(f'e{i}', 'r', i % 5) for i in range(40)}
  for data in (triples, frozenset(triples)):
    source = readers.open_source(data, options.Options())
    assert [tuple(row) for _, row in source.rows] == sorted(triples, key=repr)


def test_column_names_in_the_first_row_of_an_iterable():
  rows = [
    ['head', 'tail', 'relation'],
    *(['a', f'b{i}', 'r'] for i in range(9)),
  ]
  (note,) = coke_jax.prepare(rows).notes
  assert note.startswith("triples: the labels 'tail', 'head' and 'relation'")
  assert "header='yes'" in note
  assert coke_jax.prepare(iter(rows), header='no').notes == ()
  assert coke_jax.prepare(rows[1:]).notes == ()
  for data in (iter(rows), np.array(rows)):
    prepared = coke_jax.prepare(data, header='yes')
    assert prepared.notes == ()
    assert prepared.graph.vocabulary.relations == ('r',)
    assert prepared.sources[0].header == ('head', 'tail', 'relation')
  rows[0] = ['person', 'friend', 'knows']
  prepared = coke_jax.prepare(
    rows, header='yes', columns=['person', 'knows', 'friend']
  )
  assert prepared.graph.vocabulary.relations == ('r',)


def test_advice_about_labels_names_a_command_that_works(tmp_path):
  path = tmp_path / 'a.csv'
  path.write_text('"a\nb",r,c\n')
  with pytest.raises(coke_jax.CokeError) as caught:
    coke_jax.prepare(path)
  expected = 'coke prepare with --escape-labels and --output=FOLDER'
  assert expected in str(caught.value)


def test_positions_beside_names_that_are_numbers(tmp_path):
  """Data frames without column names are written with the names 0, 1, 2."""
  path = tmp_path / 'a.csv'
  path.write_text('0,1,2\na,b,r\nc,a,r\n')
  relations = {
    columns: coke_jax.prepare(
      path, header='yes', columns=columns
    ).graph.vocabulary.relations
    for columns in ('1,3,2', '0,2,1', '3,1,2')
  }
  assert relations == {'1,3,2': ('r',), '0,2,1': ('r',), '3,1,2': ('a', 'c')}
  path.write_text('head,tail,relation\na,b,r\n')
  with pytest.raises(coke_jax.CokeError, match='a column twice'):
    coke_jax.prepare(path, columns='head,1,tail')
