"""Tests answers to files of questions: exact labels, errors for bad lines."""

import gzip
import io
import json
import math
import os
import random
import threading
import types

import numpy as np
import pytest
import small
from hypothesis import given, settings
from hypothesis import strategies as st

from coke_jax.cli import answer_lines, input_lines
from coke_jax.data import text_files
from coke_jax.predict import known_facts, questions

V = len(small.ENTITIES)
COLUMNS = 'line asked head relations tail rank score probability known_in'


@pytest.fixture(scope='module')
def model():
  return small.table_model()


@pytest.fixture(scope='module')
def path_model():
  return small.table_model(
    small.random_paths(), max_length=5, max_path_length=3
  )


def write(folder, content, name='questions.tsv'):
  path = folder / name
  path.write_bytes(content if isinstance(content, bytes) else content.encode())
  return path


def answer(
  model, path, output, format='jsonl', top=2, line_format=None, **options
):
  """Returns the result of `answer_lines.answer`, and the `Lines` it read."""
  skip_bad = options.pop('skip_bad', False)
  lines = input_lines.Lines(
    str(path), line_format or input_lines.LineFormat(), skip_bad=skip_bad
  )
  counts = answer_lines.answer(
    model,
    lines,
    str(output),
    format=format,
    top=top,
    restriction=known_facts.Restriction(**options),
  )
  return counts, lines


def read_json(path):
  text = path.read_bytes().decode()
  assert text == '' or text.endswith('\n')
  return [json.loads(line) for line in text.split('\n')[:-1]]


def answer_json(model, path, **options):
  """Returns the JSON objects that `answer` writes for a file."""
  output = path.with_name('answers.jsonl')
  answer(model, path, output, **options)
  return read_json(output)


# --------------------------------------------------------------- exact content


def test_tsv_by_hand(model, tmp_path):
  """Compares every cell with a value computed from the score tables."""
  given = [('e03', 'likes', '?'), ('?', 'near', 'e11')]
  path = write(tmp_path, 'e03\tlikes\t?\n?\tnear\te11\n')
  counts, lines = answer(model, path, tmp_path / 'answers.tsv', 'tsv')
  assert counts == (2, 0)
  assert (lines.read, lines.skipped) == (2, 0)
  expected = ['\t'.join(COLUMNS.split())]
  for number, question in enumerate(given, start=1):
    scores, logs = small.scores_by_hand(model, question)
    order = sorted(range(V), key=lambda entity: (-scores[entity], entity))
    for rank, entity in enumerate(order[:2], start=1):
      label = small.ENTITIES[entity]
      fact = [label if part == '?' else part for part in question]
      side = 'head' if question[0] == '?' else 'tail'
      score, split = logs[entity], small.known_in(model.data, question, label)
      cells = [number, side, *fact, rank]
      cells += [f'{score:.6g}', f'{math.exp(score):.6g}', split]
      expected.append('\t'.join(map(str, cells)))
  written = (tmp_path / 'answers.tsv').read_bytes().decode().split('\n')
  assert written.pop() == ''
  assert [line.split('\t')[:6] for line in written] == [
    line.split('\t')[:6] for line in expected
  ]
  for got, want in zip(written[1:], expected[1:], strict=True):
    got, want = got.split('\t'), want.split('\t')
    assert len(got) == 9
    assert got[8] == want[8]
    for cell in (6, 7):
      assert float(got[cell]) == pytest.approx(float(want[cell]), rel=1e-4)
      # A number has at most six digits and an exponent such as e-05.
      assert len(got[cell].lstrip('-0.').replace('.', '')) <= 6 + 4


def test_jsonl_equals_predict(model, path_model, tmp_path):
  path = write(tmp_path, 'e03\tlikes\t?\n?\tnear\te11\n')
  assert answer_json(model, path, top=3, new_only=True) == [
    {
      'line': number,
      'question': list(question),
      'answers': [
        {
          'label': answer.label,
          'rank': answer.rank,
          'score': answer.score,
          'probability': answer.probability,
          'known_in': answer.known_in,
        }
        for answer in model.predict(question, top=3, new_only=True)
      ],
    }
    for number, question in enumerate(
      [('e03', 'likes', '?'), ('?', 'near', 'e11')], start=1
    )
  ]


