"""Runs the joined items of several requests on the devices.

An item is a question, a fact with a side, or a pair of entities. Each item has
one result, which can be written as JSON.
"""

import dataclasses
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from coke_jax.predict import known_facts, questions, records
from coke_jax.predict.jobs import relations as relations_lib
from coke_jax.serve import served as served_lib

_LEAST_TOP = 16


def round_top(top: int) -> int:
  """Rounds a number of answers up, so that more requests can be joined."""
  return max(_LEAST_TOP, 1 << (top - 1).bit_length())


def key_of(restriction: known_facts.Restriction) -> Hashable:
  """Returns a key that is equal for equal restrictions."""
  fields = dataclasses.asdict(restriction)
  candidates = fields.pop('candidates')
  key = None if candidates is None else candidates.tobytes()
  return (*fields.values(), key)


def predict(
  served: served_lib.Served,
  top: int,
  restriction: known_facts.Restriction,
  items: Sequence[tuple[questions.Question, int]],
) -> list[list[dict[str, Any]]]:
  """Predicts the best answers to questions.

  Args:
    served: the model.
    top: the number of answers to compute, at least the largest number in
      `items`.
    restriction: filters the answers.
    items: pairs of a question and its maximum number of answers.

  Returns:
    For each item, a list of its answers. Each answer has the fields of
    `Prediction`, and `calibrated`, the calibrated probability that the answer
    is correct.
  """
  predictor = served.model.predictor
  parsed = [question for question, _ in items]
  answers = predictor.answer(parsed, top, restriction)
  known = predictor.known(parsed, 'train').sizes
  return [
    with_probabilities(served, one[:count], number)
    for one, (_, count), number in zip(
      answers, items, known.tolist(), strict=True
    )
  ]


def with_probabilities(
  served: served_lib.Served,
  answers: Sequence[records.Prediction],
  known: int,
) -> list[dict[str, Any]]:
  """Adds calibrated probabilities to the answers to one question.

  Args:
    served: the model.
    answers: the answers.
    known: the number of answers to the question that are known from train.
  """
  scores = np.array([one.score for one in answers], np.float64)
  own = np.array([one.known_in == 'train' for one in answers], np.int64)
  # `dataclasses.asdict` copies each value, which takes a third of the time of a
  # batch.
  return [
    {**vars(answer), 'calibrated': probability}
    for answer, probability in zip(
      answers, served.calibrated(scores, known - own), strict=True
    )
  ]


def rank(
  served: served_lib.Served,
  restriction: known_facts.Restriction,
  items: Sequence[tuple[questions.Fact, str]],
) -> list[dict[str, Any]]:
  """Ranks the heads or tails of facts.

  Args:
    served: the model.
    restriction: filters the candidates.
    items: pairs of a fact and the side to predict, `head` or `tail`.

  Returns:
    For each item, the fields of `Ranking`, and `calibrated`.
  """
  predictor = served.model.predictor
  rankings = predictor.rank(items, restriction)
  known = predictor.known(
    [fact.question(side) for fact, side in items], 'train'
  ).sizes
  found = []
  for ranking, number in zip(rankings, known.tolist(), strict=True):
    others = np.array([number - (ranking.known_in == 'train')])
    (calibrated,) = served.calibrated(np.array([ranking.score]), others)
    found.append({**dataclasses.asdict(ranking), 'calibrated': calibrated})
  return found


def relations(
  served: served_lib.Served,
  new_only: bool,
  items: Sequence[tuple[int, int, int]],
) -> list[list[dict[str, Any]]]:
  """Predicts the relations between pairs of entities.

  Args:
    served: the model.
    new_only: whether to leave out the relations of known facts.
    items: for each pair, the ids of head and tail, and the maximum number of
      relations.

  Returns:
    For each item, a list of relations, each with the fields of `Prediction`.
  """
  found = relations_lib.predict(
    served.model.predictor,
    [(head, tail) for head, tail, _ in items],
    top=max(top for _, _, top in items),
    new_only=new_only,
  )
  return [
    [dataclasses.asdict(one) for one in answers[:top]]
    for answers, (_, _, top) in zip(found, items, strict=True)
  ]
