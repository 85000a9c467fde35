"""Tests that triple files are read exactly or raise an error."""

import bz2
import gzip
import lzma
import pathlib
import re
import tempfile
import zlib
from collections.abc import Callable

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st

from coke_jax.data import compression, text_files, triple_files

COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
  '': bytes,
  '.gz': gzip.compress,
  '.bz2': bz2.compress,
  '.xz': lzma.compress,
}
LABELS = [
  'a',
  'NA',
  'nan',
  'NaN',
  'null',
  'None',
  '',  # NAMED leaves this label out.
  '007',
  '1e5',
  '-0.0',
  'True',
  ' leading and trailing ',
  '"quoted"',
  '"half quoted',
  "it's",
  '#comment',
  '\\N',
  'back\\tslash',
  'Zürich',
  'Zu\u0308rich',  # Looks like the label above, but ü has two characters.
  '東京',
  '🂡',
  'no\u00a0break',
  'zero\u200bwidth',
  'inner\ufeffmark',
  'nul\x00inside',
  'bell\x07',
  'escape\x1b[0m',
  'vertical\x0btab',
  'form\x0cfeed',
  'group\x1cseparator',
  'next\x85line',
  'line\u2028separator',
  'inner\rreturn',
  '/people/person/place_of_birth',
  'https://example.org/a?b=c&d#e',
]
NAMED = [label for label in LABELS if label]


def read(
  path: pathlib.Path, **layout: object
) -> tuple[
  list[tuple[str, str, str]], text_files.LabelIndex, text_files.LabelIndex
]:
  """Returns the triples of a file as labels, and both label indices."""
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  triples = triple_files.read_triples(
    path, entities, relations, triple_files.TripleFormat(**layout)
  )
  assert triples.dtype == np.int32
  assert triples.ndim == 2
  assert triples.shape[1] == 3
  names, kinds = list(entities), list(relations)
  assert list(entities.values()) == list(range(len(entities)))
  assert list(relations.values()) == list(range(len(relations)))
  read_back = [(names[h], kinds[r], names[t]) for h, r, t in triples.tolist()]
  return read_back, entities, relations


def write(folder: pathlib.Path, data: bytes, name: str = 'train.txt'):
  path = folder / name
  path.write_bytes(data)
  return path


def error_of(path: pathlib.Path, **layout: object) -> str:
  with pytest.raises(text_files.DataError) as caught:
    read(path, **layout)
  return str(caught.value)


# ------------------------------------------------------------- what is read


@pytest.mark.parametrize('suffix', COMPRESSORS)
@pytest.mark.parametrize('end', [b'\n', b'\r\n'])
@pytest.mark.parametrize('last', [True, False])
def test_formats_and_line_ends(tmp_path, suffix, end, last):
  lines = [b'a\tr\tb', b'b\ts\ta', b'a\tr\tb']
  data = end.join(lines) + (end if last else b'')
  path = write(tmp_path, COMPRESSORS[suffix](data), 'train.txt' + suffix)
  triples, entities, relations = read(path)
  assert triples == [('a', 'r', 'b'), ('b', 's', 'a'), ('a', 'r', 'b')]
  assert dict(entities) == {'a': 0, 'b': 1}
  assert dict(relations) == {'r': 0, 's': 1}


def test_both_line_ends_in_one_file(tmp_path, caplog):
  # The third line contains a carriage return that is part of a label.
  path = write(tmp_path, b'a\tr\tb\r\nb\ts\ta\na\rb\tr\tb\nc\tr\td\r\n')
  triples, entities, _ = read(path)
  assert triples == [
    ('a', 'r', 'b'),
    ('b', 's', 'a'),
    ('a\rb', 'r', 'b'),
    ('c', 'r', 'd'),
  ]
  assert list(entities) == ['a', 'b', 'a\rb', 'c', 'd']
  assert f'{path}: 2 lines end with CR LF and 2 lines with LF' in caplog.text


@pytest.mark.parametrize('end', [b'\n', b'\r\n'])
def test_one_kind_of_line_end_gives_no_warning(tmp_path, caplog, end):
  read(write(tmp_path, end.join([b'a\rb\tr\tb', b'b\ts\ta', b''])))
  assert not caplog.text


@pytest.mark.parametrize('compress', [gzip.compress, bz2.compress])
def test_concatenated_streams_are_one_file(tmp_path, compress):
  suffix = '.gz' if compress is gzip.compress else '.bz2'
  data = compress(b'a\tr\tb\n') + compress(b'c\tr\td\n')
  triples, _, _ = read(write(tmp_path, data, 'train' + suffix))
  assert triples == [('a', 'r', 'b'), ('c', 'r', 'd')]