def test_a_path_in_one_column_or_in_several(path_model, tmp_path):
  path = write(
    tmp_path,
    'e03\tlikes,**near,near\t?\n'
    'e03\tlikes\t**near\tnear\t?\n'
    'e03\tlikes,**near\tnear\t?\n'
    '?\tlikes\te04\n',
  )
  line_format = input_lines.LineFormat(relation_delimiter=',')
  one, other, mixed, single = answer_json(
    path_model, path, line_format=line_format
  )
  assert one['question'] == ['e03', 'likes', '**near', 'near', '?']
  for same in (other, mixed):
    assert same['question'] == one['question']
    assert same['answers'] == one['answers']
  assert single['question'] == ['?', 'likes', 'e04']
  answer(
    path_model, path, tmp_path / 'a.tsv', 'tsv', top=1, line_format=line_format
  )
  rows = (tmp_path / 'a.tsv').read_text().splitlines()[1:]
  assert [row.split('\t')[3] for row in rows] == [
    *['likes,**near,near'] * 3,
    'likes',
  ]


def test_a_relation_that_contains_the_delimiter():
  line_format = input_lines.LineFormat(relation_delimiter=',')
  known_relations = {'a,b': 0, 'a': 1, 'b': 2}
  assert line_format.labels('x\ta,b\t?', known_relations) == ['x', 'a,b', '?']
  assert line_format.labels('x\tb,a\t?', known_relations) == [
    'x',
    'b',
    'a',
    '?',
  ]
  assert line_format.labels('x', known_relations) == ['x']
  assert line_format.labels('', known_relations) == ['']
  assert line_format.labels('x,y\tz', known_relations) == ['x,y', 'z']
  assert input_lines.LineFormat().labels('x\tb,a\t?', {}) == ['x', 'b,a', '?']


def test_another_delimiter_than_tab(model, tmp_path):
  odd = ('tab\there', 'two  blanks', *small.ENTITIES[2:])
  renamed = small.with_labels(model, odd)
  path = write(tmp_path, 'tab\there | likes | ?\n? | near | two  blanks\n')
  line_format = input_lines.LineFormat(' | ')
  first, second = answer_json(renamed, path, line_format=line_format, top=V)
  assert first['question'] == ['tab\there', 'likes', '?']
  assert second['question'] == ['?', 'near', 'two  blanks']
  assert {a['label'] for a in first['answers']} == set(odd)
  with pytest.raises(input_lines.StreamError, match=r"'tab\\there'.*jsonl"):
    answer(
      renamed, path, tmp_path / 'answers.tsv', 'tsv', line_format=line_format
    )
  assert not (tmp_path / 'answers.tsv').exists()


@pytest.mark.parametrize('kind', ['triples', 'walks'])
@pytest.mark.parametrize('delimiter', ['\t', ',', ' '])
def test_tabs_separate_columns_for_any_delimiter_of_the_data(
  tmp_path, delimiter, kind
):
  config = small.config(data={'delimiter': delimiter, 'kind': kind})
  path = write(tmp_path, 'e03\tlikes\t?\n')

  def split(text, **options):
    options = {'delimiter': r'\t', **options}
    lines = input_lines.from_config(
      config, str(path), skip_bad=False, **options
    )
    return lines.line_format.labels(text, {})

  assert split('e03\tlikes\t?') == ['e03', 'likes', '?']
  assert split('e 3\tlikes\t?') == ['e 3', 'likes', '?']
  assert split('e\t3|likes|?', delimiter='|') == ['e\t3', 'likes', '?']
  assert split('e,3;likes;?', delimiter=';') == ['e,3', 'likes', '?']
  paths = ['a', 'r', 's', '?'] if kind == 'walks' else ['a', 'r,s', '?']
  assert split('a\tr,s\t?') == paths
  for wrong in ('', '\n'):
    with pytest.raises(input_lines.StreamError, match='--delimiter is'):
      split('', delimiter=wrong)


def test_a_path_never_adds_columns(path_model, tmp_path):
  """Answers never separate relations by tabs, even if the data do."""
  path = write(tmp_path, 'e03\tlikes\t**near\t?\n')
  for relation_delimiter in ('', '\t', ';'):
    output = tmp_path / 'answers.tsv'
    line_format = input_lines.LineFormat(relation_delimiter=relation_delimiter)
    answer(path_model, path, output, 'tsv', 1, line_format)
    cells = output.read_text().splitlines()[1].split('\t')
    assert len(cells) == len(COLUMNS.split())
    joined = 'likes;**near' if relation_delimiter == ';' else 'likes,**near'
    assert cells[3] == joined


