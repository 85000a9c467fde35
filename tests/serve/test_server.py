"""Tests the answers, the errors and the end of a running server."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from http_client import TOKEN, send

import coke_jax
from coke_jax.serve import limits, server
from coke_jax.training import interruption

QUESTION = ('Kenya', 'region', '?')


@pytest.fixture(scope='module')
def running():
  options = server.Options(port=0, token=TOKEN, warm_up=False)
  with server.Server(coke_jax.EXAMPLE_MODEL, options) as started:
    yield started


@pytest.fixture(scope='module')
def model():
  return coke_jax.load(coke_jax.EXAMPLE_MODEL)


def test_answers_are_those_of_the_model(running, model):
  questions = [list(QUESTION), ['?', 'borders', 'Kenya']]
  status, text = send(
    running, '/v1/predict', {'questions': questions, 'top': 3}
  )
  assert status == 200
  expected = model.predict([tuple(one) for one in questions], top=3)
  got = json.loads(text)['answers']
  assert [[one['label'] for one in some] for some in got] == [
    [one.label for one in some] for some in expected
  ]
  assert got[0][0]['probability'] == pytest.approx(
    expected[0][0].probability, rel=1e-5
  )


def test_ranks_are_those_of_the_model(running, model):
  fact = ('Kenya', 'region', 'Africa')
  status, text = send(running, '/v1/rank', {'facts': [fact], 'side': 'tail'})
  assert status == 200
  assert json.loads(text)['rankings'][0]['rank'] == (
    model.rank([fact], side='tail')[0].rank
  )


@pytest.mark.parametrize(
  ('steps', 'question'),
  [
    (['>borders'], ('Kenya', 'borders', '?')),
    (['<borders'], ('?', 'borders', 'Kenya')),
    (['>borders', '<capital'], ('Kenya', 'borders', '**capital', '?')),
  ],
)
def test_steps_equal_questions(running, model, steps, question):
  body = {
    'entity': 'Kenya',
    'steps': [
      {'relation': step[1:], 'backwards': step[0] == '<'} for step in steps
    ],
  }
  status, text = send(running, '/v1/ask', body)
  assert status == 200
  assert json.loads(text)['method'] == 'model'
  assert [one['label'] for one in json.loads(text)['answers']] == [
    one.label for one in model.predict(question)
  ]


def test_labels_are_found_without_accents_and_case(running):
  status, text = send(running, '/v1/search?text=ASUNCION')
  assert status == 200
  assert json.loads(text)['labels'][0] == 'Asunción'


@pytest.mark.parametrize('extra', [0, 1, 2, 70_000, 300_000])
def test_json_lines_of_any_length_keep_their_numbers(running, extra):
  question = json.dumps(QUESTION)
  most = limits.Limits().line_bytes
  # JSON allows spaces before the closing bracket.
  padded = question[:-1].ljust(most - 2 + extra) + ']\n'
  assert len(padded) == most + extra
  status, text = send(
    running,
    '/v1/predict/lines',
    f'\ufeff{question}\n{padded}[]\n{question}\n',
    kind='x-ndjson',
  )
  assert status == 200
  found = [json.loads(line) for line in text.splitlines()]
  assert [one['line'] for one in found] == [1, 2, 3, 4]
  assert found[0]['answers'] == found[3]['answers']
  assert 'expected an entity' in found[2]['error']
  if extra:
    assert found[1]['error'] == 'a line with more than 65,536 bytes'
  else:
    assert found[1]['answers'] == found[0]['answers']


def test_the_page_and_the_health_need_no_token(running):
  status, page = send(running, '/', token='wrong')
  assert status == 200
  assert page.startswith('<!doctype html>')
  assert send(running, '/readyz', token='wrong')[0] == 200
  assert send(running, '/v1/model', token='wrong')[0] == 401


@pytest.mark.parametrize(
  ('path', 'body', 'expected'),
  [
    ('/v1/predict', b'{', 422),
    ('/v1/predict', b'[' * 100_000, 422),
    ('/v1/predict/', {'questions': []}, 404),
    ('/v1/predict', {'questions': [['Kenia', 'region', '?']]}, 422),
    ('/v1/predict', {'questions': [['Kenya', 'region', '?']], 'top': 0}, 422),
    ('/v1/predict', {'questions': 'x' * 2_000_000}, 413),
    ('/static/../server.py', None, 404),
    ('/config.json', None, 404),
  ],
)
def test_bad_requests_are_refused(running, path, body, expected):
  status, text = send(running, path, body)
  assert status == expected
  assert 'Traceback' not in text
  assert str(coke_jax.EXAMPLE_MODEL) not in text


def test_json_lines_show_the_text_of_a_bad_line(running):
  body = b'Ha\xc3\xafti ?\r\n["Kenya",1,"?"]\n["caf\xe9"]\n' + b'x' * 300
  status, text = send(running, '/v1/predict/lines', body, kind='x-ndjson')
  assert status == 200
  assert [json.loads(line)['error'] for line in text.splitlines()] == [
    "'Haïti ?': expected a list of labels in JSON",
    '\'["Kenya",1,"?"]\': expected a list of labels in JSON',
    'byte 0xe9 at column 6 is not UTF-8 (invalid continuation byte): expected '
    'a list of labels in JSON',
    f"'{'x' * 200}'... (length 300): expected a list of labels in JSON",
  ]


@pytest.mark.parametrize(
  ('path', 'body', 'hint'),
  [
    ('/v1/facts', {'entity': 'Germny'}, "entity 'Germny': did you mean 'Germ"),
    ('/v1/predict', {'questions': [['Kenia', 'region', '?']]}, "or 'Kenya'"),
    ('/v1/rank', {'facts': [['Kenya', 'regoin', 'Africa']]}, "'region'"),
    ('/v1/discover', {'relation': 'bordres'}, "mean 'borders'"),
    # Labels that contain the text come before labels with a similar spelling.
    ('/v1/facts', {'entity': 'Asuncion'}, "mean 'Asunción'"),
  ],
)
def test_similar_labels_are_suggested(running, path, body, hint):
  status, text = send(running, path, body)
  assert status == 422
  assert 'did you mean' in text
  assert hint in text


def test_nothing_is_suggested_for_a_label_like_no_other(running):
  _, text = send(running, '/v1/facts', {'entity': 'xqzw'})
  assert json.loads(text) == {'error': "unknown entity 'xqzw'"}


def test_labels_are_suggested_for_the_first_bad_json_lines(running):
  body = '["Kenia","region","?"]\n' * 21 + json.dumps(QUESTION)
  _, text = send(running, '/v1/predict/lines', body, kind='x-ndjson')
  *bad, good = [json.loads(line) for line in text.splitlines()]
  assert all("or 'Kenya'?" in one['error'] for one in bad[:20])
  assert bad[20]['error'] == "unknown entity 'Kenia'"
  assert good['answers'][0]['label'] == 'Africa'


@pytest.fixture
def command(tmp_path, request):
  """Starts `coke serve`. Yields the process and the printed URL.

  The parameter of the fixture is the value of --host.
  """
  token = tmp_path / 'token'
  token.write_text(TOKEN)
  process = subprocess.Popen(
    [
      *(sys.executable, '-m', 'coke_jax.main', 'serve'),
      str(coke_jax.EXAMPLE_MODEL),
      *('--port=0', f'--token-file={token}'),
      f'--host={getattr(request, "param", "127.0.0.1")}',
    ],
    stdout=subprocess.PIPE,
    stderr=subprocess.PIPE,
    text=True,
  )
  first = process.stdout.readline()
  assert first.startswith('serving '), first
  yield process, first.split()[-1]
  process.kill()
  process.communicate()


def accepted(address, length):
  """Sends the headers of a question. Returns the connection.

  The server then waits for a body of `length` bytes.
  """
  port = int(address.rpartition(':')[2])
  connection = socket.create_connection(('127.0.0.1', port), 60)
  connection.sendall(
    b'POST /v1/predict HTTP/1.1\r\nHost: localhost\r\n'
    b'Content-Type: application/json\r\nExpect: 100-continue\r\n'
    + f'Authorization: Bearer {TOKEN}\r\n'.encode()
    + f'Content-Length: {length}\r\n\r\n'.encode()
  )
  assert connection.recv(1000).startswith(b'HTTP/1.1 100 ')
  return connection


def test_the_command_answers_accepted_requests_after_a_signal(command):
  process, address = command
  body = json.dumps({'questions': [list(QUESTION)], 'top': 1}).encode()
  with accepted(address, len(body)) as connection:
    process.send_signal(signal.SIGTERM)
    # If no handler had run, `interruption` would have ended the command by now.
    time.sleep(interruption._PATIENCE_SECONDS + 1)
    assert process.poll() is None
    connection.sendall(body)
    response = http.client.HTTPResponse(connection)
    response.begin()
    assert response.status == 200
    assert json.load(response)['answers'][0][0]['label'] == 'Africa'
  out, error = process.communicate(timeout=60)
  assert out == ''
  assert error.strip() == (
    'SIGTERM: answering the waiting requests; repeat to exit immediately'
  )
  assert process.returncode == 0


@pytest.mark.parametrize('command', ['0.0.0.0'], indirect=True)
def test_a_second_signal_ends_the_command_at_once(command):
  process, address = command
  assert address.startswith('http://127.0.0.1:')
  port = address.rpartition(':')[2]
  assert re.match(
    rf'other machines can connect to http://{re.escape(socket.gethostname())}'
    rf':{port}(?: or http://\S+:{port})*$',
    process.stdout.readline(),
  )
  with accepted(address, length=9):
    for _ in range(2):
      process.send_signal(signal.SIGTERM)
      time.sleep(1)
    assert process.wait(timeout=60) == 128 + signal.SIGTERM
