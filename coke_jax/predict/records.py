"""What asking a model gives back: plain records, in lists that make tables."""

import dataclasses
import math
from collections.abc import Iterator, Sequence
from typing import Any, SupportsIndex, TypeVar, cast, overload

import numpy as np

Record = TypeVar('Record')


@dataclasses.dataclass(frozen=True)
class Prediction:
  """One answer to a question.

  Attributes:
    label: the entity.
    rank: its place among the entities that were let compete, from 1.
    score: the logarithm of its probability among all entities.
    probability: the softmax over all entities.
    known_in: the first of train, valid and test whose facts (valid and test
      together with those of train) give this answer; empty if none does.
  """

  label: str
  rank: int
  score: float
  probability: float
  known_in: str


@dataclasses.dataclass(frozen=True)
class Ranking:
  """Where one end of a given fact stands when the model is asked for it.

  Attributes:
    fact: the labels of the triple or path.
    side: the end that was asked for, `head` or `tail`.
    rank: among `candidates` entities, ties at their mean rank (realistic).
    optimistic: the rank if it came first among its equals.
    pessimistic: the rank if it came last among its equals.
    candidates: entities in the ranking, the asked one among them.
    score: the logarithm of its probability among all entities.
    probability: the softmax over all entities.
    known_in: as in `Prediction`.
  """

  fact: tuple[str, ...]
  side: str
  rank: float
  optimistic: int
  pessimistic: int
  candidates: int
  score: float
  probability: float
  known_in: str


class Records(list[Record]):
  """A list of records of one kind, or a list of such lists."""

  @overload
  def __getitem__(self, index: SupportsIndex) -> Record: ...

  @overload
  def __getitem__(self, index: slice) -> 'Records[Record]': ...

  def __getitem__(self, index: SupportsIndex | slice) -> Any:
    """A record, or for a slice the `Records` there."""
    found = super().__getitem__(index)
    if isinstance(index, slice):
      return Records(cast(list[Record], found))
    return found

  def to_pandas(self) -> Any:
    """A data frame with a row for each record and a column for each field.

    For a list of lists there is a first column `question`, which counts the
    lists from 0.

    Raises:
      ImportError: pandas is not installed.
    """
    try:
      import pandas
    except ImportError:
      raise ImportError('to_pandas() needs: pip install pandas') from None
    rows: list[dict[str, Any]] = []
    for number, item in enumerate(self):
      if isinstance(item, Records):
        rows += [{'question': number, **_fields(record)} for record in item]
      else:
        rows.append(_fields(item))
    return pandas.DataFrame(rows)


def predictions(
  labels: Sequence[str],
  entities: np.ndarray,
  scores: np.ndarray,
  known_in: np.ndarray,
) -> Iterator[Records[Prediction]]:
  """The answers to each of B questions.

  Args:
    labels: of all entities.
    entities: int32 [B, k], best first.
    scores: float32 [B, k], minus infinity where there is no answer.
    known_in: text [B, k].
  """
  probabilities = np.exp(scores)
  for row in range(len(entities)):
    fields = zip(
      entities[row].tolist(),
      scores[row].tolist(),
      probabilities[row].tolist(),
      known_in[row].tolist(),
      strict=True,
    )
    yield Records(
      Prediction(labels[entity], rank, score, probability, split)
      for rank, (entity, score, probability, split) in enumerate(
        fields, start=1
      )
      if score > -math.inf
    )


def _fields(record: Any) -> dict[str, Any]:
  """The fields of a record by name, in their order."""
  return {
    field.name: getattr(record, field.name)
    for field in dataclasses.fields(record)
  }
