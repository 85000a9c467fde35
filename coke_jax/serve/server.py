"""Runs a server in threads, and stops it without dropping requests."""

import dataclasses
import os
import socket
import threading
from collections.abc import Collection

import uvicorn

from coke_jax import errors
from coke_jax.serve import addresses
from coke_jax.serve import app as app_lib
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import limits as limits_lib
from coke_jax.serve import metrics as metrics_lib
from coke_jax.serve import reload as reload_lib

LOCAL_HOSTS = ('localhost', '127.0.0.1', '[::1]')
_BACKLOG = 2048


class ServerError(errors.CokeError, OSError):
  """A server that cannot be started."""


@dataclasses.dataclass(frozen=True)
class Options:
  """How a server is reached, and how it loads its model.

  Attributes:
    host: the address to bind to. By default, only this machine can connect.
    port: the port. 0 means any free port.
    hosts: the names that are accepted in the Host header. Default:
      `LOCAL_HOSTS` if only this machine can connect, otherwise all names.
    token: the token that requests must contain. Default: no token.
    reload_seconds: the time between two checks for a new checkpoint. 0 means
      no checks.
    warm_up: whether to compile programs before requests need them. If the
      vocabulary is cut, all programs are compiled before the server is ready.
      Otherwise, the programs of predictions are compiled before the server is
      ready, and all other programs in the background.
  """

  host: str = '127.0.0.1'
  port: int = 8000
  hosts: tuple[str, ...] = ()
  token: str = dataclasses.field(default='', repr=False)
  reload_seconds: float = 10.0
  warm_up: bool = True

  def __post_init__(self) -> None:
    """Raises ServerError if the port is not valid."""
    if not 0 <= self.port < 1 << 16:
      raise ServerError(f'port is {self.port}: expected 0 to {(1 << 16) - 1}')

  @property
  def is_local(self) -> bool:
    """Whether only this machine can connect."""
    return addresses.is_local(self.host)


class Server:
  """A server for the model of one folder.

  Use it as a context manager. The `with` block begins when the server accepts
  connections. At the end of the block, the remaining requests are answered, and
  the server is stopped.

  Attributes:
    engine: runs the requests.
    port: the port, once the server is started.
  """

  def __init__(
    self,
    folder: str | os.PathLike[str],
    options: Options | None = None,
    limits: limits_lib.Limits | None = None,
  ):
    """Prepares a server.

    Args:
      folder: a work folder, or the folder of an exported model.
      options: the options. Default: `Options()`.
      limits: limits of the requests. Default: `Limits()`.
    """
    self._folder = folder
    self._options = options or Options()
    self._limits = limits or limits_lib.Limits()
    self.engine = engine_lib.Engine(self._limits, metrics_lib.Metrics())
    self.port = self._options.port
    self._host = self._options.host

  @property
  def address(self) -> str:
    """The address for a browser on this machine."""
    return addresses.here(self._host, self.port)

  @property
  def other_addresses(self) -> list[str]:
    """The addresses for other machines, see `addresses.elsewhere`."""
    return addresses.elsewhere(self._host, self.port)

  def __enter__(self) -> 'Server':
    """Loads the model and starts the server.

    Raises:
      ServerError: the address cannot be used.
      errors.CokeError: the model cannot be loaded.
    """
    listener = self._listen()
    try:
      self._reloader = reload_lib.Reloader(
        self._folder, self.engine, warm_up=self._options.warm_up
      )
      self._reloader.load()
    except BaseException:
      listener.close()
      self.engine.stop()
      raise
    application = app_lib.build(
      self.engine, hosts=self._hosts(), token=self._options.token
    )
    self._uvicorn = uvicorn.Server(
      uvicorn.Config(
        application,
        log_level='warning',
        access_log=False,
        server_header=False,
        date_header=False,
        ws='none',
        proxy_headers=False,
        lifespan='off',
        backlog=_BACKLOG,
        limit_concurrency=self._limits.connections,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=int(self._limits.seconds) + 1,
      )
    )
    self._thread = threading.Thread(
      target=self._uvicorn.run,
      kwargs={'sockets': [listener]},
      name='coke_jax-http',
      daemon=True,
    )
    self._thread.start()
    if self._options.reload_seconds:
      self._reloader.start(self._options.reload_seconds)
    return self

  def __exit__(self, *_: object) -> None:
    """Stops accepting connections, answers all requests, then returns."""
    self.engine.stopping = True
    self._uvicorn.should_exit = True
    # If a program is being compiled, this call waits for it.
    self._reloader.stop()
    self._thread.join()
    self.engine.stop()

  @property
  def is_alive(self) -> bool:
    """Whether the server still accepts connections."""
    return self._thread.is_alive()

  def wait(self) -> None:
    """Waits until the server ends because of an error."""
    self._thread.join()

  def _hosts(self) -> Collection[str]:
    if self._options.hosts:
      return [host.lower() for host in self._options.hosts]
    return LOCAL_HOSTS if self._options.is_local else ()

  def _listen(self) -> socket.socket:
    """Opens the port, so that an error is found before the model is loaded."""
    options = self._options
    try:
      found = socket.getaddrinfo(
        options.host, options.port, type=socket.SOCK_STREAM
      )
      family, kind, protocol, _, address = found[0]
      listener = socket.socket(family, kind, protocol)
      listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      listener.bind(address)
      listener.listen(_BACKLOG)
    except (OSError, OverflowError) as error:
      raise ServerError(
        f'{options.host}:{options.port}: cannot be used: {error}'
      ) from error
    bound, self.port = listener.getsockname()[:2]
    if addresses.is_unspecified(bound):  # `host` can be '0' for '0.0.0.0'.
      self._host = bound
    return listener
