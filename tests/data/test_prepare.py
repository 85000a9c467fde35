"""Tests `coke_jax.prepare` and the command `coke prepare`."""

import json
import os
import pathlib

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from test_formats import TRIPLES

import coke_jax
from coke_jax.cli import commands, flags
from coke_jax.data import (
  benchmarks,
  prepared_files,
  reading,
  reading_cache,
  text_files,
  triple_files,
)
from coke_jax.data import graph as graph_lib
from coke_jax.data.formats import options as options_lib

AWKWARD = st.text(
  st.one_of(
    st.sampled_from('\t\n\r\\\ufeffntru'),
    st.characters(exclude_categories=['Cs']),
  ),
  min_size=1,
  max_size=5,
)


def labels(graph, split):
  """Returns the triples of a split as labels."""
  words = graph.vocabulary
  return [
    (words.entities[h], words.relations[r], words.entities[t])
    for h, r, t in graph.split(split).tolist()
  ]


def unescape(label):
  r"""Decodes the escapes \t, \n, \r, \\ and \ufeff, from left to right."""
  found = ''
  while label:
    for text, meaning in (
      ('\\\\', '\\'),
      ('\\t', '\t'),
      ('\\n', '\n'),
      ('\\r', '\r'),
      ('\\ufeff', '\ufeff'),
      (label[0], label[0]),
    ):
      if label.startswith(text):
        found, label = found + meaning, label[len(text) :]
        break
  return found


def all_labels(graph):
  return [row for split in graph_lib.SPLITS for row in labels(graph, split)]


def ring(size=60):
  """Returns the triples of a graph without leaks."""
  return [
    (f'e{i}', f'r{step}', f'e{(i + step) % size}')
    for step in (1, 2, 3)
    for i in range(size)
  ]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  return tmp_path_factory.mktemp('prepared')


def prepare_command(**changes):
  """Runs `coke prepare` with `changes`, and defaults for all other flags."""
  defaults = {
    flag.name: flag.default for flag in flags.TABLE if 'prepare' in flag.modes
  }
  commands.COMMANDS['prepare'].function(None, '', **{**defaults, **changes})


@hypothesis.settings(deadline=None)
@hypothesis.given(TRIPLES, st.integers(0, 3))
def test_the_written_folder_is_the_graph(folder, triples, seed):
  prepared = coke_jax.prepare(
    triples, folder / 'a', seed=seed, test_share=0.3, overwrite=True
  )
  layout = triple_files.TripleFormat()
  read = triple_files.read_graph(folder / 'a', 'a', layout)
  assert read.vocabulary == prepared.graph.vocabulary
  for split in graph_lib.SPLITS:
    assert np.array_equal(read.split(split), prepared.graph.split(split))
  assert sorted(all_labels(read)) == sorted(set(triples))
  (source,) = prepared.sources
  assert source.rows == len(triples)
  assert source.left_out.get('duplicate', 0) == len(triples) - len(set(triples))
  assert not prepared.graph.has_unseen_entity(
    read.triples(*graph_lib.SPLITS)
  ).any()


@hypothesis.settings(deadline=None)
@hypothesis.given(st.lists(st.tuples(AWKWARD, AWKWARD, AWKWARD), min_size=1))
def test_escaped_labels_can_be_written_and_stay_distinct(folder, triples):
  prepared = coke_jax.prepare(
    triples, folder / 'b', escape_labels=True, overwrite=True
  )
  read = triple_files.read_graph(folder / 'b', 'b', triple_files.TripleFormat())
  assert all_labels(read) == all_labels(prepared.graph)
  back = {tuple(map(unescape, row)) for row in all_labels(read)}
  assert back == set(triples)
  words = read.vocabulary
  assert words.num_entities == len({e for h, _, t in triples for e in (h, t)})
  assert words.num_relations == len({r for _, r, _ in triples})
  assert len(all_labels(read)) == len(set(triples))


