"""Draws hostile requests and valid questions for `fuzz_server.py`."""

import copy
import dataclasses
import json
import random
from collections.abc import Callable
from typing import Any

import example_server
import expected_answers

_TEXTS = (
  *('', '?', ' ', '\0', '\n', '\t', '\\', '"', "'", '../../../etc/passwd'),
  *('%00', '%s%n', '{{7*7}}', '<script>', '\ud800', '\udfff\ud800', '\ufeff'),
  *('\u202e', 'a\u0300' * 99, '\U0001f469\u200d\U0001f680', 'ﷺ', '\uff11', 'ß'),
  *('İ', 'null', 'NaN', 'x' * 70_000, '\u2028', '**', '**borders', '\x1b[2J'),
)
# Numbers and other values as JSON.
_VALUES = (
  *('null', 'true', '0', '-1', '1.5', '1e999', '-1e999', 'NaN', 'Infinity'),
  *('1e-400', '9' * 5000, '-' + '9' * 400, '9223372036854775808', '[]', '{}'),
  *('2147483648', '1000001', '[[]]', '[{}]', '{"":{}}', '"\\ud800"', '0.0'),
  *('[' * 3000 + ']' * 3000, '{"a":' * 3000 + '1' + '}' * 3000, '"\\u0000"'),
)
_MARK = 'replaced-by-a-value'


@dataclasses.dataclass(frozen=True)
class Case:
  """A request and the responses that are accepted.

  Attributes:
    data: the bytes of the request.
    statuses: the accepted statuses. The status 0 means that the server closes
      the connection.
    method: the method.
    question: the question, if its answers are compared.
    ends: whether the client signals that it sends nothing after these bytes.
  """

  data: bytes
  statuses: tuple[int, ...]
  method: str = 'POST'
  question: expected_answers.Question | None = None
  ends: bool = False


