"""The bodies of requests. Their fields and limits appear in the OpenAPI page.

A server has more limits, such as the number of questions of a request.
`handlers` checks these limits.
"""

from typing import Annotated, Literal

import pydantic

Label = Annotated[str, pydantic.StringConstraints(max_length=65_536)]
Sequence = Annotated[list[Label], pydantic.Field(min_length=1, max_length=1002)]
Top = Annotated[int, pydantic.Field(ge=1, le=1_000_000)]
Side = Literal['head', 'tail']
Splits = Annotated[
  list[Literal['train', 'valid', 'test']], pydantic.Field(max_length=3)
]


class Body(pydantic.BaseModel):
  """The base class of all bodies. Unknown fields raise an error."""

  model_config = pydantic.ConfigDict(extra='forbid', strict=True)


class Predict(Body):
  """Questions, with the same options as `Model.predict`.

  `questions` are lists of labels with `?` at one end, such as
  `["France", "borders", "?"]`. A question about a path contains several
  relations. A relation whose label starts with `**` is followed from tail to
  head: `["Africa", "**region", "?"]` has the same answers as
  `["?", "region", "Africa"]`.
  """

  questions: list[Sequence]
  top: Top = 10
  new_only: bool = False
  exclude_own: bool = False
  type_matching: bool = False
  candidates: list[Label] | None = None


class Rank(Body):
  """Facts whose heads or tails are ranked, as by `Model.rank`."""

  facts: list[Sequence]
  side: Literal['head', 'tail', 'both'] = 'both'
  splits: Splits = ['train', 'valid', 'test']
  type_matching: bool = False


class Relations(Body):
  """Pairs of head and tail between which relations are predicted.

  In the response, a relation whose label starts with `**` is the inverse of
  another relation: `Africa **region Kenya` means `Kenya region Africa`.
  """

  pairs: list[
    Annotated[list[Label], pydantic.Field(min_length=2, max_length=2)]
  ]
  top: Top = 10
  new_only: bool = False


class Explain(Body):
  """Triples to explain, as by `Model.explain`."""

  facts: list[Sequence]
  top: Annotated[int, pydantic.Field(ge=0, le=1_000_000)] = 10
  similar: Annotated[int, pydantic.Field(ge=0, le=1_000_000)] = 3


class Similar(Body):
  """An entity whose similar entities are found, as by `Model.similar`."""

  entity: Label
  relation: Label | None = None
  side: Side = 'head'
  top: Top = 10
  type_matching: bool = False


class Discover(Body):
  """A relation for which new facts are found, as by `Model.discover`."""

  relation: Label
  top: Top = 100
  per_head: Top | None = None
  type_matching: bool = True


class Audit(Body):
  """An entity whose least plausible known facts are found."""

  entity: Label
  top: Top = 10
  expected: Annotated[int, pydantic.Field(ge=0, le=100)] = 3


class Facts(Body):
  """An entity whose known facts are listed.

  The first `offset` facts are skipped. Of the remaining facts, at most `limit`
  are listed.
  """

  entity: Label
  offset: Annotated[int, pydantic.Field(ge=0, le=1_000_000_000)] = 0
  limit: Top = 100


class Step(Body):
  """A relation. If `backwards` is true, the step leads from tail to head."""

  relation: Label
  backwards: bool = False


Steps = Annotated[list[Step], pydantic.Field(max_length=8)]


class NextSteps(Body):
  """An entity and the steps from it. All possible next steps are listed."""

  entity: Label
  steps: Steps = []


class Ask(Body):
  """A question as an entity and one to eight steps from it.

  `method` in the response is `chained` if the model was not trained on paths of
  this length. It is also `chained` if the steps have both directions and the
  model has no inverse relations. In a chain, each step starts from the best
  answers to the previous step, and the probabilities of the steps are
  multiplied.
  """

  entity: Label
  steps: Annotated[list[Step], pydantic.Field(min_length=1, max_length=8)]
  top: Top = 10
  new_only: bool = False
  exclude_own: bool = False
  type_matching: bool = False


class Trace(Body):
  """A question as in `Ask`, and an answer. Paths to this answer are found."""

  entity: Label
  steps: Annotated[list[Step], pydantic.Field(min_length=1, max_length=8)]
  answer: Label
  top: Top = 10


class Map(Body):
  """An entity whose contextual embeddings are mapped to the plane."""

  entity: Label