def test_duplicates_are_dropped_or_stay_together():
  triples = [*ring(), *ring(), ('e1', 'r1', 'e0'), ('e1', 'r1', 'e2')]
  dropped = coke_jax.prepare(triples, test_share=0.2)
  assert dropped.sources[0].left_out == {'duplicate': 181}
  assert dropped.sources[0].examples == {'duplicate': 'triples, number 181'}
  kept = coke_jax.prepare(triples, test_share=0.2, duplicates='keep')
  assert sorted(all_labels(kept.graph)) == sorted(triples)
  assert kept.leaks.in_train == {'valid': 0, 'test': 0}
  assert kept.graph.num_distinct('test') < len(kept.graph.test)


def test_pairs_stay_together():
  triples = [*ring(), *((t, f'not {r}', h) for h, r, t in ring())]
  alone = coke_jax.prepare(triples, test_share=0.2)
  assert alone.leaks.given_away['inverse']['test'] > 20
  assert {leak.kind for leak in alone.leaks.relations} == {'inverse'}
  together = coke_jax.prepare(triples, test_share=0.2, keep_together='pairs')
  assert len(together.graph.test) > 60
  assert together.leaks.given_away['any'] == {'valid': 0, 'test': 0}
  assert together.leaks.linked['any'] == {'valid': 0, 'test': 0}


def test_given_splits_are_kept(tmp_path):
  train, test = ring(), [('e0', 'r1', 'e5'), ('new', 'r1', 'e5')]
  prepared = coke_jax.prepare(train, test=test)
  assert labels(prepared.graph, 'train') == train
  assert labels(prepared.graph, 'test') == test
  assert len(prepared.graph.valid) == 0
  assert prepared.leaks.unseen_entities == {'valid': 0, 'test': 1}
  source = tmp_path / 'source'
  source.mkdir()
  for split, rows in (('train', train), ('dev', []), ('test', test)):
    text = ''.join(','.join(row) + '\n' for row in rows)
    (source / f'{split}.csv').write_text(text)
  (source / 'notes.txt').write_text('not read')
  again = coke_jax.prepare(source, tmp_path / 'made')
  assert all_labels(again.graph) == all_labels(prepared.graph)
  assert [pathlib.Path(log.name).name for log in again.sources] == [
    'train.csv',
    'dev.csv',
    'test.csv',
  ]
  (source / 'test.tsv').write_text('')
  with pytest.raises(text_files.DataError, match='more than one file of test'):
    coke_jax.prepare(source)


def test_openke_folder(tmp_path):
  (tmp_path / 'entity2id.txt').write_text('2\na\t0\nb\t1\n')
  (tmp_path / 'relation2id.txt').write_text('1\nr s\t0\n')
  (tmp_path / 'train2id.txt').write_text('1\n0 1 0\n')
  (tmp_path / 'test2id.txt').write_text('1\n1 0 0\n')
  prepared = coke_jax.prepare(tmp_path)
  assert labels(prepared.graph, 'train') == [('a', 'r s', 'b')]
  assert labels(prepared.graph, 'test') == [('b', 'r s', 'a')]


def test_a_named_data_set():
  prepared = coke_jax.prepare('countries')
  assert prepared.graph.name == 'countries'
  assert len(prepared.graph.test) == benchmarks.BENCHMARKS['countries'].lines[2]
  assert prepared.leaks.linked['any'] == {'valid': 0, 'test': 0}


def test_a_small_split_is_noted():
  chain = [(f'e{i}', 'r', f'e{i + 1}') for i in range(30)]
  prepared = coke_jax.prepare(chain, test_share=0.5)
  assert 'test has ' in prepared.notes[-1]
  assert 'instead of 15' in prepared.notes[-1]
  assert f'note: {prepared.notes[-1]}' in str(prepared)