@pytest.mark.parametrize('suffix', COMPRESSORS)
def test_labels_are_read_exactly(tmp_path, suffix):
  wanted = [
    (head, relation, tail)
    for head, relation, tail in zip(
      NAMED, NAMED[1:] + NAMED[:1], NAMED[2:] + NAMED[:2], strict=True
    )
  ]
  text = ''.join('\t'.join(triple) + '\n' for triple in wanted)
  data = COMPRESSORS[suffix](text.encode())
  triples, _, _ = read(write(tmp_path, data, 'train' + suffix))
  assert triples == wanted


def test_labels_that_look_alike_stay_distinct(tmp_path):
  labels = ['a', 'A', ' a', 'a ', '"a"', 'a\u200b', '1', '1.0', '01']
  text = ''.join(f'{label}\tr\tx\n' for label in labels)
  triples, _, _ = read(write(tmp_path, text.encode()))
  assert [head for head, _, _ in triples] == labels


def test_entities_and_relations_may_share_labels(tmp_path):
  triples, entities, relations = read(write(tmp_path, b'x\tx\tx\n'))
  assert triples == [('x', 'x', 'x')]
  assert len(entities) == len(relations) == 1


def test_an_empty_file_holds_no_triples(tmp_path):
  triples, entities, relations = read(write(tmp_path, b''))
  assert (triples, len(entities), len(relations)) == ([], 0, 0)


def test_indices_grow_over_several_files(tmp_path):
  entities, relations = text_files.LabelIndex(), text_files.LabelIndex()
  layout = triple_files.TripleFormat()
  for number, data in enumerate([b'a\tr\tb\n', b'b\ts\tc\n']):
    path = write(tmp_path, data, f'{number}.txt')
    triples = triple_files.read_triples(path, entities, relations, layout)
  assert triples.tolist() == [[1, 1, 2]]
  assert list(entities) == ['a', 'b', 'c']


@pytest.mark.parametrize(
  'columns',
  [
    ('head', 'relation', 'tail'),
    ('head', 'tail', 'relation'),
    ('relation', 'head', 'tail'),
    ('tail', 'relation', 'head'),
  ],
)
@pytest.mark.parametrize('delimiter', ['\t', ',', ' ', ' ||| ', '→'])
@pytest.mark.parametrize('header', [False, True])
def test_layouts(tmp_path, columns, delimiter, header):
  named = [
    {'head': 'h1', 'relation': 'r1', 'tail': 't1'},
    {'head': 'h2', 'relation': 'r1', 'tail': 'h1'},
  ]
  lines = [delimiter.join(line[c] for c in columns) for line in named]
  if header:
    lines.insert(0, 'one line of any kind')
  path = write(tmp_path, ('\n'.join(lines) + '\n').encode())
  triples, _, _ = read(
    path, columns=columns, delimiter=delimiter, header=header
  )
  assert triples == [('h1', 'r1', 't1'), ('h2', 'r1', 'h1')]


def test_read_lines_counts_from_one(tmp_path):
  path = write(tmp_path, b'x\n\n y \nz')
  assert list(text_files.read_lines(path)) == [
    (1, 'x'),
    (2, ''),
    (3, ' y '),
    (4, 'z'),
  ]


# ------------------------------------------------------------------- errors


@pytest.mark.parametrize(
  ('data', 'number', 'shown', 'expectation'),
  [
    (b'a\tr\tb\na\tr\n', 2, "'a\\tr'", 'expected 3 non-empty fields'),
    (b'a\tr\tb\tc\n', 1, "'a\\tr\\tb\\tc'", 'got 4'),
    (b'a\tr\tb\n\na\tr\tb\n', 2, "''", 'expected 3 non-empty fields'),
    (b'a\tr\tb\n\n', 2, "''", 'expected 3 non-empty fields'),
    (b'a\tr\tb\n \n', 2, "' '", 'got 1'),
    (b'a\tr\tb\na\t\tb\n', 2, "'a\\t\\tb'", '1 of them empty'),
    (b'\tr\tb\n', 1, "'\\tr\\tb'", '1 of them empty'),
    (b'a\tr\t\n', 1, "'a\\tr\\t'", '1 of them empty'),
    (b'a r b\n', 1, "'a r b'", 'got 1'),
    (b'a\tr\tb\nx\tr\t\xe9\n', 2, 'xe9', 'is not UTF-8'),
    (b'a\tr\tb\nx\tr\t\xed\xa0\x80\n', 2, 'xed', 'is not UTF-8'),
    (b'\xef\xbb\xbfa\tr\tb\n', 1, '', 'byte-order mark'),
    ('a\tr\tb\n'.encode('utf-16'), 1, '', 'byte-order mark'),
  ],
)
@pytest.mark.parametrize('suffix', ['', '.xz'])
def test_wrong_lines_are_errors(
  tmp_path, data, number, shown, expectation, suffix
):
  path = write(tmp_path, COMPRESSORS[suffix](data), 'train.txt' + suffix)
  message = error_of(path)
  assert message.startswith(f'{path}:{number}: ')
  assert shown in message
  assert expectation in message


