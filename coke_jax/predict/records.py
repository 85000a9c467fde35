"""Records of predictions and ranks, and lists that convert to data frames."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, SupportsIndex, TypeVar, cast, overload

import numpy as np

from coke_jax.evaluate import ranks as ranks_lib

Record = TypeVar('Record')


@dataclasses.dataclass(frozen=True)
class Prediction:
  """One answer to a question.

  Attributes:
    label: the label of the answer, an entity or a relation.
    rank: position of the answer among the candidates, counted from 1.
    score: the logarithm of `probability`.
    probability: the softmax over all entities, or over all relations, including
      those that are not candidates.
    known_in: the first of `train`, `valid` and `test` in which the answer is
      known, see `known_facts`. Empty if the answer is new.
  """

  label: str
  rank: int
  score: float
  probability: float
  known_in: str


@dataclasses.dataclass(frozen=True)
class Ranking:
  """The rank of a fact's head or tail among the candidates.

  Attributes:
    fact: the labels of the triple or path.
    side: the end that is predicted, `head` or `tail`.
    rank: the realistic rank, the mean of `optimistic` and `pessimistic`.
    optimistic: the rank, counted from 1, if the entity comes before all other
      candidates with an equal score.
    pessimistic: the rank, counted from 1, if the entity comes after all other
      candidates with an equal score.
    candidates: number of candidates, including the entity itself.
    score: the logarithm of `probability`.
    probability: the softmax of the model's scores over all entities.
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
  """A list of records of one kind, or a list of such lists.

  A slice is also a `Records` list.

  Attributes:
    kind: the class of the records. None if it is unknown.
    nested: whether the items are lists of records.
  """

  def __init__(
    self,
    items: Iterable[Record] = (),
    kind: type | None = None,
    *,
    nested: bool = False,
  ):
    """Makes a list of records.

    Args:
      items: records, or lists of records.
      kind: the class of the records. If there are no records, `to_pandas` takes
        the names of the columns from this class. Default: unknown.
      nested: whether the items are lists of records. Default: no.
    """
    super().__init__(items)
    self.kind = kind
    self.nested = nested

  @overload
  def __getitem__(self, index: SupportsIndex) -> Record: ...

  @overload
  def __getitem__(self, index: slice) -> 'Records[Record]': ...

  def __getitem__(self, index: SupportsIndex | slice) -> Any:
    """Returns one record, or a `Records` list if the index is a slice."""
    found = super().__getitem__(index)
    if isinstance(index, slice):
      return Records(cast(list[Record], found), self.kind, nested=self.nested)
    return found

  def to_pandas(self) -> Any:
    """Converts the records to a data frame with a column for each field.

    Returns:
      A `pandas.DataFrame` with one row for each record. For a list of lists,
      the first column, `question`, is the index of the inner list. If there are
      no records and `kind` is None, the data frame has no columns.

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
    columns = None
    if not rows and self.kind is not None:
      names = [field.name for field in dataclasses.fields(self.kind)]
      columns = ['question', *names] if self.nested else names
    return pandas.DataFrame(rows, columns=columns)


def predictions(
  labels: Sequence[str],
  entities: np.ndarray,
  scores: np.ndarray,
  known_in: np.ndarray,
) -> Iterator[Records[Prediction]]:
  """Makes records of the answers to B questions.

  Args:
    labels: the labels of all entities, or of all relations, ordered by id.
    entities: integers [B, k], the ids of the answers, best first.
    scores: floats [B, k], log-probabilities. Minus infinity means no answer.
    known_in: text [B, k], see `Prediction`.

  Yields:
    The answers to one question, best first.
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
      (
        Prediction(labels[entity], rank, score, probability, split)
        for rank, (entity, score, probability, split) in enumerate(
          fields, start=1
        )
        if score > -math.inf
      ),
      Prediction,
    )


def rankings(
  facts: Sequence[tuple[tuple[str, ...], str]],
  ranks: ranks_lib.Ranks,
  scores: np.ndarray,
  known_in: np.ndarray,
) -> Iterator[Ranking]:
  """Makes records of the ranks of B entities.

  Args:
    facts: B pairs of the labels of a fact and the side of the ranked entity.
    ranks: the ranks of the B entities.
    scores: float32 [B], log-probabilities.
    known_in: text [B], see `Prediction`.

  Yields:
    One record for each entity.
  """
  for row, (labels, side) in enumerate(facts):
    yield Ranking(
      fact=labels,
      side=side,
      rank=float(ranks.realistic[row]),
      optimistic=int(ranks.optimistic[row]),
      pessimistic=int(ranks.pessimistic[row]),
      candidates=int(ranks.candidates[row]),
      score=float(scores[row]),
      probability=float(np.exp(scores[row])),
      known_in=str(known_in[row]),
    )


def _fields(record: Any) -> dict[str, Any]:
  """Returns the fields of a record by name, in the order of definition."""
  return {
    field.name: getattr(record, field.name)
    for field in dataclasses.fields(record)
  }