def test_columns_with_unknown_names_are_noted():
  pandas = pytest.importorskip('pandas')
  names = ['tail_entity', 'rel', 'head_entity']
  frame = pandas.DataFrame(ring(), columns=names)
  (note,) = coke_jax.prepare(frame).notes
  assert note.startswith(
    "data frame: the columns 'tail_entity', 'rel', 'head_entity' were read as "
    'head, relation and tail, in this order.'
  )
  assert coke_jax.prepare(frame, columns=names).notes == ()
  frame.columns = ['head', 'relation', 'tail']
  assert coke_jax.prepare(frame).notes == ()


def test_a_header_that_was_read_as_a_triple_is_noted(tmp_path):
  path = tmp_path / 'a.csv'
  rows = ''.join(','.join(row) + '\n' for row in ring())
  path.write_text('person,knows,friend\n' + rows)
  (note,) = coke_jax.prepare(path).notes
  assert f"{path}: the labels 'knows', 'person' and 'friend'" in note
  assert coke_jax.prepare(path, header='no').notes == ()
  (note,) = coke_jax.prepare(path, header='yes').notes
  assert "the columns 'person', 'knows', 'friend' were read as head" in note
  # One of the three names is also the label of an entity.
  path.write_text('person,knows,friend\n' + rows + 'friend,likes,a\n')
  (note,) = coke_jax.prepare(path).notes
  assert f"{path}: the labels 'knows' and 'person' of the first row" in note
  path.write_text(rows)
  assert coke_jax.prepare(path).notes == ()


def test_quoted_labels_are_noted(tmp_path):
  path = tmp_path / 'a.tsv'
  path.write_text('"a"\tr\t"b"\n')
  prepared = coke_jax.prepare(path)
  assert '2 labels start and end with a quote, such as \'"a"\'' in str(prepared)
  assert coke_jax.prepare(path, quote='"').graph.vocabulary.entities == (
    'a',
    'b',
  )


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
  ('source', 'changes', 'part'),
  [
    ([], {}, 'triples: no triple is left of 0 rows'),
    ([('a', 'r', '')], {'on_bad_line': 'skip'}, '1 left out: empty'),
    ('no/where.csv', {}, 'no/where.csv: no such file or folder'),
    (pathlib.Path('no/where.csv'), {}, 'no/where.csv: no such file'),
    ('{folder}', {}, 'no file of train'),
    ('{folder}', {'test': [('a', 'r', 'b')]}, 'expected a file of train'),
    ('{folder}/a.xlsx', {}, 'pass the data frame to coke_jax'),
    ('{folder}/a.csv', {'columns': (1, 2)}, 'expected three different columns'),
    ('{folder}/a.csv', {'columns': 3}, 'columns is 3'),
    ('{folder}/a.csv', {'valid_share': '0.1'}, "valid_share is '0.1'"),
    ('{folder}/a.csv', {'seed': 1.5}, 'seed is 1.5'),
    (None, {}, 'the source is None'),
    (None, {'valid': [('a', 'r', 'b')]}, 'the source is None'),
    ('{folder}/a.csv', {'columns': (1, 2, 2)}, 'different columns'),
    ('{folder}/a.csv', {'format': 'xml'}, "format is 'xml'"),
    ('{folder}/a.csv', {'delimiter': '||'}, "delimiter is '||'"),
    ('{folder}/a.csv', {'quote': 'no'}, "quote is 'no'"),
    ('{folder}/a.csv', {'duplicates': 'no'}, "duplicates is 'no'"),
    ('{folder}/a.csv', {'test_share': 2}, 'test_share is 2'),
    ('{folder}/a.csv', {'header': 'perhaps'}, "header is 'perhaps'"),
    ('{folder}/a.csv', {'min_weight': 0.5}, 'min_weight is 0.5 and weight'),
  ],
)
def test_errors(tmp_path, source, changes, part):
  (tmp_path / 'a.csv').write_text('a,r,b\n')
  (tmp_path / 'a.xlsx').write_text('')
  if isinstance(source, str):
    source = source.replace('{folder}', str(tmp_path))
  with pytest.raises(text_files.DataError) as caught:
    coke_jax.prepare(source, tmp_path / 'made', **changes)
  assert part in str(caught.value)
  assert not (tmp_path / 'made').exists()