ODD = (
  ' leading',
  'trailing ',
  ' ',
  '"quoted"',
  "it's",
  '"',
  'a,b',
  'NA',
  'nan',
  '007',
  '1e5',
  'Zürich',
  'Zu\u0308rich',
  '東京',
  '\u2028line\u2029',
  '\x85next',
  '\xa0',
  '\x00nul\x00',
  'null',
  '#comment',
)


@pytest.mark.parametrize('format', ['tsv', 'jsonl'])
def test_odd_labels_are_preserved(model, tmp_path, format):
  renamed = small.with_labels(model, ODD)
  path = write(tmp_path, ''.join(f'{label}\tnear\t?\n' for label in ODD))
  output = tmp_path / 'answers'
  answer(renamed, path, output, format, top=V)
  if format == 'jsonl':
    found = read_json(output)
    assert len(output.read_text().splitlines()) == len(ODD)
    assert [line['question'][0] for line in found] == list(ODD)
    for line in found:
      assert {answer['label'] for answer in line['answers']} == set(ODD)
    return
  rows = [row.split('\t') for row in output.read_bytes().decode().split('\n')]
  assert [row[2] for row in rows[1:-1]] == [
    label for label in ODD for _ in range(V)
  ]
  assert {row[4] for row in rows[1:-1]} == set(ODD)


labels = st.text(
  st.characters(codec='utf-8', exclude_characters='\t\n\r'), min_size=1
).filter(lambda label: label not in (*small.ENTITIES, '?'))


@given(st.lists(labels, min_size=1, max_size=6, unique=True))
@settings(max_examples=40, deadline=None)
def test_any_labels_are_preserved(tmp_path_factory, model, some):
  words = (*some, *small.ENTITIES[len(some) :])
  renamed = small.with_labels(model, words)
  # The file must not start with a label from `some`, because this label could
  # start with a byte-order mark.
  given = [['e19', 'near', '?']]
  given += [[s, 'near', '?'] for s in some]
  given += [['?', 'likes', s] for s in some]
  folder = tmp_path_factory.mktemp('any')
  path = write(folder, ''.join('\t'.join(line) + '\n' for line in given))
  found = answer_json(renamed, path, top=V)
  assert [line['question'] for line in found] == given
  assert [line['line'] for line in found] == list(range(1, len(given) + 1))
  for line in found:
    assert sorted(a['label'] for a in line['answers']) == sorted(words)


# ------------------------------------------------------------------------ input


def test_compressed_files_and_line_ends(model, tmp_path):
  plain = b'e03\tlikes\t?\n?\tnear\te11\n'
  expected = answer_json(model, write(tmp_path, plain))
  for name, content in {
    'questions.gz': gzip.compress(plain),
    'crlf': plain.replace(b'\n', b'\r\n'),
    'no_end': plain[:-1],
    'mark': b'\xef\xbb\xbf' + plain,
  }.items():
    assert answer_json(model, write(tmp_path, content, name)) == expected


def test_standard_input_and_output(model, monkeypatch, tmp_path, capfd):
  plain = 'e03\tlikes\t?\n?\tnear\te11\n'
  monkeypatch.setattr(
    'sys.stdin', types.SimpleNamespace(buffer=io.BytesIO(plain.encode()))
  )
  counts, _ = answer(model, '-', '-', format='tsv')
  assert counts == (2, 0)
  printed = capfd.readouterr().out
  answer(model, write(tmp_path, plain), tmp_path / 'answers.tsv', format='tsv')
  assert printed == (tmp_path / 'answers.tsv').read_text()
  marked = io.BytesIO(b'\xef\xbb\xbf' + plain.encode())
  monkeypatch.setattr('sys.stdin', types.SimpleNamespace(buffer=marked))
  assert answer(model, '-', '-', format='tsv')[0] == (2, 0)
  assert capfd.readouterr().out == printed
  monkeypatch.setattr(
    'sys.stdin', types.SimpleNamespace(buffer=io.BytesIO(b'e03\tlikes\n'))
  )
  with pytest.raises(input_lines.StreamError, match=r'^<stdin>:1: '):
    answer(model, '-', tmp_path / 'answers')


def test_standard_streams_that_are_closed(model, monkeypatch, tmp_path):
  path = write(tmp_path, 'e03\tlikes\t?\n')
  for name, arguments in (
    ('input', ('-', tmp_path / 'answers')),
    ('output', (path, '-')),
  ):
    with monkeypatch.context() as patched:
      patched.setattr(f'sys.std{name[:-3]}', None)
      with pytest.raises(input_lines.StreamError, match=f'{name} is closed'):
        answer(model, *arguments)
  assert not (tmp_path / 'answers').exists()


