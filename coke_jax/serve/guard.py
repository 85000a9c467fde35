"""Checks every request before it is handled, and counts it.

The checks are about the host, the token, and the type and size of the body.
Every response gets headers that restrict browsers.
"""

import asyncio
import hmac
import time
from collections.abc import Collection
from typing import Any

from starlette import datastructures, types
from starlette import exceptions as starlette_exceptions

from coke_jax.serve import json_lines, metrics, responses
from coke_jax.serve import limits as limits_lib

LINES_PATH = '/v1/predict/lines'
_JSON = 'application/json'
_POLICY = '; '.join(
  (
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  )
)
_HEADERS = (
  ('Content-Security-Policy', _POLICY),
  ('X-Content-Type-Options', 'nosniff'),
  ('Referrer-Policy', 'no-referrer'),
  ('Cross-Origin-Resource-Policy', 'same-origin'),
  ('Cross-Origin-Opener-Policy', 'same-origin'),
)


class Guard:
  """A layer that checks and counts the requests to an application."""

  def __init__(
    self,
    app: types.ASGIApp,
    *,
    limits: limits_lib.Limits,
    metrics: metrics.Metrics,
    paths: Collection[str],
    open_paths: Collection[str],
    hosts: Collection[str],
    token: str,
  ):
    """Wraps an application.

    Args:
      app: the application.
      limits: limits for the size of a body, and for the time in which each part
        of a body must arrive.
      metrics: counts the requests.
      paths: the paths that are counted separately. Other paths are counted as
        `other`.
      open_paths: the paths that need no token.
      hosts: the names that are accepted in the Host header. Empty if all names
        are accepted.
      token: the token that requests must contain. Empty if none is needed.
    """
    self._app = app
    self._limits = limits
    self._metrics = metrics
    self._paths = frozenset(paths)
    self._open_paths = frozenset(open_paths)
    self._hosts = frozenset(hosts)
    self._token = token.encode()

  async def __call__(
    self, scope: types.Scope, receive: types.Receive, send: types.Send
  ) -> None:
    """Handles a request."""
    if scope['type'] != 'http':
      await self._app(scope, receive, send)
      return
    path = scope['path'] if scope['path'] in self._paths else 'other'
    started = time.perf_counter()
    status = 500

    async def send_with_headers(message: types.Message) -> None:
      nonlocal status
      if message['type'] == 'http.response.start':
        status = message['status']
        headers = datastructures.MutableHeaders(scope=message)
        for name, value in _HEADERS:
          headers[name] = value
        headers.setdefault('Cache-Control', 'no-store')
      await send(message)

    try:
      refused = self._refuse(scope)
      if refused is not None:
        await refused(scope, receive, send_with_headers)
      else:
        most = self._limits.body_bytes
        if scope['path'] == LINES_PATH:
          most = self._limits.lines_bytes
        limited = _Limited(receive, most, self._limits.seconds)
        await self._app(scope, limited, send_with_headers)
    finally:
      self._metrics.requests.labels(path, str(status)).inc()
      self._metrics.seconds.labels(path).observe(time.perf_counter() - started)

  def _refuse(self, scope: types.Scope) -> responses.Json | None:
    """Returns the response to a request that is not accepted, or None."""
    headers = datastructures.Headers(scope=scope)
    if self._hosts and _host(headers.get('host', '')) not in self._hosts:
      return responses.error(
        421, 'the Host header is not one of the names of this server'
      )
    path = scope['path']
    if self._token and path not in self._open_paths:
      scheme, _, given = headers.get('authorization', '').partition(' ')
      right = hmac.compare_digest(
        given.strip().encode('latin-1', 'replace'), self._token
      )
      if scheme.lower() != 'bearer' or not right:
        found = responses.error(401, 'expected Authorization: Bearer <token>')
        found.headers['WWW-Authenticate'] = 'Bearer'
        return found
    if scope['method'] == 'POST':
      wanted = json_lines.MEDIA_TYPE if path == LINES_PATH else _JSON
      given = headers.get('content-type', '').partition(';')[0].strip().lower()
      if given != wanted:
        return responses.error(415, f'expected Content-Type: {wanted}')
      if headers.get('content-encoding', 'identity').lower() != 'identity':
        return responses.error(415, 'expected a body without Content-Encoding')
    return None


class _Limited:
  """Receives a body of limited size. Each part must arrive in limited time."""

  def __init__(self, receive: types.Receive, most: int, seconds: float):
    self._receive = receive
    self._left = self._most = most
    self._seconds = seconds
    self._complete = False

  async def __call__(self) -> Any:
    """Receives a message, which contains a part of the body.

    Raises:
      starlette.exceptions.HTTPException: the body is too large, or its next
        part does not arrive in time.
    """
    if self._complete:  # Waits until the client disconnects.
      return await self._receive()
    try:
      message = await asyncio.wait_for(self._receive(), self._seconds)
    except TimeoutError:
      raise starlette_exceptions.HTTPException(
        408, 'the body was sent too slowly'
      ) from None
    self._left -= len(message.get('body', b''))
    self._complete = not message.get('more_body', False)
    if self._left < 0:
      raise starlette_exceptions.HTTPException(
        413, f'the body has more than {self._most:,} bytes'
      )
    return message


def _host(header: str) -> str:
  """Returns the Host header without the port."""
  if header.startswith('['):
    return header.partition(']')[0].lower() + ']'
  return header.partition(':')[0].lower()
