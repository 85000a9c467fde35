"""Builds the application: the JSON API, the page, health and metrics."""

import importlib.resources
from collections.abc import Collection
from typing import Any

import fastapi
import prometheus_client
from starlette import types

from coke_jax import version
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import (
  guard,
  handlers,
  json_lines,
  response_schemas,
  responses,
  step_handlers,
)

_TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
_PAGES = {'/': 'index.html', '/docs': 'docs.html'}
_HEALTH = ('/healthz', '/readyz')


def build(
  engine: engine_lib.Engine, *, hosts: Collection[str] = (), token: str = ''
) -> types.ASGIApp:
  """Builds the application.

  Args:
    engine: runs the requests.
    hosts: the names that are accepted in the Host header. Default: all names.
    token: the token that requests must contain. Default: no token is needed.
  """
  app = fastapi.FastAPI(
    title='coke_jax',
    version=version.__version__,
    description='Questions about a knowledge graph, answered by CoKE.',
    docs_url=None,
    redoc_url=None,
    redirect_slashes=False,
    default_response_class=responses.Json,
  )
  routes = handlers.router(engine)
  step_handlers.add_routes(routes, engine)
  json_lines.add_route(routes, engine)
  app.include_router(routes)
  responses.add_handlers(app)
  files = _add_files(app)
  _add_health(app, engine)
  paths = {
    path for route in [*routes.routes, *app.routes] for path in [_path(route)]
  }
  return guard.Guard(
    app,
    limits=engine.limits,
    metrics=engine.metrics,
    paths=paths,
    open_paths={*files, *_HEALTH},
    hosts=hosts,
    token=token,
  )


def _path(route: Any) -> str:
  return str(getattr(route, 'path', ''))


def _add_files(app: fastapi.FastAPI) -> list[str]:
  """Reads each file of the page once, and adds a route for it.

  Returns:
    The URL paths of the files.
  """
  folder = importlib.resources.files('coke_jax.serve') / 'static'
  contents = {
    file.name: file.read_bytes()
    for file in folder.iterdir()
    if any(file.name.endswith(suffix) for suffix in _TYPES)
  }
  places = dict(_PAGES)
  for name in contents:
    if not name.endswith('.html'):
      places[f'/static/{name}'] = name
  for path, name in places.items():
    kind = next(
      kind for suffix, kind in _TYPES.items() if name.endswith(suffix)
    )
    app.add_api_route(
      path,
      _file(contents[name], kind),
      methods=['GET', 'HEAD'],
      include_in_schema=False,
    )
  return list(places)


def _file(content: bytes, kind: str) -> Any:
  async def respond() -> fastapi.Response:
    headers = {'Cache-Control': 'no-cache'}
    return fastapi.Response(content, media_type=kind, headers=headers)

  return respond


def _add_health(app: fastapi.FastAPI, engine: engine_lib.Engine) -> None:
  """Adds the routes for health, readiness and metrics."""

  @app.get(
    '/healthz',
    summary='Whether the process runs',
    response_model=response_schemas.HealthResponse,
  )
  async def health() -> Any:
    return responses.Json({'status': 'ok'})

  @app.get(
    '/readyz',
    summary='Whether requests are answered now',
    response_model=response_schemas.ReadyResponse,
    responses={503: response_schemas.ERRORS[503]},
  )
  async def ready() -> Any:
    if engine.stopping or engine.served is None:
      return responses.error(503, 'not ready')
    return responses.Json({'status': 'ready', 'model': engine.served.identity})

  @app.get(
    '/metrics',
    summary='Metrics in the format of Prometheus',
    response_class=fastapi.responses.PlainTextResponse,
  )
  async def metrics() -> Any:
    return fastapi.Response(
      engine.metrics.text(),
      media_type=prometheus_client.CONTENT_TYPE_LATEST,
    )