def test_line_numbers_count_the_header(tmp_path):
  path = write(tmp_path, b'head\trelation\ttail\na\tr\tb\na\tr\n')
  assert error_of(path, header=True).startswith(f'{path}:3: ')


def test_the_error_names_the_expected_columns_and_delimiter(tmp_path):
  path = write(tmp_path, b'a,b\n')
  columns = ('tail', 'head', 'relation')
  message = error_of(path, columns=columns, delimiter=';')
  assert '(tail, head, relation)' in message
  assert "';'" in message


def test_a_very_long_wrong_line_is_shortened(tmp_path):
  path = write(tmp_path, b'x' * 1_000_000 + b'\n')
  message = error_of(path)
  assert len(message) < 1000
  assert '1000000' in message


def test_control_characters_of_a_wrong_line_are_escaped(tmp_path):
  message = error_of(write(tmp_path, b'a\x1b[2J\tr\n'))
  assert '\\x1b' in message
  assert '\x1b' not in message


def test_a_last_line_cut_inside_its_line_end_is_an_error(tmp_path):
  # The lines end with CR LF and the last LF is missing, so `d\r` is no label.
  path = write(tmp_path, b'a\tr\tb\r\nc\tr\td\r')
  assert error_of(path).startswith(f'{path}:2: ')


