"""From labels to ids: questions, facts and sequences that a model can be asked.

A question is a path of labels with `?` at one end: `(head, relation, '?')`,
`('?', relation, tail)`, or with several relations in between. A fact has no
`?`. What the model was never trained on is refused with the reason.
"""

import dataclasses
import operator
import reprlib
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from coke_jax import errors
from coke_jax.data import queries
from coke_jax.data import vocabulary as vocabulary_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
  """A walk from a known entity to the unknown one.

  Attributes:
    entity: the id of the entity that is known.
    relations: indices of the relations between the two, as they are asked.
    asks_head: whether the unknown entity comes first: (? r1 .. rk o).
  """

  entity: int
  relations: tuple[int, ...]
  asks_head: bool


UNKNOWN = '?'
SIDES = ('tail', 'head')

Labels = Sequence[str]

_SHORT = reprlib.Repr()  # errors stay readable, however long what they quote


_SHORT.maxstring = _SHORT.maxother = 200


_MOST_LABELS_SHOWN = 12


class QuestionError(errors.CokeError, ValueError):
  """A question that the model cannot be asked, with the reason."""


@dataclasses.dataclass(frozen=True)
class Fact:
  """A triple or path as ids.

  Attributes:
    labels: as they were given.
    head: an entity id.
    relations: indices of the relations between the two, one or more.
    tail: an entity id.
  """

  labels: tuple[str, ...]
  head: int
  relations: tuple[int, ...]
  tail: int

  def question(self, side: str) -> Question:
    """The question whose answer is the entity at `side`."""
    asks_head = side == 'head'
    return Question(
      self.tail if asks_head else self.head, self.relations, asks_head
    )

  def answer(self, side: str) -> int:
    """The entity at `side`."""
    return self.head if side == 'head' else self.tail


class Parser:
  """Reads labels as ids of one vocabulary.

  Attributes:
    vocabulary: the labels that are known.
    max_path_length: relations in the longest path the model was trained on.
  """

  def __init__(
    self, vocabulary: vocabulary_lib.Vocabulary, max_path_length: int
  ):
    self.vocabulary = vocabulary
    self.max_path_length = max_path_length

  def question(self, labels: Labels, *, hints: bool = True) -> Question:
    """The ids of a question.

    Args:
      labels: with `?` first or last.
      hints: whether the error of an unknown label looks for the closest ones,
        which takes a moment in a large vocabulary.

    Raises:
      QuestionError: an unknown label, no `?` at an end, or more relations than
        the model was trained on.
    """
    relations = self._relations(labels, hints)
    if (labels[0] == UNKNOWN) == (labels[-1] == UNKNOWN):
      raise QuestionError(
        f'{_show(labels)}: expected {UNKNOWN!r} at one end: the model predicts '
        'one entity, and no relations'
      )
    asks_head = labels[0] == UNKNOWN
    given = labels[-1] if asks_head else labels[0]
    return Question(self._entity(labels, given, hints), relations, asks_head)

  def fact(self, labels: Labels) -> Fact:
    """The ids of a complete triple or path.

    Raises:
      QuestionError: an unknown label, or more relations than the model was
        trained on.
    """
    relations = self._relations(labels, hints=True)
    ends = labels[0], labels[-1]
    if UNKNOWN in ends and UNKNOWN not in self.vocabulary.entity_ids:
      raise QuestionError(
        f'{_show(labels)}: expected a fact, with no {UNKNOWN!r}'
      )
    return Fact(
      tuple(labels),
      self._entity(labels, labels[0], hints=True),
      relations,
      self._entity(labels, labels[-1], hints=True),
    )

  def sequence(self, labels: Labels, *, hints: bool = True) -> list[int]:
    """The token ids of a question or a fact, `?` as the MASK.

    Raises:
      QuestionError: as in `question`; or both ends are `?`.
    """
    relations = self._relations(labels, hints)
    if labels[0] == labels[-1] == UNKNOWN:
      raise QuestionError(
        f'{_show(labels)}: expected {UNKNOWN!r} at one end at most: the model '
        'was never trained with both entities masked'
      )
    head, tail = (
      self.vocabulary.mask_id
      if label == UNKNOWN
      else self._entity(labels, label, hints)
      for label in (labels[0], labels[-1])
    )
    first = self.vocabulary.num_entities
    return [head, *(first + relation for relation in relations), tail]

  def tokens(
    self, sequences: Sequence[Sequence[int]], width: int
  ) -> np.ndarray:
    """N sequences of token ids, filled up with PAD: int32 [N, width]."""
    return _filled_up(sequences, self.vocabulary.pad_id, width)

  def entity(self, label: str) -> int:
    """The id of an entity.

    Raises:
      QuestionError: an unknown label, with the closest known ones.
    """
    if not isinstance(label, str):
      raise QuestionError(f'{_SHORT.repr(label)}: expected a label, a text')
    try:
      return self.vocabulary.entity_id(label)
    except KeyError as error:
      raise QuestionError(error.args[0]) from None

  def _relations(self, labels: Labels, hints: bool) -> tuple[int, ...]:
    """The relations' indices, after all that holds for any sequence."""
    if isinstance(labels, str):
      raise QuestionError(
        f'{_SHORT.repr(labels)} is one text: expected a sequence of labels, '
        f"such as ('head', 'relation', {UNKNOWN!r})"
      )
    if not isinstance(labels, Sequence) or not all(
      isinstance(label, str) for label in labels
    ):
      raise QuestionError(
        f'{_SHORT.repr(labels)}: expected a sequence of labels, which are '
        f"texts, such as ('head', 'relation', {UNKNOWN!r})"
      )
    if len(labels) < 3:
      raise QuestionError(
        f'{_show(labels)}: expected an entity, one or more relations and an '
        f'entity, or {UNKNOWN!r} in its place'
      )
    relations = labels[1:-1]
    if UNKNOWN in relations and UNKNOWN not in self.vocabulary.relation_ids:
      raise QuestionError(
        f'{_show(labels)}: the model was never trained to predict a relation: '
        f'expected {UNKNOWN!r} at an end'
      )
    if len(relations) > self.max_path_length:
      raise QuestionError(
        f'{_show(labels)}: {len(relations)} relations: the model was trained '
        f'on at most {self.max_path_length}'
      )
    try:
      return tuple(
        self.vocabulary.relation_id(label, hints=hints) for label in relations
      )
    except KeyError as error:
      raise QuestionError(f'{_show(labels)}: {error.args[0]}') from None

  def _entity(self, labels: Labels, label: str, hints: bool) -> int:
    try:
      return self.vocabulary.entity_id(label, hints=hints)
    except KeyError as error:
      raise QuestionError(f'{_show(labels)}: {error.args[0]}') from None


