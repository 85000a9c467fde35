"""The bodies of responses, for the OpenAPI page.

The server does not create these objects, because checking every response would
take time. A test compares the responses with these classes.
"""

from typing import Annotated, Any, Literal

import pydantic

from coke_jax.serve import record_schemas as records


class Error(records.Record):
  """An error. `error` states what is wrong and what was expected."""

  error: str


class ShownLimits(records.Record):
  """The limits of requests.

  A request has at most `questions` questions. The response has at most `top`
  answers to each of them, and at most `answers` answers to all of them
  together. A body has at most `body_bytes` bytes. A body of JSON lines has at
  most `lines` lines and `lines_bytes` bytes.
  """

  questions: int
  top: int
  answers: int
  body_bytes: int
  lines: int
  lines_bytes: int


class Response(records.Record):
  """The base class of responses that a model computes."""

  model: Annotated[
    str,
    pydantic.Field(
      description='Identifies the model: the first characters of the SHA-256 '
      'of its parameters.'
    ),
  ]


class ModelResponse(Response):
  """A description of the model.

  `loaded` is the time of loading, in seconds since 1970.
  `relations` and `facts` are counted without inverse relations.
  `inverse_relations` states whether the model has inverse relations, see
  `Answer`. `calibrated_on` is the split with which the probabilities were
  calibrated, or null if the model is not calibrated.
  """

  name: str
  loaded: float
  entities: int
  relations: int
  facts: int
  max_path_length: int
  inverse_relations: bool
  num_layers: int
  calibrated_on: records.Split | None
  limits: ShownLimits


class SearchResponse(records.Record):
  """The labels that were found, best first."""

  labels: list[str]


class PredictResponse(Response):
  """The answers to each question, best first."""

  answers: list[list[records.CalibratedAnswer]]


class RankResponse(Response):
  """The rankings, in the order of the facts.

  If `side` is `both`, each fact has two rankings: first of the tail, then
  of the head.
  """

  rankings: list[records.Ranking]


class RelationsResponse(Response):
  """The relations between each pair, best first. See `Answer`."""

  answers: list[list[records.Answer]]


class ExplainResponse(Response):
  """An explanation of each fact."""

  explanations: list[records.Explanation]


class SimilarResponse(Response):
  """The nearest entities, best first."""

  similar: list[records.Neighbor]


class DiscoverResponse(Response):
  """New facts, the most plausible ones first."""

  facts: list[records.NewFact]


class AuditResponse(Response):
  """Known facts, the least plausible ones first."""

  facts: list[records.Suspicion]


class MapResponse(Response):
  """The points of a map.

  `explained` is the share of the variance in the direction of x, then of y.
  """

  points: list[records.Point]
  explained: list[float]


class FactsResponse(Response):
  """Some known facts of an entity. `total` is the number of all its facts."""

  total: int
  facts: list[records.KnownFact]


class StepsResponse(Response):
  """All possible next steps. Frequent steps come first."""

  steps: list[records.CountedStep]


class AskResponse(Response):
  """The answers, best first. See `Ask` for `method`."""

  method: Literal['model', 'chained']
  answers: list[records.CalibratedAnswer]


class TraceResponse(Response):
  """Paths to the answer.

  Paths of known facts come first, then all other paths. Each of the two groups
  is sorted by `score`, highest first.
  """

  paths: list[records.TracedPath]


class HealthResponse(records.Record):
  """The process of the server runs."""

  status: Literal['ok']


class ReadyResponse(Response):
  """Requests are answered now."""

  status: Literal['ready']


class AnsweredLine(records.Record):
  """The answers to the question in a line of the request."""

  line: int
  answers: list[records.CalibratedAnswer]


class BadLine(records.Record):
  """An error in a line of the request."""

  line: int
  error: str


Line: pydantic.TypeAdapter[AnsweredLine | BadLine] = pydantic.TypeAdapter(
  AnsweredLine | BadLine
)


def _errors(descriptions: dict[int, str]) -> dict[int | str, dict[str, Any]]:
  return {
    status: {'model': Error, 'description': text}
    for status, text in descriptions.items()
  }


# All routes of the API can return `ERRORS`. Routes that receive a body can also
# return `BODY_ERRORS`.
ERRORS = _errors(
  {
    401: 'The token is missing or wrong.',
    421: 'The Host header is not one of the names of the server.',
    422: 'A field or a label is not valid.',
    503: 'The server is too busy, or the request took too much time. Repeat '
    'the request after the number of seconds in the header `Retry-After`.',
  }
)
ERRORS[503]['headers'] = {'Retry-After': {'schema': {'type': 'integer'}}}
BODY_ERRORS = _errors(
  {
    408: 'The body was sent too slowly.',
    413: 'The body or a number in it exceeds a limit of the server.',
    415: 'The header Content-Type or Content-Encoding is not accepted.',
  }
)