@pytest.mark.parametrize('content', [b'', b'head\trelation\ttail\n'])
def test_an_empty_split_needs_no_header(tmp_path, content):
  layout = triple_files.TripleFormat(header=True)
  for split in ('train', 'valid', 'test'):
    write(tmp_path, content, f'{split}.txt')
  with pytest.raises(text_files.DataError, match='contains no triple'):
    triple_files.read_graph(tmp_path, 'mine', layout)
  write(tmp_path, b'head\trelation\ttail\na\tr\tb\n', 'train.txt')
  graph = triple_files.read_graph(tmp_path, 'mine', layout)
  assert (len(graph.train), len(graph.valid), len(graph.test)) == (1, 0, 0)


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
@pytest.mark.parametrize('kept', [0.3, 0.7, 0.95])
def test_truncated_archives_are_errors(tmp_path, suffix, kept):
  generator = np.random.default_rng(0)
  names = generator.integers(0, 10**9, size=(3000, 2))
  data = ''.join(f'{h}\tr\t{t}\n' for h, t in names).encode()
  whole = COMPRESSORS[suffix](data)
  path = write(tmp_path, whole[: int(kept * len(whole))], 'train.txt' + suffix)
  message = error_of(path)
  # Even if the cut is inside a line, the error is about the archive.
  assert message.startswith(str(path))
  assert re.search(r'cannot be read after line \d+: .', message)


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_plain_text_with_a_compression_suffix_is_an_error(tmp_path, suffix):
  path = write(tmp_path, b'a\tr\tb\n', 'train.txt' + suffix)
  message = error_of(path)
  assert message.startswith(
    f"{path}: cannot be read after line 0: starts with b'a"
  )
  assert message.endswith('If the file is not compressed, rename it')


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_a_compressed_file_of_no_bytes_is_truncated(tmp_path, suffix):
  # Even compressed empty text has bytes: a header and a checksum.
  path = write(tmp_path, b'', 'test.txt' + suffix)
  assert 'cannot be read' in error_of(path)


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_bytes_after_the_archive_are_not_skipped(tmp_path, suffix):
  data = COMPRESSORS[suffix](b'a\tr\tb\n') + b'c\tr\td\n' * 9
  path = write(tmp_path, data, 'train.txt' + suffix)
  assert 'cannot be read' in error_of(path)


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_a_flipped_bit_in_an_archive_is_an_error(tmp_path, suffix):
  text = ''.join(f'{i * 7919}\tr\t{i * 104729}\n' for i in range(500))
  data = bytearray(COMPRESSORS[suffix](text.encode()))
  data[len(data) // 2] ^= 0x10
  path = write(tmp_path, bytes(data), 'train.txt' + suffix)
  assert error_of(path).startswith(str(path))


@pytest.mark.parametrize('suffix', COMPRESSORS)
def test_the_position_in_a_file_ends_at_its_size(tmp_path, suffix):
  data = COMPRESSORS[suffix](b'a\tr\tb\n' * 4)
  path = write(tmp_path, data, 'train.txt' + suffix)
  with compression.open_file(path) as stream:
    assert compression.position(stream) == 0
    stream.read()
    assert compression.position(stream) == len(data)


def test_reading_a_large_file_shows_a_progress_bar(
  tmp_path, monkeypatch, capsys
):
  monkeypatch.setattr(text_files, '_MIN_BYTES_OF_BAR', 1)
  monkeypatch.setattr(text_files, '_LINES_PER_UPDATE', 2)
  path = write(tmp_path, b'a\tr\tb\n' * 4, 'train.txt')
  assert len(list(text_files.read_lines(path))) == 4
  assert not capsys.readouterr().err
  assert len(list(text_files.read_lines(path, progress='reading'))) == 4
  assert 'reading' in capsys.readouterr().err


def test_a_missing_file_is_an_error(tmp_path):
  message = error_of(tmp_path / 'train.txt')
  assert 'train.txt' in message
  assert 'cannot be opened' in message


@pytest.mark.parametrize(
  'layout',
  [
    {'columns': ('head', 'relation')},
    {'columns': ('head', 'relation', 'relation')},
    {'columns': ('head', 'relation', 'object')},
    {'columns': ('head', 'relation', 'tail', 'tail')},
    {'delimiter': ''},
    {'delimiter': '\n'},
    {'delimiter': '\t\r'},
  ],
)
def test_wrong_layouts_are_errors(layout):
  with pytest.raises(text_files.DataError, match='expected'):
    triple_files.TripleFormat(**layout)


# ----------------------------------------------------------- malicious files


@pytest.mark.parametrize('suffix', COMPRESSORS)
@pytest.mark.parametrize('too_long', [0, 1])
def test_the_longest_line(tmp_path, suffix, too_long):
  label = b'x' * (text_files.MAX_LINE_BYTES - len(b'\tr\tb\n') + too_long)
  data = COMPRESSORS[suffix](b'a\tr\tb\n' + label + b'\tr\tb\n')
  path = write(tmp_path, data, 'train.txt' + suffix)
  if too_long:
    message = error_of(path)
    assert message.startswith(f'{path}:2: ')
    assert 'longer than 1,048,576 bytes' in message
    assert len(message) < 1000
  else:
    triples, _, _ = read(path)
    assert triples[1][0] == label.decode()


def bomb(suffix: str, line: bytes, count: int) -> bytes:
  """Compresses `count` MiB in which `line` is repeated."""
  compressor = {
    '.gz': lambda: zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS),
    '.bz2': bz2.BZ2Compressor,
    '.xz': lzma.LZMACompressor,
  }[suffix]()
  block = line * (2**20 // len(line))
  parts = [compressor.compress(block) for _ in range(count)]
  return b''.join(parts) + compressor.flush()


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_an_archive_that_expands_too_much_is_an_error(
  tmp_path, suffix, monkeypatch
):
  monkeypatch.setattr(compression, 'ALWAYS_ALLOWED_BYTES', 2**15)
  path = write(tmp_path, bomb(suffix, b'a\tr\tb\n', 4), 'train' + suffix)
  assert path.stat().st_size * compression.MAX_EXPANSION > 2**15
  message = error_of(path)
  assert message.startswith(f'{path}: cannot be read after line ')
  assert 'expand to more than' in message


@pytest.mark.parametrize('suffix', ['.gz', '.bz2', '.xz'])
def test_an_archive_of_one_long_line_is_an_error(tmp_path, suffix):
  path = write(tmp_path, bomb(suffix, b'x', 3), 'train' + suffix)
  assert error_of(path).startswith(f'{path}:1: ')


def test_a_small_archive_may_expand_a_lot(tmp_path):
  line = b'a\tr\tb\n'
  path = write(tmp_path, bomb('.xz', line, 1), 'train.xz')
  triples, _, _ = read(path)
  assert len(triples) == 2**20 // len(line)
  assert path.stat().st_size * compression.MAX_EXPANSION < 2**20


def test_an_archive_with_a_huge_dictionary_is_an_error(tmp_path):
  data = bytearray(lzma.compress(b'a\tr\tb\n', preset=0))
  # Byte 16 encodes the size of the dictionary. Bytes 20 to 23 are the checksum
  # of the block header.
  data[16] = 40  # 4 GiB
  data[20:24] = zlib.crc32(bytes(data[12:20])).to_bytes(4, 'little')
  message = error_of(write(tmp_path, bytes(data), 'train.xz'))
  assert 'Memory usage limit' in message


# ----------------------------------------------------------- finding a split


@pytest.mark.parametrize('suffix', COMPRESSORS)
@pytest.mark.parametrize('extension', ['', '.txt', '.tsv'])
@pytest.mark.parametrize(
  ('split', 'stem'),
  [('train', 'train'), ('valid', 'valid'), ('valid', 'dev'), ('test', 'test')],
)
def test_find_split(tmp_path, split, stem, extension, suffix):
  path = write(tmp_path, b'', stem + extension + suffix)
  write(tmp_path, b'', 'train_notes.md')
  write(tmp_path, b'', 'entity2text.txt.xz')
  (tmp_path / 'valid.d').mkdir()
  assert text_files.find_split(tmp_path, split) == path


@pytest.mark.parametrize('split', ['train', 'valid', 'test'])
def test_a_missing_split_file_is_an_error(tmp_path, split):
  (tmp_path / split).mkdir()  # a folder is not a file
  with pytest.raises(text_files.DataError) as caught:
    text_files.find_split(tmp_path, split)
  assert str(tmp_path) in str(caught.value)
  assert f'no file of {split}' in str(caught.value)
  assert '.txt' in str(caught.value)


@pytest.mark.parametrize(
  ('split', 'names'),
  [
    ('train', ('train.txt', 'train.txt.gz')),
    ('train', ('train', 'train.tsv')),
    ('valid', ('valid.txt', 'dev.txt')),
  ],
)
def test_ambiguous_split_files_are_errors(tmp_path, split, names):
  for name in names:
    write(tmp_path, b'', name)
  with pytest.raises(text_files.DataError) as caught:
    text_files.find_split(tmp_path, split)
  assert all(name in str(caught.value) for name in names)


# ----------------------------------------------------------------- property

# Labels have no LF, tab or surrogate. Labels do not end with CR, because CR LF
# is a line end. Labels do not start with U+FEFF, the byte-order mark of a file.
_ALPHABET = st.characters(exclude_categories=['Cs'], exclude_characters='\n\t')
_LABEL = st.text(_ALPHABET, min_size=1, max_size=8).filter(
  lambda label: not label.endswith('\r') and not label.startswith('\ufeff')
)


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
  wanted=st.lists(st.tuples(_LABEL, _LABEL, _LABEL), max_size=6),
  suffix=st.sampled_from(sorted(COMPRESSORS)),
  end=st.sampled_from(['\n', '\r\n']),
)
def test_what_is_written_is_read(wanted, suffix, end):
  with tempfile.TemporaryDirectory() as folder:
    text = ''.join('\t'.join(triple) + end for triple in wanted)
    data = COMPRESSORS[suffix](text.encode())
    path = write(pathlib.Path(folder), data, 'train' + suffix)
    triples, entities, relations = read(path)
  assert triples == wanted
  assert set(entities) == {e for h, _, t in wanted for e in (h, t)}
  assert set(relations) == {relation for _, relation, _ in wanted}


@hypothesis.settings(deadline=None, max_examples=100)
@hypothesis.given(
  data=st.one_of(
    st.binary(max_size=40),
    st.lists(
      st.sampled_from(
        [b'a', b'\t', b'\n', b'\r\n', b'\xff', b'\xef\xbb\xbf', b'a\tr\tb\n']
      ),
      max_size=8,
    ).map(b''.join),
  )
)
def test_any_bytes_are_read_exactly_or_are_an_error(data):
  """Writing the triples again gives the same bytes, except for line ends."""
  with tempfile.TemporaryDirectory() as folder:
    path = write(pathlib.Path(folder), data)
    try:
      triples, _, _ = read(path)
    except text_files.DataError:
      return
  text = ''.join('\t'.join(triple) + '\n' for triple in triples).encode()
  data = data.replace(b'\r\n', b'\n')
  assert text in (data, data + b'\n')
