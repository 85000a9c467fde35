"""Handles the requests /facts, /steps, /ask and /trace of the browser page.

A step follows a relation from the head to the tail, or backwards. /ask finds
the entities to which the steps from an entity lead. /trace finds paths of these
steps to one answer.
"""

from typing import Any

import fastapi

from coke_jax.data import graph
from coke_jax.predict import known_facts
from coke_jax.serve import (
  chains,
  handlers,
  neighborhood,
  response_schemas,
  responses,
  schemas,
)
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import served as served_lib


def add_routes(routes: fastapi.APIRouter, engine: engine_lib.Engine) -> None:
  """Adds the handlers to the routes of the API."""
  limits = engine.limits

  @routes.post(
    '/facts',
    summary='List the known facts of an entity',
    response_model=response_schemas.FactsResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def facts(body: schemas.Facts) -> Any:
    responses.check_number('limit', body.limit, limits.top)
    served = engine.current()
    known = served.neighborhood.facts
    words = served.model.data.vocabulary
    rows = served.neighborhood.rows(served.entity(body.entity))
    shown = rows[body.offset : body.offset + body.limit]
    found = [
      {
        'fact': (words.entities[h], words.relations[r], words.entities[t]),
        'known_in': graph.SPLITS[split],
      }
      for (h, r, t), split in zip(
        known.triples[shown].tolist(), known.split[shown].tolist(), strict=True
      )
    ]
    return responses.Json(
      {'model': served.identity, 'total': len(rows), 'facts': found}
    )

  @routes.post(
    '/steps',
    summary='List all possible next steps',
    response_model=response_schemas.StepsResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def next_steps(body: schemas.NextSteps) -> Any:
    served = engine.current()
    entity = served.entity(body.entity)
    steps = _steps(served, body.steps)
    found = served.neighborhood.next_steps(entity, steps)
    return responses.Json({'model': served.identity, 'steps': found})

  @routes.post(
    '/ask',
    summary='Answer a question of one or several steps',
    response_model=response_schemas.AskResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def ask(body: schemas.Ask) -> Any:
    responses.check_number('top', body.top, limits.top)
    served = engine.current()
    entity = served.entity(body.entity)
    steps = _steps(served, body.steps)
    question = served.neighborhood.question(
      entity, steps, served.model.max_path_length
    )
    if question is not None:
      method = 'model'
      (answers,) = await handlers.run_predict(
        engine,
        served,
        [question],
        body.top,
        known_facts.Restriction(
          new_only=body.new_only,
          exclude_own=body.exclude_own,
          type_matching=body.type_matching,
        ),
      )
    else:
      method = 'chained'
      filtered = chains.Filter(
        body.new_only, body.exclude_own, body.type_matching
      )
      answers = await engine.run_job(
        served,
        lambda own: chains.answer(
          own, entity, steps, top=body.top, filtered=filtered
        ),
      )
    return responses.Json(
      {'model': served.identity, 'method': method, 'answers': answers}
    )

  @routes.post(
    '/trace',
    summary='Find paths to an answer',
    response_model=response_schemas.TraceResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def trace(body: schemas.Trace) -> Any:
    responses.check_number('top', body.top, limits.top)
    served = engine.current()
    entity, goal = served.entity(body.entity), served.entity(body.answer)
    steps = _steps(served, body.steps)
    found = await engine.run_job(
      served,
      lambda own: chains.trace(own, entity, steps, goal, top=body.top),
    )
    return responses.Json({'model': served.identity, 'paths': found})


def _steps(
  served: served_lib.Served, given: list[schemas.Step]
) -> list[neighborhood.Step]:
  return [served.step(step.relation, step.backwards) for step in given]