def test_only_a_byte_order_mark(model, tmp_path):
  assert answer_json(model, write(tmp_path, b'\xef\xbb\xbf')) == []


def test_empty_input(model, tmp_path):
  path = write(tmp_path, '')
  output = tmp_path / 'answers'
  assert answer(model, path, output, 'tsv')[0] == (0, 0)
  assert output.read_text() == '\t'.join(COLUMNS.split()) + '\n'
  assert answer(model, path, output, 'jsonl')[0] == (0, 0)
  assert output.read_text() == ''


def test_pipes_are_read_and_written(model, tmp_path):
  """Reads from one named pipe and writes to another, which remains a pipe."""
  plain = 'e03\tlikes\t?\n'
  expected = answer_json(model, write(tmp_path, plain))
  for name in ('in', 'out'):
    os.mkfifo(tmp_path / name)
  received = []
  ends = [
    threading.Thread(target=(tmp_path / 'in').write_text, args=(plain,)),
    threading.Thread(
      target=lambda: received.append((tmp_path / 'out').read_text())
    ),
  ]
  for end in ends:
    end.start()
  answer(model, tmp_path / 'in', tmp_path / 'out')
  for end in ends:
    end.join(timeout=60)
  assert [json.loads(received[0])] == expected
  assert (tmp_path / 'out').is_fifo()


@pytest.mark.parametrize('count', [7, 8, 9, 16, 17])
def test_batch_boundaries_do_not_change_answers(
  model, tmp_path, monkeypatch, count
):
  given = small.every_question()[:count]
  path = write(tmp_path, ''.join('\t'.join(line) + '\n' for line in given))
  whole = answer_json(model, path)
  monkeypatch.setattr(model.predictor.scorer, 'batch_size', 8)
  assert answer_json(model, path) == whole
  assert [tuple(line['question']) for line in whole] == given


def test_questions_without_an_answer_are_counted(model, tmp_path):
  path = write(tmp_path, 'e03\tlikes\t?\ne04\tlikes\t?\n')
  output = tmp_path / 'answers'
  none = np.zeros(0, np.int64)
  counts, _ = answer(model, path, output, candidates=none)
  assert counts == (2, 2)
  assert [line['answers'] for line in read_json(output)] == [[], []]
  assert answer(model, path, output, 'tsv', candidates=none)[0] == (2, 2)
  assert output.read_text() == '\t'.join(COLUMNS.split()) + '\n'
  # The only candidate is the entity of the first question.
  one = np.array([3])
  counts, _ = answer(model, path, output, candidates=one, exclude_own=True)
  assert counts == (2, 1)
  assert [len(line['answers']) for line in read_json(output)] == [0, 1]


# -------------------------------------------------------------------- bad lines

BAD = {
  'e03\tlikes': 'expected an entity',
  'e03\tlikes\tnear\t?': '2 relations.*at most 1',
  'e03\tlikes\te04': 'at one end',
  '?\tlikes\t?': 'at one end',
  'e03\t?\te04': 'in the place of a relation',
  'e3\tlikes\t?': "unknown entity 'e3': did you mean",
  'e03\tlike\t?': "unknown relation 'like': did you mean 'likes'",
  ' e03\tlikes\t?': "unknown entity ' e03'",
  'e03\tlikes\t? ': 'at one end',
  '"e03"\tlikes\t?': 'unknown entity',
  'e03\tlikes\t?\t': '4 labels, and the last one is empty',
  'e03 likes ?': 'expected an entity',
  'e03,likes,?': r"in the place of an entity. If ',' .*, use --delimiter=,$",
  'e03;likes;?': "If ';' separates the columns, use --delimiter=';'$",
  'e03, e04, likes, ?': 'in the place of an entity$',
  '': 'expected an entity',
  '\t\t': 'label 1 is empty',
  '# comment': 'expected an entity',
}


@pytest.mark.parametrize('line', BAD)
def test_a_bad_line_stops_with_its_number(model, tmp_path, line):
  path = write(tmp_path, f'e03\tlikes\t?\n{line}\ne04\tlikes\t?\n')
  output = write(tmp_path, 'before', 'answers')
  for format in ('tsv', 'jsonl'):
    with pytest.raises(
      input_lines.StreamError, match=rf'questions\.tsv:2: .*{BAD[line]}'
    ):
      answer(model, path, output, format)
  assert output.read_text() == 'before'
  assert {p.name for p in tmp_path.iterdir()} == {'questions.tsv', 'answers'}


