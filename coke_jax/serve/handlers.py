"""The handlers of the JSON API."""

import functools
from typing import Annotated, Any, Literal

import fastapi
import numpy as np

from coke_jax.data import graph
from coke_jax.predict import known_facts, questions, validation
from coke_jax.serve import engine as engine_lib
from coke_jax.serve import (
  jobs,
  operations,
  response_schemas,
  responses,
  schemas,
)
from coke_jax.serve import served as served_lib

_MAX_LABELS = 50  # maximum number of labels that a search returns


async def run_predict(
  engine: engine_lib.Engine,
  served: served_lib.Served,
  parsed: list[questions.Question],
  top: int,
  restriction: known_facts.Restriction,
) -> list[Any]:
  """Answers questions. See `operations.predict`."""
  rounded = operations.round_top(top)
  return await engine.run(
    served,
    ('predict', rounded, operations.key_of(restriction)),
    functools.partial(operations.predict, served, rounded, restriction),
    [(question, top) for question in parsed],
  )


def router(engine: engine_lib.Engine) -> fastapi.APIRouter:
  """Returns the routes of the JSON API.

  Args:
    engine: runs the requests.
  """
  routes = fastapi.APIRouter(
    prefix='/v1',
    default_response_class=responses.Json,
    responses=response_schemas.ERRORS,
  )
  limits = engine.limits

  def check(body: Any) -> None:
    """Checks the numbers in a body against the limits of the server."""
    for name in ('top', 'per_head', 'similar', 'limit'):
      responses.check_number(name, getattr(body, name, 0) or 0, limits.top)
    for name in ('questions', 'facts', 'pairs', 'candidates'):
      given = getattr(body, name, None) or ()
      responses.check_number(name, len(given), limits.questions)
      answers = len(given) * getattr(body, 'top', 1)
      if name != 'candidates':
        responses.check_number(f'{name} * top', answers, limits.answers)

  @routes.get(
    '/model',
    summary='Describe the model and the limits',
    response_model=response_schemas.ModelResponse,
  )
  async def describe_model() -> Any:
    shown = (
      *('questions', 'top', 'answers'),
      *('body_bytes', 'lines', 'lines_bytes'),
    )
    return responses.Json(
      {
        **engine.current().metadata(),
        'limits': {name: getattr(limits, name) for name in shown},
      }
    )

  @routes.get(
    '/search',
    summary='Find labels by a part of them',
    response_model=response_schemas.SearchResponse,
  )
  async def search(
    text: Annotated[str, fastapi.Query(max_length=200)] = '',
    kind: Literal['entity', 'relation'] = 'entity',
    limit: Annotated[int, fastapi.Query(ge=1, le=_MAX_LABELS)] = 10,
  ) -> Any:
    """Finds labels that contain a text, regardless of case and accents.

    A relation whose label starts with `**` is the inverse of another relation:
    `Africa **region Kenya` means `Kenya region Africa`.
    """
    served = engine.current()
    words = served.model.data.vocabulary
    index, labels = {
      'entity': (served.entities, words.entities),
      'relation': (served.relations, words.relations),
    }[kind]
    found = [labels[one] for one in index.find(text, limit)]
    return responses.Json({'labels': found})

  @routes.post(
    '/predict',
    summary='Answer questions',
    response_model=response_schemas.PredictResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def answer(body: schemas.Predict) -> Any:
    check(body)
    served = engine.current()
    parsed = [served.question(labels) for labels in body.questions]
    candidates = None
    if body.candidates is not None:
      candidates = np.unique(
        np.array([served.entity(one) for one in body.candidates], np.int64)
      )
    restriction = known_facts.Restriction(
      new_only=body.new_only,
      exclude_own=body.exclude_own,
      type_matching=body.type_matching,
      candidates=candidates,
    )
    answers = await run_predict(engine, served, parsed, body.top, restriction)
    return responses.Json({'model': served.identity, 'answers': answers})

  @routes.post(
    '/rank',
    summary='Rank the heads or tails of facts',
    response_model=response_schemas.RankResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def rank(body: schemas.Rank) -> Any:
    check(body)
    served = engine.current()
    parsed = [served.fact(labels) for labels in body.facts]
    splits = tuple(split for split in graph.SPLITS if split in body.splits)
    restriction = known_facts.Restriction(
      splits=splits, new_only=True, type_matching=body.type_matching
    )
    rankings = await engine.run(
      served,
      ('rank', splits, body.type_matching),
      functools.partial(operations.rank, served, restriction),
      [(fact, side) for fact in parsed for side in validation.sides(body.side)],
    )
    return responses.Json({'model': served.identity, 'rankings': rankings})

  @routes.post(
    '/relations',
    summary='Predict relations between entities',
    response_model=response_schemas.RelationsResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def relations(body: schemas.Relations) -> Any:
    check(body)
    served = engine.current()
    pairs = [(served.entity(h), served.entity(t)) for h, t in body.pairs]
    answers = await engine.run(
      served,
      ('relations', body.new_only),
      functools.partial(operations.relations, served, body.new_only),
      [(head, tail, body.top) for head, tail in pairs],
    )
    return responses.Json({'model': served.identity, 'answers': answers})

  @routes.post(
    '/explain',
    summary='Find known facts that support facts',
    response_model=response_schemas.ExplainResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def explain(body: schemas.Explain) -> Any:
    check(body)
    served = engine.current()
    facts = [served.base_fact(labels) for labels in body.facts]
    found = await engine.run_job(
      served,
      lambda own: jobs.explain(own, facts, top=body.top, similar=body.similar),
    )
    return responses.Json({'model': served.identity, 'explanations': found})

  @routes.post(
    '/similar',
    summary='Find similar entities',
    response_model=response_schemas.SimilarResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def similar(body: schemas.Similar) -> Any:
    check(body)
    served = engine.current()
    served.entity(body.entity)
    if body.relation is not None:
      served.relation(body.relation)
    found = await engine.run_job(
      served, lambda own: jobs.similar(own, **body.model_dump())
    )
    return responses.Json({'model': served.identity, 'similar': found})

  @routes.post(
    '/discover',
    summary='Find new facts of a relation',
    response_model=response_schemas.DiscoverResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def discover(body: schemas.Discover) -> Any:
    check(body)
    served = engine.current()
    served.relation(body.relation)
    found = await engine.run_job(
      served, lambda own: jobs.discover(own, **body.model_dump())
    )
    return responses.Json({'model': served.identity, 'facts': found})

  @routes.post(
    '/audit',
    summary='Find implausible facts of an entity',
    response_model=response_schemas.AuditResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def audit(body: schemas.Audit) -> Any:
    check(body)
    served = engine.current()
    entity = served.entity(body.entity)
    found = await engine.run_job(
      served,
      lambda own: jobs.audit(own, entity, top=body.top, expected=body.expected),
    )
    return responses.Json({'model': served.identity, 'facts': found})

  @routes.post(
    '/map',
    summary='Map the contextual embeddings of an entity',
    response_model=response_schemas.MapResponse,
    responses=response_schemas.BODY_ERRORS,
  )
  async def contextual_map(body: schemas.Map) -> Any:
    served = engine.current()
    entity = served.entity(body.entity)
    found = await engine.run_job(
      served, lambda own: jobs.contextual_map(own, entity)
    )
    return responses.Json({'model': served.identity, **found})

  return routes
