"""Converts labels to questions, facts and token ids of one vocabulary."""

from collections.abc import Callable, Sequence

import numpy as np

from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import questions, validation


class Parser:
  """Converts labels with one vocabulary.

  Attributes:
    vocabulary: the labels of the model.
    max_path_length: maximum number of relations in a training path.
  """

  def __init__(
    self, vocabulary: vocabulary_lib.Vocabulary, max_path_length: int
  ):
    self.vocabulary = vocabulary
    self.max_path_length = max_path_length

  def question(
    self, labels: questions.Labels, *, hints: bool = True
  ) -> questions.Question:
    """Converts labels to a question.

    Args:
      labels: an entity, one or more relations and an entity. The first or the
        last label is `?`.
      hints: whether the error message about an unknown label lists the closest
        known labels. This search is slow if the vocabulary is large.

    Returns:
      The question.

    Raises:
      questions.QuestionError: a label is unknown, `?` is not at exactly one
        end, or there are more than `max_path_length` relations.
    """
    relations = self._relations(labels, hints)
    unknown_head = labels[0] == questions.UNKNOWN
    if unknown_head == (labels[-1] == questions.UNKNOWN):
      raise questions.QuestionError(
        f'{validation.short_labels(labels)}: expected {questions.UNKNOWN!r} at '
        'one end, and an entity at the other end'
      )
    known = labels[-1] if unknown_head else labels[0]
    return questions.Question(
      self._entity(labels, known, hints),
      relations,
      'head' if unknown_head else 'tail',
    )

  def fact(self, labels: questions.Labels) -> questions.Fact:
    """Converts the labels of a triple or path to a fact.

    Args:
      labels: an entity, one or more relations and an entity, without `?`.

    Returns:
      The fact.

    Raises:
      questions.QuestionError: a label is unknown, an end is `?`, or there are
        more than `max_path_length` relations.
    """
    relations = self._relations(labels, hints=True)
    ends = labels[0], labels[-1]
    if questions.UNKNOWN in ends:
      raise questions.QuestionError(
        f'{validation.short_labels(labels)}: expected a fact, with no '
        f'{questions.UNKNOWN!r}'
      )
    return questions.Fact(
      tuple(labels),
      self._entity(labels, labels[0], hints=True),
      relations,
      self._entity(labels, labels[-1], hints=True),
    )

  def sequence(
    self, labels: questions.Labels, *, hints: bool = True
  ) -> list[int]:
    """Converts the labels of a question or fact to token ids.

    Args:
      labels: an entity, one or more relations and an entity. `?` instead
        of an entity becomes MASK.
      hints: as in `question`.

    Returns:
      One id for each label.

    Raises:
      questions.QuestionError: a label is unknown, both ends are `?`, or there
        are more than `max_path_length` relations.
    """
    relations = self._relations(labels, hints)
    if labels[0] == labels[-1] == questions.UNKNOWN:
      raise questions.QuestionError(
        f'{validation.short_labels(labels)}: expected {questions.UNKNOWN!r} at '
        'one end at most: the model was never trained with both entities masked'
      )
    head, tail = (
      self.vocabulary.mask_id
      if label == questions.UNKNOWN
      else self._entity(labels, label, hints)
      for label in (labels[0], labels[-1])
    )
    first = self.vocabulary.num_entities
    return [head, *(first + relation for relation in relations), tail]

  def is_about_relation(self, labels: questions.Labels) -> bool:
    """Returns whether labels are a head, `?` and a tail."""
    unknown = questions.UNKNOWN
    return (
      isinstance(labels, list | tuple)
      and len(labels) == 3
      and labels[1] == unknown
      and unknown not in self.vocabulary.relation_ids
      and unknown not in (labels[0], labels[2])
    )

  def tokens(
    self, sequences: Sequence[Sequence[int]], width: int
  ) -> np.ndarray:
    """Pads N sequences of token ids on the right: int32 [N, width]."""
    return questions.pad_tokens(sequences, self.vocabulary.pad_id, width)

  def entity(self, label: str) -> int:
    """Returns the id of an entity.

    Raises:
      questions.QuestionError: the label is not a string or is unknown. The
        message lists the closest known labels.
    """
    return _find(label, self.vocabulary.entity_id)

  def relation(self, label: str) -> int:
    """Returns the index of a relation.

    Raises:
      questions.QuestionError: the label is not a string or is unknown. The
        message lists the closest known labels.
    """
    return _find(label, self.vocabulary.relation_id)

  def _relations(
    self, labels: questions.Labels, hints: bool
  ) -> tuple[int, ...]:
    """Checks the form of a sequence and returns its relation indices."""
    unknown = questions.UNKNOWN
    if isinstance(labels, str):
      raise questions.QuestionError(
        f'{validation.short(labels)} is one string: expected a sequence of '
        f"labels, such as ('head', 'relation', {unknown!r})"
      )
    if not isinstance(labels, Sequence) or not all(
      isinstance(label, str) for label in labels
    ):
      hint = _integer_hint(labels if isinstance(labels, Sequence) else [labels])
      raise questions.QuestionError(
        f'{validation.short(labels)}: expected a sequence of labels, which are '
        f"strings, such as ('head', 'relation', {unknown!r}){hint}"
      )
    shown = validation.short_labels(labels)
    if len(labels) < 3:
      raise questions.QuestionError(
        f'{shown}: expected an entity, one or more relations and an entity, or '
        f'{unknown!r} in the place of an entity'
      )
    self._check_empty(labels)
    relations = labels[1:-1]
    if unknown in relations and unknown not in self.vocabulary.relation_ids:
      raise questions.QuestionError(
        f'{shown}: {unknown!r} in the place of a relation: expected '
        f'{unknown!r} in the place of an entity. `relations` predicts the '
        'relations between two entities'
      )
    if len(relations) > self.max_path_length:
      raise questions.QuestionError(
        f'{shown}: {len(relations)} relations: expected at most '
        f'{self.max_path_length}, as in training'
      )
    try:
      return tuple(
        self.vocabulary.relation_id(label, hints=hints) for label in relations
      )
    except KeyError as error:
      raise questions.QuestionError(f'{shown}: {error.args[0]}') from None

  def _check_empty(self, labels: questions.Labels) -> None:
    """Raises QuestionError if a label is empty and unknown."""
    words = self.vocabulary
    empty = [place for place, label in enumerate(labels, start=1) if not label]
    if not empty or '' in words.entity_ids or '' in words.relation_ids:
      return
    place = f'label {empty[0]}'
    if empty == [len(labels)]:
      place = 'the last one'
    raise questions.QuestionError(
      f'{validation.short_labels(labels)}: {len(labels)} labels, and {place} '
      'is empty: expected no empty label'
    )

  def _entity(self, labels: questions.Labels, label: str, hints: bool) -> int:
    try:
      return self.vocabulary.entity_id(label, hints=hints)
    except KeyError as error:
      shown = validation.short_labels(labels)
      raise questions.QuestionError(f'{shown}: {error.args[0]}') from None


def _integer_hint(labels: Sequence[object]) -> str:
  """Returns a sentence about the first integer among labels, or ''."""
  for label in labels:
    if isinstance(label, int | np.integer) and not isinstance(label, bool):
      return f". Write an integer as a string: '{label}'"
  return ''


def _find(label: str, find: Callable[[str], int]) -> int:
  """Looks up a label. Raises QuestionError if it is unknown or not a string."""
  if not isinstance(label, str):
    raise questions.QuestionError(
      f'{validation.short(label)}: expected a label, which is a string'
      f'{_integer_hint([label])}'
    )
  try:
    return find(label)
  except KeyError as error:
    raise questions.QuestionError(error.args[0]) from None