def test_bad_lines_are_skipped_reported_and_counted(model, tmp_path, capsys):
  content = b'e03\tlikes\t?\n'
  for line in BAD:
    content += line.encode() + b'\n'
  content += b'e\xff03\tlikes\t?\ne04\tlikes\t?\n'
  path = write(tmp_path, content)
  output = tmp_path / 'answers'
  counts, lines = answer(model, path, output, skip_bad=True)
  assert counts == (2, 0)
  assert (lines.read, lines.skipped) == (len(BAD) + 3, len(BAD) + 1)
  found = read_json(output)
  assert [line['line'] for line in found] == [1, len(BAD) + 3]
  assert [line['question'][0] for line in found] == ['e03', 'e04']
  reported = capsys.readouterr().err
  for number in range(2, len(BAD) + 3):
    assert f'skipped {path}:{number}: ' in reported
  with pytest.raises(input_lines.StreamError):
    answer(model, path, output)


def test_undecodable_bytes_stop_with_their_line(model, tmp_path):
  path = write(tmp_path, b'e03\tlikes\t?\ne\xff03\tlikes\t?\n')
  with pytest.raises(
    text_files.DataError, match=r'questions\.tsv:2: .*not UTF-8'
  ):
    answer(model, path, tmp_path / 'answers')
  assert not (tmp_path / 'answers').exists()


def test_questions_before_a_line_that_is_too_long_are_answered(
  model, tmp_path, capfd
):
  long = b'x' * text_files.MAX_LINE_BYTES
  path = write(tmp_path, b'e03\tlikes\t?\n' + long + b'\n')
  with pytest.raises(
    text_files.DataError, match=r'questions\.tsv:2: .*is longer than'
  ):
    answer(model, path, '-', 'tsv')
  assert '\n1\ttail\te03\tlikes\te00\t1\t' in capfd.readouterr().out


def test_the_number_of_suggestions_is_limited(model, tmp_path, capsys):
  path = write(tmp_path, 'e3\tlikes\t?\n' * 30)
  _, lines = answer(model, path, tmp_path / 'answers', skip_bad=True)
  assert lines.skipped == 30
  reported = capsys.readouterr().err
  assert reported.count('unknown entity') == 30
  assert reported.count('did you mean') == 20


def test_options_are_checked_before_anything_is_written(model, tmp_path):
  path = write(tmp_path, '')
  with pytest.raises(questions.QuestionError, match='top is 0'):
    answer(model, path, tmp_path / 'answers', top=0)
  assert not (tmp_path / 'answers').exists()


def test_missing_files(model, tmp_path):
  with pytest.raises(
    text_files.DataError, match=r'nowhere\.tsv: cannot be opened'
  ):
    answer(model, tmp_path / 'nowhere.tsv', tmp_path / 'answers')
  path = write(tmp_path, 'e03\tlikes\t?\n')
  (tmp_path / 'folder').mkdir()
  for output in ('folder', 'none/answers', 'questions.tsv/answers'):
    with pytest.raises(OSError, match=output):
      answer(model, path, tmp_path / output)
  assert {p.name for p in tmp_path.iterdir()} == {'questions.tsv', 'folder'}
  assert not list((tmp_path / 'folder').iterdir())


# -------------------------------------------------------------------- mutations

STRANGE = [
  b'\xff',
  b'\x00',
  b'\x1a',
  b'\x85',
  b'\xc2\x85',
  b'\xe2\x80\xa8',
  b'\t',
  b'\n',
  b'\r',
  b'\r\n',
  b'?',
  b' ',
  b'"',
  b',',
  b'\\t',
  b'\xef\xbb\xbf',
  b'\xff\xfe',
  b'x' * 5000,
  b'\t' * 300,
]


def mutate(content, generator):
  """Returns the content with one random change."""
  lines = content.split(b'\n')
  place = generator.randrange(len(content))
  row = generator.randrange(len(lines))
  kind = generator.randrange(11)
  if kind == 0:  # Flip a bit.
    flipped = content[place] ^ (1 << generator.randrange(8))
    return content[:place] + bytes([flipped]) + content[place + 1 :]
  if kind == 1:
    return content[:place]
  if kind == 2:
    return content[:place] + content[place + generator.randrange(1, 9) :]
  if kind in (3, 4):
    return content[:place] + generator.choice(STRANGE) + content[place:]
  if kind == 5:
    return generator.choice(STRANGE) + content
  if kind == 6:
    return content + generator.choice(STRANGE)
  if kind == 7:
    lines[row] += b'\t' + generator.choice(lines)
  elif kind == 8:
    lines[row] = b'\t'.join(lines[row].split(b'\t')[::-1])
  elif kind == 9:
    del lines[row]
  else:
    encoding = generator.choice(['utf-16', 'utf-8-sig', 'latin-1', 'cp1252'])
    return content.decode('utf-8', 'replace').encode(encoding, 'replace')
  return b'\n'.join(lines)