def test_an_unknown_option_is_an_error():
  with pytest.raises(TypeError, match=r'delimeter: expected .*, valid_share'):
    coke_jax.prepare(ring(), delimeter=',')


def test_files_are_only_overwritten_on_request(tmp_path):
  coke_jax.prepare(ring(), tmp_path)
  before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
  assert set(before) == {'train.txt', 'valid.txt', 'test.txt', 'report.json'}
  with pytest.raises(text_files.DataError, match='exists'):
    coke_jax.prepare(ring(70), tmp_path)
  bad = [*ring(70), ('a', 'r', 'b\tc')]
  with pytest.raises(text_files.DataError, match='number 211'):
    coke_jax.prepare(bad, tmp_path, overwrite=True)
  with pytest.raises(text_files.DataError, match='both read and written'):
    coke_jax.prepare(tmp_path / 'train.txt', tmp_path, overwrite=True)
  assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
  coke_jax.prepare(ring(70), tmp_path, overwrite=True)
  assert (tmp_path / 'train.txt').read_bytes() != before['train.txt']
  (tmp_path / 'dev.tsv').write_text('')
  with pytest.raises(text_files.DataError, match=r'dev\.tsv: exists'):
    coke_jax.prepare(ring(), tmp_path, overwrite=True)


def test_links_in_the_folder_stay(tmp_path):
  folder = tmp_path / 'made'
  coke_jax.prepare(ring(), folder)
  (folder / 'train.txt').rename(tmp_path / 'elsewhere')
  (folder / 'train.txt').symlink_to(tmp_path / 'elsewhere')
  coke_jax.prepare(ring(70), folder, overwrite=True)
  assert (folder / 'train.txt').is_symlink()
  read = triple_files.read_graph(folder, 'a', triple_files.TripleFormat())
  assert sorted(all_labels(read)) == sorted(ring(70))


def test_a_failed_write_leaves_no_mixture(tmp_path, monkeypatch):
  """After a failed write, all files are unchanged."""
  coke_jax.prepare(ring(), tmp_path)
  monkeypatch.setattr(prepared_files, 'to_text', lambda report: 1 / 0)
  with pytest.raises(ZeroDivisionError):
    coke_jax.prepare(ring(70), tmp_path, overwrite=True)
  read = triple_files.read_graph(tmp_path, 'a', triple_files.TripleFormat())
  assert sorted(all_labels(read)) == sorted(ring())
  assert not [path for path in tmp_path.iterdir() if path.name[0] == '.']


# --------------------------------------------------------------------- command


def test_the_command(tmp_path, capsys):
  source = tmp_path / 'mine.csv'
  rows = ''.join(f'{h};{r};{t};{i % 2}\n' for i, (h, r, t) in enumerate(ring()))
  source.write_text(f'h;r;t;sure\n{rows};;;1\n')
  prepare_command(
    input=str(source),
    output=str(tmp_path / 'made'),
    report=str(tmp_path / 'copy.json'),
    column_delimiter=';',
    weight='sure',
    min_weight=1.0,
    on_bad_line='skip',
    seed=3,
  )
  printed = capsys.readouterr().out
  assert '181 rows, 91 left out' in printed
  assert '90 left out: weight below 1 (first: ' in printed
  assert f'train with: coke train {tmp_path / "made"}' in printed
  report = json.loads((tmp_path / 'made' / 'report.json').read_text())
  assert report == json.loads((tmp_path / 'copy.json').read_text())
  assert report['sources'][0]['left_out'] == {
    'weight below 1': 90,
    'empty or missing label': 1,
  }
  assert report['leaks']['given_away']['any'] == {'valid': 0, 'test': 0}
  assert sum(report['triples'].values()) == 90


