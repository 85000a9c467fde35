"""Compares responses with their description in OpenAPI."""

import json

import http_client
import pytest

import coke_jax
from coke_jax.serve import json_lines, response_schemas, server

FACT = ['Kenya', 'borders', 'Uganda']
STEPS = [{'relation': 'borders'}, {'relation': 'region', 'backwards': True}]
QUESTIONS = [['Kenya', 'region', '?'], ['?', '**region', 'borders', 'Kenya']]
# Maps each operation (a method and a path) to the bodies of its requests.
REQUESTS = {
  'get /v1/model': [None],
  'get /v1/search?text=ken': [None],
  'get /v1/search?text=region&kind=relation': [None],
  'post /v1/predict': [{'questions': QUESTIONS, 'top': 12}],
  'post /v1/rank': [{'facts': [FACT]}],
  'post /v1/relations': [{'pairs': [['Kenya', 'Africa'], ['Peru', 'Peru']]}],
  'post /v1/explain': [{'facts': [FACT, ['Kenya', 'borders', 'Peru']]}],
  'post /v1/similar': [{'entity': 'Kenya', 'top': 2}],
  'post /v1/discover': [{'relation': 'borders', 'top': 3}],
  'post /v1/audit': [{'entity': 'Kenya', 'top': 3}],
  'post /v1/facts': [{'entity': 'Kenya'}],
  'post /v1/map': [{'entity': 'Kenya'}],
  'post /v1/steps': [{'entity': 'Kenya', 'steps': STEPS}],
  'post /v1/ask': [
    {'entity': 'Kenya', 'steps': STEPS},
    {'entity': 'Kenya', 'steps': STEPS * 3, 'new_only': True},
  ],
  'post /v1/trace': [
    {'entity': 'Kenya', 'steps': STEPS[:1], 'answer': 'Uganda'}
  ],
  'get /healthz': [None],
  'get /readyz': [None],
}
# Operations whose response is not one JSON object. Separate tests check them.
OTHERS = {'post /v1/predict/lines', 'get /metrics'}


@pytest.fixture(scope='module')
def running():
  options = server.Options(port=0, token=http_client.TOKEN, warm_up=False)
  with server.Server(coke_jax.EXAMPLE_MODEL, options) as started:
    yield started


@pytest.fixture(scope='module')
def described(running):
  """Returns the description of each operation."""
  paths = http_client.exchange(running.address, '/openapi.json').json()['paths']
  return {
    f'{method} {path}': operation
    for path, methods in paths.items()
    for method, operation in methods.items()
  }


def schema(operation, status):
  """Returns the class that describes a response."""
  (content,) = operation['responses'][str(status)]['content'].values()
  name = content['schema']['$ref'].rpartition('/')[2]
  return getattr(response_schemas, name)


def test_every_operation_is_tested(described):
  tested = {operation.partition('?')[0] for operation in REQUESTS}
  assert tested | OTHERS == described.keys()


@pytest.mark.parametrize('operation', REQUESTS)
def test_responses_are_those_that_are_described(running, described, operation):
  name = operation.partition('?')[0]
  expected = schema(described[name], 200)
  for body in REQUESTS[operation]:
    got = http_client.exchange(running.address, operation.split()[1], body)
    assert got.status == 200
    found = expected.model_validate_json(got.text)
    assert got.json() == found.model_dump(mode='json')


def test_lines_are_those_that_are_described(running):
  body = '["Kenya","region","?"]\n["Kenia","region","?"]\n'
  got = http_client.exchange(
    running.address, '/v1/predict/lines', body, kind='x-ndjson'
  )
  assert got.status == 200
  assert got.headers['Content-Type'].startswith(json_lines.MEDIA_TYPE)
  for line, expected in zip(
    got.text.splitlines(),
    (response_schemas.AnsweredLine, response_schemas.BadLine),
    strict=True,
  ):
    found = response_schemas.Line.validate_json(line)
    assert type(found) is expected
    assert json.loads(line) == found.model_dump(mode='json')


@pytest.mark.parametrize(
  ('status', 'path', 'body', 'options'),
  [
    (401, '/v1/model', None, {'token': 'wrong'}),
    (413, '/v1/predict', {'questions': QUESTIONS * 600}, {}),
    (415, '/v1/facts', '{}', {'kind': 'xml'}),
    (422, '/v1/facts', {'entity': 'Kenia'}, {}),
    (422, '/v1/search?limit=0', None, {}),
    (422, '/v1/rank', {'facts': [FACT], 'unknown': 1}, {}),
  ],
)
def test_errors_are_those_that_are_described(
  running, described, status, path, body, options
):
  got = http_client.exchange(running.address, path, body, **options)
  assert got.status == status
  method = 'get' if body is None else 'post'
  operation = described[f'{method} {path.partition("?")[0]}']
  expected = schema(operation, status)
  assert expected is response_schemas.Error
  assert got.json() == expected.model_validate_json(got.text).model_dump()


def test_the_marker_of_inverse_relations_is_explained(running):
  got = http_client.exchange(
    running.address, '/v1/relations', {'pairs': [['Africa', 'Kenya']]}
  )
  assert got.json()['answers'][0][0]['label'] == '**region'
  described = http_client.exchange(running.address, '/openapi.json').json()
  schemas = described['components']['schemas']
  for name in ('Answer', 'Predict', 'Relations'):
    assert '`**`' in schemas[name]['description'], name
