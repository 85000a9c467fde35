"""Starts `coke serve`, and sends it raw requests."""

import asyncio
import contextlib
import dataclasses
import json
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from typing import Any

import coke_jax

ROOT = pathlib.Path(__file__).resolve().parents[2]
_STOP_SECONDS = 120.0
_LIMIT = 1 << 24  # maximum number of bytes in a line of a response


@dataclasses.dataclass(frozen=True)
class Response:
  """An HTTP response.

  Attributes:
    status: the status, or 0 if the server closed the connection instead.
    headers: the headers, with lower-case names.
    body: the body.
  """

  status: int
  headers: dict[str, str]
  body: bytes

  def json(self) -> Any:
    """Returns the body as JSON."""
    return json.loads(self.body)


CLOSED = Response(0, {}, b'')


class Server:
  """A process that serves a model.

  Attributes:
    process: the process.
    host: the name for the Host header, with the port.
    port: the port.
  """

  def __init__(self, log: pathlib.Path, folder: pathlib.Path):
    """Starts the process, and waits until it accepts connections.

    Args:
      log: the file to which the standard error of the process is appended.
      folder: the folder of the model.
    """
    with log.open('ab') as errors:
      self.process = subprocess.Popen(
        [
          *(sys.executable, '-m', 'coke_jax.main', 'serve'),
          *(str(folder), '--port=0'),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
      )
    assert self.process.stdout is not None
    line = self.process.stdout.readline()
    if not line.startswith('serving '):
      raise RuntimeError(f'the server did not start: see {log}')
    self.host = line.split()[-1].removeprefix('http://')
    self.port = int(self.host.rpartition(':')[2])

  def wait(self) -> int:
    """Waits for the end of the process. Returns its exit status."""
    assert self.process.stdout is not None
    status = self.process.wait(_STOP_SECONDS)
    self.process.stdout.close()
    return status


@contextlib.contextmanager
def started(
  log: pathlib.Path, folder: pathlib.Path = coke_jax.EXAMPLE_MODEL
) -> Iterator[Server]:
  """Starts a server, and kills it at the end of the `with` block."""
  server = Server(log, folder)
  try:
    yield server
  finally:
    server.process.kill()
    server.wait()


class Connection:
  """A connection to a server. The first `send` opens it."""

  def __init__(self, port: int):
    self._port = port
    self._reader: asyncio.StreamReader | None = None
    self._writer: asyncio.StreamWriter | None = None

  @property
  def is_open(self) -> bool:
    """False before the first `send` and after `close`."""
    return self._writer is not None

  async def send(self, data: bytes) -> None:
    """Sends bytes.

    Raises:
      OSError: the server has closed the connection.
    """
    if self._writer is None:
      self._reader, self._writer = await asyncio.open_connection(
        '127.0.0.1', self._port, limit=_LIMIT
      )
    self._writer.write(data)
    await self._writer.drain()

  async def receive(self, method: str = 'POST') -> Response:
    """Receives one response. It may be an interim response, with status 100.

    Args:
      method: the method of the request.

    Returns:
      The response, or `CLOSED` if the server closed the connection before the
      first byte of a response.

    Raises:
      EOFError, OSError, ValueError: the response is incomplete or malformed.
    """
    assert self._reader is not None
    try:
      first = await self._reader.readline()
    except ConnectionError:
      first = b''
    if not first:
      self.close()
      return CLOSED
    version, status = first.split(b' ', 2)[:2]
    if not version.startswith(b'HTTP/1.'):
      raise ValueError(f'{first[:100]!r}: expected a status line')
    headers = {}
    while (line := await self._reader.readline()).strip():
      name, _, value = line.decode('latin-1').partition(':')
      headers[name.lower()] = value.strip()
    if not line.endswith(b'\n'):
      raise EOFError('the headers are not complete')
    has_body = method != 'HEAD' and int(status) not in (100, 204, 304)
    body = await self._body(headers) if has_body else b''
    if headers.get('connection') == 'close':
      self.close()
    return Response(int(status), headers, body)

  async def _body(self, headers: dict[str, str]) -> bytes:
    assert self._reader is not None
    if 'content-length' in headers:
      return await self._reader.readexactly(int(headers['content-length']))
    if headers.get('transfer-encoding') != 'chunked':
      return await self._reader.read()
    parts = []
    while size := int(await self._reader.readline(), 16):
      parts.append(await self._reader.readexactly(size))
      await self._reader.readexactly(2)
    await self._reader.readexactly(2)
    return b''.join(parts)

  def end(self) -> None:
    """Signals to the server that no more bytes will be sent."""
    assert self._writer is not None
    with contextlib.suppress(OSError):
      self._writer.write_eof()

  def close(self) -> None:
    """Closes the connection. The next `send` opens a new connection."""
    if self._writer is not None:
      self._writer.close()
    self._reader = self._writer = None


def post(
  host: str, path: str, body: bytes, *headers: str, kind: str = 'json'
) -> bytes:
  """Returns the bytes of a POST request.

  Args:
    host: the Host header.
    path: the path, which may contain a query.
    body: the body.
    *headers: further header lines, such as `Expect: 100-continue`.
    kind: the part of the media type after `application/`.
  """
  lines = [
    f'POST {path} HTTP/1.1',
    f'Host: {host}',
    f'Content-Type: application/{kind}',
    f'Content-Length: {len(body)}',
    *headers,
  ]
  return '\r\n'.join([*lines, '', '']).encode('latin-1') + body


def get(host: str, path: str) -> bytes:
  """Returns the bytes of a GET request. See `post`."""
  return f'GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n'.encode('latin-1')


def log_file() -> pathlib.Path:
  """Returns a new file for the standard error of a server."""
  with tempfile.NamedTemporaryFile(
    prefix='coke_jax-server-', suffix='.log', delete=False
  ) as file:
    return pathlib.Path(file.name)