def to_queries(
  asked: Sequence[Question],
  answers: np.ndarray,
  vocabulary: vocabulary_lib.Vocabulary,
  width: int,
) -> queries.Queries:
  """Questions as masked sequences.

  Args:
    asked: N questions.
    answers: int32 [N], the gold answers; or none at all, [0].
    vocabulary: gives relations and MASK their token ids.
    width: K, tokens in a row.

  Returns:
    N queries, with the given answers.
  """
  sequences = []
  for question in asked:
    relations = [vocabulary.num_entities + r for r in question.relations]
    ends = [question.entity, vocabulary.mask_id]
    first, last = ends[::-1] if question.asks_head else ends
    sequences.append([first, *relations, last])
  tokens = _filled_up(sequences, vocabulary.pad_id, width)
  position = (tokens == vocabulary.mask_id).argmax(axis=1).astype(np.int32)
  counts = np.zeros(len(asked) + 1, dtype=np.int64)
  if len(answers):
    counts = np.arange(len(asked) + 1)
  return queries.Queries(tokens, position, counts, answers)


def is_one(given: Labels | Sequence[Labels]) -> bool:
  """Whether this is one sequence of labels, not several."""
  return isinstance(given, str) or (
    len(given) > 0 and isinstance(given[0], str)
  )


def as_list(given: Labels | Sequence[Labels]) -> list[Labels]:
  """One sequence of labels, or several, as a list of sequences.

  Raises:
    QuestionError: it is neither.
  """
  if not isinstance(given, Sequence | np.ndarray):
    raise QuestionError(
      f'{_SHORT.repr(given)}: expected a sequence of labels, such as '
      f"('head', 'relation', {UNKNOWN!r}), or a list of such"
    )
  several: Any = [given] if is_one(given) else given
  return [
    one.tolist() if isinstance(one, np.ndarray) else one for one in several
  ]


def check_list(name: str, given: Any) -> None:
  """Raises QuestionError unless several texts can be in it."""
  if isinstance(given, str) or not isinstance(given, Collection):
    raise QuestionError(f'{name} are {_SHORT.repr(given)}: expected a list')


def whole_number(name: str, number: Any, least: int) -> int:
  """The number as an int.

  Raises:
    QuestionError: it is no whole number, or below `least`.
  """
  try:
    whole = operator.index(number)
  except TypeError:
    whole = least - 1
  if whole < least:
    raise QuestionError(
      f'{name} is {_SHORT.repr(number)}: expected a whole number of at least '
      f'{least}'
    )
  return whole


def sides(side: str) -> tuple[str, ...]:
  """The ends that `head`, `tail` or `both` stands for.

  Raises:
    QuestionError: it is none of these.
  """
  if side not in (*SIDES, 'both'):
    raise QuestionError(f"side is {side!r}: expected 'head', 'tail' or 'both'")
  return SIDES if side == 'both' else (side,)


def _filled_up(
  sequences: Sequence[Sequence[int]], pad_id: int, width: int
) -> np.ndarray:
  """N sequences of token ids with PAD on the right: int32 [N, width]."""
  tokens = np.full((len(sequences), width), pad_id, dtype=np.int32)
  for row, sequence in enumerate(sequences):
    tokens[row, : len(sequence)] = sequence
  return tokens


def _show(labels: Labels) -> str:
  text = ' '.join(map(_SHORT.repr, labels[:_MOST_LABELS_SHOWN]))
  more = len(labels) - _MOST_LABELS_SHOWN
  return f'{text} and {more:,} more' if more > 0 else text
