"""The records in responses, for the OpenAPI page. See `response_schemas`."""

from typing import Annotated, Literal

import pydantic

Split = Literal['train', 'valid', 'test']
Triple = Annotated[list[str], pydantic.Field(min_length=3, max_length=3)]


class Record(pydantic.BaseModel):
  """The base class of all records and responses.

  Clients should ignore unknown fields, because later versions may add some.
  """

  model_config = pydantic.ConfigDict(strict=True)


class Answer(Record):
  """An answer to a question.

  `label` is an entity or a relation. A relation whose label starts with `**` is
  the inverse of another relation: `Africa **region Kenya` means `Kenya region
  Africa`. If the model was trained with another `data.inverse_marker`, its
  labels have that marker instead of `**`.

  `rank` is counted from 1. `score` is the logarithm of `probability`, which is
  the softmax of the scores of all entities or relations. `known_in` is the
  first split in which the answer is known, or an empty text.
  """

  label: str
  rank: int
  score: float
  probability: float
  known_in: Split | Literal['']


class CalibratedAnswer(Answer):
  """An answer to a question, as in `Answer`.

  `calibrated` is the calibrated probability that the answer is correct. It is
  null if the model is not calibrated, or if `method` is `chained`, see `Ask`.
  """

  calibrated: float | None


class Ranking(Record):
  """The rank of the head or tail of a fact among the candidates.

  `optimistic` and `pessimistic` are the ranks before and after all other
  candidates with an equal score. `rank` is the mean of these ranks.
  `candidates` is the number of all candidates. The last four fields are those
  of `CalibratedAnswer`.
  """

  fact: list[str]
  side: Literal['head', 'tail']
  rank: float
  optimistic: int
  pessimistic: int
  candidates: int
  score: float
  probability: float
  known_in: Split | Literal['']
  calibrated: float | None


class SupportingPath(Record):
  """A path of known facts from the head to the tail of a fact.

  In `text`, an arrow to the left, such as `<-borders-`, means that the path
  follows a fact from its tail to its head.
  """

  facts: list[Triple]
  text: str
  score: float
  probability: float


class SimilarFact(Record):
  """A known fact with the same relation and similar entities.

  `similarity` is the mean of the cosine between the heads and the cosine
  between the tails of this fact and the explained fact.
  """

  fact: Triple
  similarity: float


class Explanation(Record):
  """Known facts that support a fact.

  `complete` is false if the entities have so many facts that not all paths were
  tried.
  """

  fact: Triple
  score: float
  probability: float
  known_in: Split | Literal['']
  paths: list[SupportingPath]
  similar: list[SimilarFact]
  complete: bool


class Neighbor(Record):
  """An entity with a similar embedding. `similarity` is the cosine."""

  label: str
  rank: int
  similarity: float


class NewFact(Record):
  """A plausible fact that is not known.

  `known_tails` is the number of known tails of this head and relation. `score`
  is the logarithm of `probability`, plus a correction that depends on the head
  and the relation.
  """

  fact: Triple
  score: float
  probability: float
  known_tails: int
  calibrated: float | None


class Suspicion(Record):
  """A known fact that the model considers implausible.

  `tail_rank` is the rank of the tail among all entities except other known
  tails of this head and relation. `expected_tails` are the best entities that
  are neither known tails nor the head. For `head_rank` and `expected_heads`,
  head and tail are exchanged.
  """

  fact: Triple
  score: float
  tail_rank: float
  head_rank: float
  expected_tails: list[str]
  expected_heads: list[str]
  known_in: Split


class KnownFact(Record):
  """A known fact, and the first split that contains it."""

  fact: Triple
  known_in: Split


class CountedStep(Record):
  """A possible next step, see `Step`.

  `known` is the number of known facts along this step. `relation` is never an
  inverse relation.
  """

  relation: str
  backwards: bool
  known: int


class TracedFact(Record):
  """A fact of a path. `known_in` is empty if the fact is only predicted."""

  fact: Triple
  backwards: bool
  probability: float
  known_in: Split | Literal['']


class TracedPath(Record):
  """A path of facts, known or predicted, from an entity to an answer."""

  facts: list[TracedFact]
  score: float
  probability: float


class Point(Record):
  """A fact as a point of a map. `side` is the side of the mapped entity."""

  x: float
  y: float
  fact: Triple
  side: Literal['head', 'tail']