def try_to_answer(*arguments, **options):
  """Returns the result of `answer`, or the error if the input is invalid."""
  try:
    return answer(*arguments, **options)
  except (input_lines.StreamError, text_files.DataError) as error:
    return error


def read_by_hand(content, known_entities):
  """Parses a file of questions without the package.

  Returns:
    The labels of the valid lines, by line number, and the numbers of the
    invalid lines. None if the file starts with a byte-order mark of UTF-16: the
    package must raise an error.
  """
  if content.startswith((b'\xff\xfe', b'\xfe\xff')):
    return None
  content = content.removeprefix(b'\xef\xbb\xbf')
  *raw, last = content.split(b'\n')
  returns = any(line.endswith(b'\r') for line in raw)
  raw = [line.removesuffix(b'\r') for line in raw]
  # If other lines end in CR LF, a last line that ends in CR is invalid.
  if last:
    raw.append(b'\xff' if returns and last.endswith(b'\r') else last)
  good, bad = {}, []
  for number, line in enumerate(raw, start=1):
    try:
      fields = line.decode().split('\t')
    except UnicodeDecodeError:
      fields = []
    ends = [fields[0], fields[-1]] if len(fields) == 3 else []
    if (
      ends.count('?') == 1
      and fields[1] in small.RELATIONS
      and (set(ends) - {'?'}) <= known_entities
    ):
      good[number] = fields
    else:
      bad.append(number)
  return good, bad


def test_mutated_files_give_exact_labels_or_an_error(model, tmp_path):
  """Reads hundreds of damaged files. Bad lines raise errors or are skipped."""
  renamed = small.with_labels(model, ODD)
  given = [(label, 'likes', '?') for label in ODD[::2]]
  given += [('?', 'near', label) for label in ODD[1::2]]
  content = ''.join('\t'.join(line) + '\n' for line in given).encode()
  generator = random.Random(0)
  output = tmp_path / 'answers'
  outcomes = dict.fromkeys(['unusable', 'stopped', 'all answered'], 0)
  for number in range(300):
    start = content.replace(b'\n', b'\r\n') if number % 5 == 0 else content
    path = write(tmp_path, mutate(start, generator))
    expected = read_by_hand(path.read_bytes(), set(ODD))
    for skip_bad in (False, True):
      output.unlink(missing_ok=True)
      result = try_to_answer(renamed, path, output, top=1, skip_bad=skip_bad)
      if isinstance(result, Exception):
        place = str(result).removeprefix(f'{path}:').partition(':')[0]
        assert str(result).startswith(f'{path}:{place}: ')
        assert len(str(result)) < 2000
        assert not output.exists()
        if expected is None:
          outcomes['unusable'] += 1
        else:
          assert not skip_bad
          assert int(place) == expected[1][0]
          outcomes['stopped'] += 1
        continue
      (count, _), lines = result
      good, bad = expected
      assert skip_bad or not bad
      assert lines.skipped == len(bad)
      assert count == len(good)
      found = {line['line']: line['question'] for line in read_json(output)}
      assert found == good
      outcomes['all answered'] += 1
  assert min(outcomes.values()) > 20
  assert not [path for path in tmp_path.iterdir() if path.name[0] == '.']


def test_mutated_compressed_files(model, tmp_path):
  """A damaged archive gives an error with its path, or the exact questions."""
  given = small.every_question()[:40]
  content = ''.join('\t'.join(line) + '\n' for line in given).encode()
  packed = gzip.compress(content, mtime=0)
  generator = random.Random(1)
  output = tmp_path / 'answers'
  errors = 0
  for _ in range(60):
    path = write(tmp_path, mutate(packed, generator), 'questions.gz')
    output.unlink(missing_ok=True)
    result = try_to_answer(model, path, output, top=1)
    if isinstance(result, Exception):
      errors += 1
      assert str(result).startswith(str(path))
      assert not output.exists()
      continue
    found = [tuple(line['question']) for line in read_json(output)]
    # A wrong time stamp, for example, changes no question.
    assert found == given
  assert errors > 30