class Cases:
  """Draws requests."""

  def __init__(self, host: str, answers: expected_answers.Answers, seed: int):
    self._host = host
    self._answers = answers
    self._random = random.Random(seed)
    # The numbers are relative frequencies.
    self._kinds: dict[Callable[[], Case], float] = {
      self.valid: 12,
      self.changed_bytes: 15,
      self.changed_values: 25,
      self.search: 12,
      self.lines: 5,
      self.path: 10,
      self.method: 6,
      self.header: 10,
      self.incomplete: 4,
      self.oversized: 0.2,
    }

  def draw(self) -> tuple[str, Case]:
    """Returns the name of a kind, and a request of this kind."""
    kinds = list(self._kinds)
    (kind,) = self._random.choices(kinds, list(self._kinds.values()))
    return kind.__name__, kind()

  def valid(self) -> Case:
    """Returns a valid question."""
    question = self._answers.draw(self._random)
    body = {'questions': [question], 'top': expected_answers.TOP}
    return Case(self._post('/v1/predict', body), (200, 503), question=question)

  def changed_bytes(self) -> Case:
    """Changes, removes or inserts bytes of a body."""
    path, body = self._valid_body()
    data = bytearray(json.dumps(body).encode())
    for _ in range(self._random.randint(1, 4)):
      start = self._random.randrange(len(data) + 1)
      stop = min(len(data), start + self._random.choice([0, 0, 1, 1, 4, 30]))
      data[start:stop] = self._random.randbytes(self._random.choice([0, 1, 3]))
    return Case(self._post(path, bytes(data)), (200, 400, 413, 422, 503))

  def changed_values(self) -> Case:
    """Replaces, adds or removes values of a body."""
    path, body = self._valid_body()
    for _ in range(self._random.randint(1, 2)):
      body = self._change(body)
    text = json.dumps(body)
    while f'"{_MARK}"' in text:
      value = self._random.choice(_VALUES)
      text = text.replace(f'"{_MARK}"', value, 1)
    return Case(self._post(path, text.encode()), (200, 400, 413, 422, 503))

  def search(self) -> Case:
    """Returns a search with odd parameters."""
    text = self._random.choice(
      [
        self._random.choice(_TEXTS)[:300],
        *self._answers.draw(self._random)[:1],
        self._random.randbytes(8).decode('latin-1'),
      ]
    )
    encoded = ''.join(
      f'%{byte:02x}' for byte in text.encode('utf-8', 'surrogatepass')
    )
    kind = self._random.choice(['entity', 'relation', 'x', ''])
    limit = self._random.choice(
      ['10', '0', '-1', '1e9', '9' * 400, '', '%EF%BC%95']
    )
    query = f'text={encoded}&kind={kind}&limit={limit}'
    if self._random.random() < 0.2:
      query = self._random.choice(['%', '&&&=', 'text=%ff%fe', 'limit[]=1'])
    return Case(self._get(f'/v1/search?{query}'), (200, 422), 'GET')

  def lines(self) -> Case:
    """Returns JSON lines. Some lines are no questions."""
    made = [
      self._random.choice(
        [
          json.dumps(self._answers.draw(self._random)),
          self._random.choice(_VALUES),
          json.dumps(list(self._random.choices(_TEXTS, k=3))),
          self._random.randbytes(20).decode('latin-1'),
        ]
      )
      for _ in range(self._random.randint(0, 4))
    ]
    top = self._random.choice(['1', '5', '0', 'x', '1000', '1001'])
    return Case(
      example_server.post(
        self._host,
        f'/v1/predict/lines?top={top}',
        '\n'.join(made).encode('utf-8', 'surrogatepass'),
        kind='x-ndjson',
      ),
      (200, 413, 422),
    )

  def path(self) -> Case:
    """Returns a request for a file that is not served."""
    up = self._random.choice(['../', '%2e%2e/', '..%2f', '..\\', '%c0%ae/'])
    path = self._random.choice(['/static/', '/', '/v1/', '//', '/static//'])
    path += up * self._random.randint(0, 6)
    path += self._random.choice(
      ['etc/passwd', 'app.py', 'config.json', 'model.safetensors', '%00', '~']
    )
    return Case(self._get(path), (404,), 'GET')

  def method(self) -> Case:
    """Returns a request with a method that its path does not accept."""
    method = self._random.choice(
      ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'CONNECT', 'get', 'HEAD']
    )
    path = self._random.choice(['/v1/predict', '/v1/search', '/metrics', '/x'])
    data = f'{method} {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n'
    return Case(data.encode(), (404, 405), method)

  def header(self) -> Case:
    """Returns a valid question with an odd header or request line."""
    body = json.dumps({'questions': [self._answers.draw(self._random)]})
    valid = self._post('/v1/predict', body.encode()).decode()
    length = f'Content-Length: {len(body)}'
    host = f'Host: {self._host}'
    chunked = 'Transfer-Encoding: chunked'
    closed, ok = (0, 400), (200, 503)
    old, new, statuses = self._random.choice(
      [
        (host, 'Host: example.com', (421,)),
        (host, f'{host}\r\nHost: example.com', (400, 421)),
        (host, 'X: y', closed),
        (host, f'{host}\r\nX-Forwarded-Host: example.com', ok),
        (length, f'{length}\r\n{length}1', closed),
        (length, f'{length}\r\n{chunked}', closed),
        (length, 'Content-Length: -1', closed),
        (length, f'Content-Length: {"9" * 40}', (0, 400, 413)),
        (length, 'Transfer-Encoding: gzip, chunked', (0, 400, 501)),
        (length, f'{length}\r\nContent-Encoding: gzip', (415,)),
        (length, f'{length}\r\nX: {"y" * 100_000}', (0, 400, 431)),
        (length, f'{length}\r\nX: \0', closed),
        (length, f'{length}\r\n folded: x', (*closed, *ok)),
        (length, f'{length}\r\nRange: bytes=0-1', ok),
        (length, f'{length}\r\nAuthorization: Bearer \xff', ok),
        ('application/json', 'text/plain', (415,)),
        ('application/json', 'application/json; charset=utf-7', ok),
        ('POST', 'POST http://example.com', (400, 404)),
        ('HTTP/1.1', 'HTTP/9.9', closed),
        ('HTTP/1.1', '', closed),
      ]
    )
    data = valid.replace(old, new, 1).encode('latin-1')
    return Case(data, statuses, ends=0 in statuses or 413 in statuses)

  def incomplete(self) -> Case:
    """Returns the beginning of a valid request."""
    data = self.valid().data
    cut = self._random.randrange(len(data))
    return Case(data[:cut], (0, 400), ends=True)

  def oversized(self) -> Case:
    """Returns a request with a body that is too large."""
    body = b'[' * (2 << 20)
    return Case(self._post('/v1/predict', body), (0, 413), ends=True)

  def _valid_body(self) -> tuple[str, dict[str, Any]]:
    question = [*self._answers.draw(self._random)]
    entity = next(one for one in (question[0], question[-1]) if one != '?')
    relation = question[1]
    step = {'relation': relation, 'backwards': False}
    bodies: dict[str, dict[str, Any]] = {
      '/v1/predict': {
        'questions': [question],
        'top': 5,
        'candidates': [entity],
      },
      '/v1/rank': {'facts': [[entity, relation, entity]], 'side': 'tail'},
      '/v1/relations': {'pairs': [[entity, entity]], 'top': 3},
      '/v1/facts': {'entity': entity, 'offset': 0, 'limit': 10},
      '/v1/steps': {'entity': entity, 'steps': [step]},
      '/v1/ask': {'entity': entity, 'steps': [step], 'new_only': True},
      '/v1/explain': {'facts': [[entity, relation, entity]], 'similar': 1},
      '/v1/similar': {'entity': entity, 'relation': relation, 'side': 'head'},
      '/v1/discover': {'relation': relation, 'top': 5, 'per_head': None},
      '/v1/audit': {'entity': entity, 'top': 1, 'expected': 1},
      '/v1/trace': {'entity': entity, 'steps': [step], 'answer': entity},
      '/v1/map': {'entity': entity},
    }
    # The last six kinds of requests take much longer, so they are drawn rarely.
    weights = [10] * 6 + [1] * 6
    return self._random.choices(list(bodies.items()), weights)[0]

  def _change(self, value: Any) -> Any:
    """Returns a copy of a JSON value with one change."""
    value = copy.deepcopy(value)
    if not value or not isinstance(value, dict | list):
      return self._random.choice([_MARK, self._random.choice(_TEXTS)])
    places = list(value) if isinstance(value, dict) else range(len(value))
    place = self._random.choice(list(places))
    chance = self._random.random()
    if chance < 0.1:
      del value[place]
    elif chance < 0.2 and isinstance(value, dict):
      value[self._random.choice(_TEXTS)[:200]] = _MARK
    elif chance < 0.3 and isinstance(value, list):
      value += value * self._random.choice([1, 3, 1001])
    else:
      value[place] = self._change(value[place])
    return value

  def _get(self, path: str) -> bytes:
    return f'GET {path} HTTP/1.1\r\nHost: {self._host}\r\n\r\n'.encode()

  def _post(self, path: str, body: Any) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return example_server.post(self._host, path, data)
