"""Questions and facts as ids, and their conversion to queries.

A question has `?` at one end: `(head, relation, '?')` or
`('?', relation, tail)`. It may contain several relations. A fact has no `?`.
`parser` converts labels to questions and facts.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from coke_jax import errors
from coke_jax.data import queries
from coke_jax.data import vocabulary as vocabulary_lib

UNKNOWN = '?'

Labels = Sequence[str]


class QuestionError(errors.CokeError, ValueError):
  """A question or argument that the model does not accept."""


@dataclasses.dataclass(frozen=True, eq=False)
class Question:
  """A path with an unknown entity at one end.

  Attributes:
    entity: id of the known entity.
    relations: indices of the relations, from head to tail.
    side: the end that is unknown, `head` or `tail`.
  """

  entity: int
  relations: tuple[int, ...]
  side: str


@dataclasses.dataclass(frozen=True)
class Fact:
  """A triple or path.

  Attributes:
    labels: the labels of the fact.
    head: id of the head.
    relations: indices of one or more relations, from head to tail.
    tail: id of the tail.
  """

  labels: tuple[str, ...]
  head: int
  relations: tuple[int, ...]
  tail: int

  def question(self, side: str) -> Question:
    """Returns the question for the entity at a side, `head` or `tail`."""
    known = self.tail if side == 'head' else self.head
    return Question(known, self.relations, side)

  def answer(self, side: str) -> int:
    """Returns the id of the entity at a side, `head` or `tail`."""
    return self.head if side == 'head' else self.tail


def to_queries(
  questions: Sequence[Question],
  answers: np.ndarray,
  vocabulary: vocabulary_lib.Vocabulary,
  width: int,
) -> queries.Queries:
  """Converts questions to queries.

  Args:
    questions: N questions.
    answers: int32 [N], the gold answer of each question, or an empty array if
      no answers are needed.
    vocabulary: defines the token ids of relations, MASK and PAD.
    width: K, the number of tokens in a row.

  Returns:
    N queries with K tokens.
  """
  sequences = []
  for question in questions:
    relations = [vocabulary.num_entities + r for r in question.relations]
    ends = [question.entity, vocabulary.mask_id]
    first, last = ends[::-1] if question.side == 'head' else ends
    sequences.append([first, *relations, last])
  tokens = pad_tokens(sequences, vocabulary.pad_id, width)
  position = (tokens == vocabulary.mask_id).argmax(axis=1).astype(np.int32)
  indptr = np.zeros(len(questions) + 1, dtype=np.int64)
  if len(answers):
    indptr = np.arange(len(questions) + 1)
  return queries.Queries(tokens, position, indptr, answers)


def pad_tokens(
  sequences: Sequence[Sequence[int]], pad_id: int, width: int
) -> np.ndarray:
  """Pads sequences of token ids on the right.

  Args:
    sequences: N sequences of at most `width` ids.
    pad_id: id of the token PAD.
    width: K, the number of tokens in a row.

  Returns:
    int32 [N, K].
  """
  tokens = np.full((len(sequences), width), pad_id, dtype=np.int32)
  for row, sequence in enumerate(sequences):
    tokens[row, : len(sequence)] = sequence
  return tokens
