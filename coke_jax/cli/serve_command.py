"""The command that answers questions over HTTP."""

import os
import time

import ml_collections

from coke_jax import errors
from coke_jax.cli import checks
from coke_jax.data import user_paths
from coke_jax.training import interruption

_POLL_SECONDS = 0.2


class ServeError(errors.CokeError, RuntimeError):
  """The server cannot be started, or has ended because of an error."""


def serve(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  host: str,
  port: int,
  token_file: str,
) -> None:
  """Answers requests until SIGTERM or SIGINT, and then the waiting requests."""
  try:
    from coke_jax.serve import server
  except ImportError as error:
    raise ServeError(
      f"{error}: expected the packages of pip install 'coke_jax[serve]'"
    ) from error
  checks.trained_workdir(config, workdir)
  options = server.Options(host=host, port=port, token=_token(token_file))
  # `main` also watches for signals, but gives the waiting requests only a few
  # seconds. So the watch below handles the first signal. This watch ends before
  # the requests are answered, so that `main` handles a second signal.
  with (
    server.Server(workdir, options) as running,
    interruption.Watch('answering the waiting requests') as watch,
  ):
    print(f'serving {workdir} at {running.address}', flush=True)
    if others := running.other_addresses:
      print(f'other machines can connect to {" or ".join(others)}', flush=True)
    while watch.received is None:
      time.sleep(_POLL_SECONDS)
      if not running.is_alive:
        raise ServeError(f'{running.address}: the server ended unexpectedly')


def _token(path: str) -> str:
  """Reads the token from a file. Returns '' if `path` is empty."""
  if not path:
    return ''
  try:
    token = user_paths.expand(path).read_text(encoding='utf-8').strip()
  except (OSError, ValueError) as error:
    raise ServeError(f'--token-file={path}: cannot be read: {error}') from error
  if not token:
    raise ServeError(f'--token-file={path}: is empty: expected a token')
  if len(token.splitlines()) > 1:
    raise ServeError(f'--token-file={path}: expected one token in one line')
  return token
