"""Checks of the arguments that users pass to `model.Model`."""

import operator
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np

from coke_jax.data import graph
from coke_jax.predict import named_labels, questions

SIDES = ('tail', 'head')

# Quotes values in error messages, shortened to about 200 characters.
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = 200
_MAX_LABELS_SHOWN = 12


def is_single(given: questions.Labels | Sequence[questions.Labels]) -> bool:
  """Returns whether the argument is one sequence of labels, not several."""
  return isinstance(given, str) or (
    len(given) > 0 and isinstance(given[0], str)
  )


def materialize(given: Any) -> Any:
  """Converts arrays, data frames, series and generators to lists.

  Args:
    given: an argument. The rows of an array or data frame become the items. If
      the columns have usual names, they are read by name, see `named_labels`.

  Returns:
    The list. An argument of another kind is returned unchanged.

  Raises:
    questions.QuestionError: a data frame or row has the columns of head,
      relation and tail, and another column.
  """
  given = named_labels.row(given)
  if isinstance(given, Sequence | Mapping | Set):
    return given
  rows = named_labels.rows(given)
  if rows is not None:
    return rows
  if hasattr(given, 'to_numpy'):  # a data frame or series
    given = given.to_numpy()
  if isinstance(given, np.ndarray):
    return given.tolist()
  return list(given) if isinstance(given, Iterable) else given


def as_list(
  given: questions.Labels | Sequence[questions.Labels],
) -> list[questions.Labels]:
  """Converts one or several sequences of labels to a list of sequences.

  Arrays, data frames, series and generators are also accepted.

  Raises:
    questions.QuestionError: the argument is not a sequence.
  """
  given = materialize(given)
  if not isinstance(given, Sequence):
    raise questions.QuestionError(
      f'{short(given)}: expected a sequence of labels, such as '
      f"('head', 'relation', {questions.UNKNOWN!r}), or a list of such "
      'sequences'
    )
  several: Any = [given] if is_single(given) else given
  return [materialize(one) for one in several]


def check_list(name: str, given: Any) -> None:
  """Checks that an argument is a collection and not a single string.

  Raises:
    questions.QuestionError: the argument is a string or not a collection.
  """
  if isinstance(given, str) or not isinstance(given, Collection):
    raise questions.QuestionError(f'{name} are {short(given)}: expected a list')


def whole_number(name: str, number: Any, least: int) -> int:
  """Converts an argument to an int.

  Raises:
    questions.QuestionError: the argument is not an integer or is below
      `least`.
  """
  try:
    whole = operator.index(number)
  except TypeError:
    whole = least - 1
  if whole < least:
    raise questions.QuestionError(
      f'{name} is {short(number)}: expected a whole number of at least {least}'
    )
  return whole


def sides(side: str, *, both: bool = True) -> tuple[str, ...]:
  """Converts `head`, `tail` or `both` to a tuple of sides.

  Args:
    side: the name.
    both: whether `both` is allowed.

  Raises:
    questions.QuestionError: the argument is another value.
  """
  allowed = ('head', 'tail', *(['both'] if both else []))
  if side not in allowed:
    names = ', '.join(map(repr, allowed[:-1]))
    raise questions.QuestionError(
      f'side is {side!r}: expected {names} or {allowed[-1]!r}'
    )
  return SIDES if side == 'both' else (side,)


def check_splits(splits: Any) -> None:
  """Checks that an argument is a list of splits.

  Raises:
    questions.QuestionError: the argument is not a list, or a name is not
      `train`, `valid` or `test`.
  """
  check_list('splits', splits)
  for split in splits:
    if split not in graph.SPLITS:
      raise questions.QuestionError(
        f"split {split!r}: expected 'train', 'valid' or 'test'"
      )


def check_evaluation_split(split: Any) -> None:
  """Checks that an argument is `valid` or `test`.

  Raises:
    questions.QuestionError: the argument is another value.
  """
  if split not in ('valid', 'test'):
    raise questions.QuestionError(
      f"split is {short(split)}: expected 'valid' or 'test'"
    )


def check_relation_questions(
  all_of_them: bool, *, exclude_own: bool, type_matching: bool
) -> None:
  """Checks the arguments of `Model.predict` for questions about relations.

  Args:
    all_of_them: whether all questions are about relations.
    exclude_own: the argument of `Model.predict`.
    type_matching: the argument of `Model.predict`.

  Raises:
    questions.QuestionError: some questions are about entities; or
      `exclude_own` or `type_matching` is True.
  """
  if not all_of_them:
    raise questions.QuestionError(
      f'{questions.UNKNOWN!r} is between two entities in some questions and at '
      'an end in others: expected questions of one kind'
    )
  if exclude_own or type_matching:
    name = 'exclude_own' if exclude_own else 'type_matching'
    raise questions.QuestionError(
      f'{name} is True: expected False for a question about a relation'
    )


def short(value: Any) -> str:
  """Formats a value for an error message, shortened if it is long."""
  return _SHORT.repr(value)


def short_labels(labels: questions.Labels) -> str:
  """Formats labels for an error message, at most 12 of them."""
  text = ' '.join(map(short, labels[:_MAX_LABELS_SHOWN]))
  more = len(labels) - _MAX_LABELS_SHOWN
  return f'{text} and {more:,} more' if more > 0 else text
