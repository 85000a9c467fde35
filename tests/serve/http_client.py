"""Sends requests to a server."""

import json
import urllib.error
import urllib.request
from typing import Any, NamedTuple

from prometheus_client import parser

TOKEN = 'a secret'


class Response(NamedTuple):
  """A response. `text` is the body."""

  status: int
  text: str
  headers: Any

  def json(self):
    """Returns the body as JSON."""
    return json.loads(self.text)


def exchange(
  address, path, body=None, *, token=TOKEN, method=None, kind='json'
) -> Response:
  """Sends a request and returns the response.

  Args:
    address: the address of the server.
    path: the path, which may contain a query.
    body: bytes, a JSON value (if `kind` is 'json') or a text (otherwise).
      Default: no body.
    token: the token.
    method: the method. Default: GET without a body, otherwise POST.
    kind: the part of the media type after `application/`.
  """
  data = body
  if kind == 'json' and not isinstance(body, bytes | None):
    data = json.dumps(body)
  request = urllib.request.Request(
    address + path,
    data.encode() if isinstance(data, str) else data,
    {
      'Content-Type': f'application/{kind}',
      'Authorization': f'Bearer {token}',
    },
    method=method,
  )
  try:
    with urllib.request.urlopen(request, timeout=120) as response:
      text = response.read().decode()
      return Response(response.status, text, response.headers)
  except urllib.error.HTTPError as error:
    return Response(error.code, error.read().decode(), error.headers)


def send(running, path, body=None, **options) -> tuple[int, str]:
  """Sends a request, see `exchange`. Returns the status and the body."""
  return exchange(running.address, path, body, **options)[:2]


def metrics(address) -> dict[str, float]:
  """Returns the metrics of a server by name.

  The values of the labels are part of the name: `coke_reloads_total loaded`.
  """
  text = exchange(address, '/metrics').text
  return {
    ' '.join([sample.name, *sample.labels.values()]): sample.value
    for family in parser.text_string_to_metric_families(text)
    for sample in family.samples
  }
