"""Tests a server under load: full queues, joined requests and time limits."""

import asyncio
import concurrent.futures
import contextlib
import json
import threading
import time

import http_client
import pytest

import coke_jax
from coke_jax.serve import limits as limits_lib
from coke_jax.serve import server

WAITING = 6
PATIENCE = 60.0  # maximum seconds to wait, enough for a busy machine
QUESTIONS = [
  (country, relation, '?')
  for country in ('Kenya', 'France', 'Peru')
  for relation in ('region', 'borders')
]


@contextlib.contextmanager
def serving(**limits):
  options = server.Options(port=0, warm_up=False)
  with server.Server(
    coke_jax.EXAMPLE_MODEL, options, limits_lib.Limits(**limits)
  ) as running:
    yield running


@contextlib.contextmanager
def occupied(running):
  """Runs a job, so that questions and long requests wait."""
  started, released = threading.Event(), threading.Event()

  def job(_):
    started.set()
    assert released.wait(PATIENCE)

  def run():
    with contextlib.suppress(limits_lib.TimeLimitError):
      asyncio.run(running.engine.run_job(running.engine.served, job))

  thread = threading.Thread(target=run)
  thread.start()
  assert started.wait(PATIENCE)
  try:
    yield
  finally:
    released.set()
    thread.join()


def ask(running, *questions, top=3):
  return http_client.exchange(
    running.address, '/v1/predict', {'questions': questions, 'top': top}
  )


def wait_for(condition):
  end = time.monotonic() + PATIENCE
  while not condition():
    assert time.monotonic() < end, 'the condition never became true'
    time.sleep(0.01)


def growth(before, after, name):
  return after[name] - before.get(name, 0)


@pytest.fixture(scope='module')
def running():
  with serving(waiting=WAITING, waiting_jobs=1) as started:
    yield started


@pytest.fixture(scope='module')
def expected():
  model = coke_jax.load(coke_jax.EXAMPLE_MODEL)
  answers = model.predict(QUESTIONS, top=3)
  return [[one.label for one in some] for some in answers]


def test_waiting_requests_are_joined_and_further_ones_refused(
  running, expected
):
  before = http_client.metrics(running.address)
  with concurrent.futures.ThreadPoolExecutor(WAITING) as pool:
    with occupied(running):
      waiting = [pool.submit(ask, running, one) for one in QUESTIONS]
      wait_for(
        lambda: (
          http_client.metrics(running.address)['coke_waiting_questions']
          == WAITING
        )
      )
      refused = ask(running, QUESTIONS[0])
    answered = [one.result() for one in waiting]
  assert refused.status == 503
  assert refused.headers['Retry-After'] == '1'
  assert refused.json() == {
    'error': f'{WAITING} questions are waiting: try again later'
  }
  assert [one.status for one in answered] == [200] * WAITING
  assert [
    [answer['label'] for answer in one.json()['answers'][0]] for one in answered
  ] == expected
  after = http_client.metrics(running.address)
  assert after['coke_waiting_questions'] == 0
  for name, number in {
    'coke_batch_requests_count': 1,
    'coke_batch_requests_sum': WAITING,
    'coke_batch_requests_bucket 4.0': 0,
    'coke_batch_requests_bucket 8.0': 1,
    'coke_batch_questions_sum': WAITING,
    'coke_batch_seconds_count': 1,
    'coke_requests_total /v1/predict 200': WAITING,
    'coke_requests_total /v1/predict 503': 1,
  }.items():
    assert growth(before, after, name) == number, name


def test_a_request_with_more_questions_than_can_wait_is_refused(running):
  refused = ask(running, *QUESTIONS, QUESTIONS[0])
  assert refused.status == 503
  assert refused.headers['Retry-After'] == '1'


def test_long_requests_that_wait_are_limited(running):
  def similar():
    return http_client.exchange(
      running.address, '/v1/similar', {'entity': 'Kenya', 'top': 1}
    )

  with concurrent.futures.ThreadPoolExecutor(2) as pool:
    with occupied(running):
      both = [pool.submit(similar) for _ in range(2)]
      done, _ = concurrent.futures.wait(
        both, PATIENCE, concurrent.futures.FIRST_COMPLETED
      )
      (refused,) = done
    statuses = sorted(one.result().status for one in both)
  assert statuses == [200, 503]
  assert refused.result().json() == {
    'error': 'too many long requests are waiting (1): try again later'
  }
  assert refused.result().headers['Retry-After'] == '1'


def test_metrics_count_requests_and_describe_the_model(running):
  ask(running, QUESTIONS[0])
  before = http_client.metrics(running.address)
  for _ in range(3):
    assert ask(running, *QUESTIONS[:2]).status == 200
  assert ask(running, ('no such entity', 'region', '?')).status == 422
  assert http_client.exchange(running.address, '/nothing').status == 404
  after = http_client.metrics(running.address)
  for name, number in {
    'coke_requests_total /v1/predict 200': 3,
    'coke_requests_total /v1/predict 422': 1,
    'coke_requests_total other 404': 1,
    'coke_requests_total /metrics 200': 1,
    'coke_request_seconds_count /v1/predict': 4,
    'coke_batch_requests_sum': 3,
    'coke_batch_questions_sum': 6,
  }.items():
    assert growth(before, after, name) == number, name
  loaded = running.engine.served.loaded
  assert after['coke_model_loaded_timestamp_seconds'] == loaded
  assert 'coke_reloads_total loaded' not in after
  assert after['process_resident_memory_bytes'] > 0


def test_a_request_that_takes_too_long_is_answered_with_an_error():
  with serving(seconds=0.2) as running, occupied(running):
    # The status of JSON lines is sent first, so it is 200 even if a line is an
    # error.
    lines = http_client.exchange(
      running.address,
      '/v1/predict/lines',
      '["Kenya","region","?"]\n',
      kind='x-ndjson',
    )
    late = ask(running, QUESTIONS[0])
  assert late.status == 503
  assert late.headers['Retry-After'] == '1'
  assert late.json() == {'error': 'the request took more than 0.2 s'}
  assert lines.status == 200
  assert lines.json() == {
    'line': 1,
    'error': 'the request took more than 0.2 s',
  }


def test_a_stopped_server_names_the_first_line_without_an_answer():
  body = '["Kenya", "region", "?"]\n' * 200_000
  with concurrent.futures.ThreadPoolExecutor() as threads:
    with serving(seconds=2.0) as running:
      response = threads.submit(
        http_client.exchange,
        running.address,
        '/v1/predict/lines?top=1',
        body,
        kind='x-ndjson',
      )
      wait_for(
        lambda: (
          b'coke_batch_requests_count 0' not in running.engine.metrics.text()
        )
      )
    status, text = response.result()[:2]
  assert status == 200
  *answered, last = [json.loads(line) for line in text.splitlines()]
  assert 0 < len(answered) < 200_000
  assert [one['line'] for one in answered] == [*range(1, len(answered) + 1)]
  # On a busy machine, an answer can take longer than the limit of 2 seconds.
  too_late = 'the request took more than 2 s'
  late = [one for one in answered if one.get('error') == too_late]
  in_time = [one for one in answered if 'answers' in one]
  assert in_time
  assert len(in_time) + len(late) == len(answered)
  assert all(one['answers'][0]['label'] == 'Africa' for one in in_time)
  assert last == {
    'line': len(answered) + 1,
    'error': 'the server is being stopped: send this and all later lines again',
  }