def test_the_report_is_written_through_a_link(tmp_path):
  (tmp_path / 'mine.txt').write_text('a\tr\tb\n')
  (tmp_path / 'link').symlink_to('report.json')
  prepare_command(
    input=str(tmp_path / 'mine.txt'), report=str(tmp_path / 'link')
  )
  assert (tmp_path / 'link').is_symlink()
  assert json.loads((tmp_path / 'report.json').read_text())['entities'] == 2


def test_the_command_without_output_writes_nothing(tmp_path, capsys):
  source = tmp_path / 'mine.txt'
  source.write_text('a\tr\tb\n')
  prepare_command(input=str(source))
  assert 'no triples are written' in capsys.readouterr().out
  assert os.listdir(tmp_path) == ['mine.txt']
  for wrong in ({'input': '-'}, {'report': str(source)}):
    with pytest.raises(coke_jax.CokeError, match='expected'):
      prepare_command(**{'input': str(source), **wrong})
  assert source.read_text() == 'a\tr\tb\n'


@pytest.fixture
def standard_input():
  """Replaces standard input by a pipe, and yields the writing end."""
  original = os.dup(0)
  reading, writing = os.pipe()
  os.dup2(reading, 0)
  os.close(reading)
  with os.fdopen(writing, 'w') as stream:
    yield stream
  os.dup2(original, 0)
  os.close(original)


def test_standard_input(standard_input, capsys):
  standard_input.write('a,r,b\na,r\n')
  standard_input.close()
  prepare_command(input='-', input_format='csv', on_bad_line='skip')
  printed = capsys.readouterr().out
  assert '/dev/stdin: 2 rows, 1 left out' in printed
  with pytest.raises(coke_jax.CokeError, match='--input-format'):
    prepare_command(input='-')


@pytest.mark.parametrize(
  ('name', 'linked', 'given_away'),
  [('FB15k', 45_678, 43_625), ('FB15k-237', 0, 0)],
)
def test_published_counts_of_given_away_triples(name, linked, given_away):
  path = pathlib.Path(os.environ.get('COKE_DATA_DIR', '')) / name
  if not path.is_dir():
    pytest.skip(f'needs {name} in COKE_DATA_DIR')
  report = coke_jax.prepare(name).leaks
  assert report.linked['reverse']['test'] == linked
  assert report.given_away['any']['test'] == given_away


def test_a_large_file_is_read_from_the_cache(tmp_path, monkeypatch):
  """With min_bytes=0, every file is large enough for the cache."""
  facts = tmp_path / 'facts.tsv'
  facts.write_text('head\trelation\ttail\n"a"\tr\tb\nb\tr\tc\nb\tr\tc\n')
  options = options_lib.Options()
  parts = {'train': str(facts)}

  def read(chosen=options):
    return reading_cache.read(
      parts, chosen, 'drop', cache_folder=tmp_path / 'cache', min_bytes=0
    )

  def fail(*_, **__):
    raise AssertionError('parsed the file again')

  expected = reading.read(parts, options, 'drop')
  assert_same_read(read(), expected)
  with monkeypatch.context() as patched:
    patched.setattr(reading, 'read', fail)
    assert_same_read(read(), expected)
    with pytest.raises(AssertionError, match='again'):
      read(options_lib.Options(quote='"'))
  facts.write_text('a\tr\tb\n')
  assert len(read().splits['train']) == 1
  assert len(list((tmp_path / 'cache').iterdir())) == 2


def assert_same_read(found, expected):
  assert found.vocabulary == expected.vocabulary
  assert found.splits.keys() == expected.splits.keys()
  for split, triples in expected.splits.items():
    np.testing.assert_array_equal(found.splits[split], triples)
  assert found.sources == expected.sources
  assert found.notes == expected.notes
