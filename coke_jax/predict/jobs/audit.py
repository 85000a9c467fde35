"""Finds the known facts that a model considers least plausible.

A model has learned the facts that it judges, also the wrong ones. It gives a
high probability to a wrong fact that is the only known answer to its question,
because nothing contradicts it. So the score of a fact uses how rare such facts
are. For the tail of a fact with n known tails of its head and relation, it is
the sum of

- the log-probability of the tail, given head and relation,
- log n, because n answers share the probability of 1,
- if n is 1, half the logarithm of the share of such facts among the facts of
  the relation.

The head has such a score too, and the score of the fact is their mean.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax import progress_bar
from coke_jax.data import graph
from coke_jax.predict import (
  known_facts,
  predictor,
  questions,
  records,
  validation,
)
from coke_jax.predict.jobs import facts as facts_lib

# Planted errors on CoDEx-S: with 0, few errors whose entities have a wrong type
# are found, because the model has learned them. With 1, few others are found.
_WEIGHT_OF_RARITY = 0.5


@dataclasses.dataclass(frozen=True)
class Suspicion:
  """A known fact that the model considers implausible.

  Attributes:
    fact: the labels of head, relation and tail.
    score: the mean of the scores of head and tail; see the module.
    tail_rank: the filtered rank of the tail among all entities.
    head_rank: the filtered rank of the head among all entities.
    expected_tails: the best tails that are not known, best first, without the
      head.
    expected_heads: the best heads that are not known, best first, without the
      tail.
    known_in: the first split that contains the fact.
  """

  fact: tuple[str, str, str]
  score: float
  tail_rank: float
  head_rank: float
  expected_tails: tuple[str, ...]
  expected_heads: tuple[str, ...]
  known_in: str


def audit(
  predictor: predictor.Predictor,
  *,
  top: int,
  relations: Sequence[int] | None,
  splits: Sequence[str],
  expected: int,
  progress: bool = False,
) -> records.Records[Suspicion]:
  """Finds the least plausible facts of some splits.

  Args:
    predictor: predicts with the model.
    top: the maximum number of facts.
    relations: the relations of the facts, or None for all relations.
    splits: the splits that contain the facts. The known answers are those of
      all splits.
    expected: the maximum number of entities in `expected_tails` and
      `expected_heads`.
    progress: whether to show a progress bar.

  Returns:
    The facts, least plausible first. Equal scores are ordered by relation, head
    and tail id.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  facts = facts_lib.known(predictor.data)
  chosen = facts.are_in(facts_lib.known(predictor.data, splits))
  if relations is not None:
    chosen &= np.isin(facts.triples[:, 1], relations)
  rows = np.flatnonzero(chosen)
  score = plausibility(predictor, facts, chosen, progress)[rows].mean(axis=1)
  worst = rows[np.argsort(score, kind='stable')[:top]]
  score = np.sort(score, kind='stable')[:top]
  return _records(predictor, facts, worst, score, expected)


def plausibility(
  predictor: predictor.Predictor,
  facts: facts_lib.Facts,
  chosen: np.ndarray,
  progress: bool = False,
) -> np.ndarray:
  """Computes the scores of the tails and heads of facts.

  Each distinct question is scored once.

  Args:
    predictor: predicts with the model.
    facts: T facts, which are the known answers to all questions.
    chosen: bool [T], the facts to score.
    progress: whether to show a progress bar.

  Returns:
    float32 [T, 2], the score of the tail and of the head; see the module. Not
    meaningful for facts that are not chosen.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  vocabulary = predictor.data.vocabulary
  scores = np.zeros((len(facts.triples), 2), dtype=np.float32)
  both = [facts_lib.questions(facts, side) for side in validation.SIDES]
  for place, asked in enumerate(both):
    scores[asked.fact, place] = _rarity(asked, vocabulary.num_relations)
  both = [asked.with_any(chosen) for asked in both]
  with progress_bar.create(
    'auditing' if progress else '',
    unit='question',
    total=sum(map(len, both)),
  ) as bar:
    for place, asked in enumerate(both):
      scores[asked.fact, place] += facts_lib.score_answers(
        predictor.scorer, asked, vocabulary, bar
      )
  return scores


def _rarity(asked: facts_lib.Questions, num_relations: int) -> np.ndarray:
  """Returns the part of each answer's score without the model: float64 [total].

  Args:
    asked: the questions of all facts for one side.
    num_relations: R.
  """
  counts = np.diff(asked.indptr)
  number = np.repeat(counts, counts)
  relation = np.repeat(asked.relation, counts)
  facts = np.bincount(relation, minlength=num_relations)
  single = np.bincount(relation[number == 1], minlength=num_relations)
  # Adding 1 and 2 keeps the share of a relation with few facts away from 0.
  share = (single + 1) / (facts + 2)
  rarity = _WEIGHT_OF_RARITY * np.log(share[relation])
  return np.where(number == 1, rarity, np.log(number))


def _records(
  predictor: predictor.Predictor,
  facts: facts_lib.Facts,
  worst: np.ndarray,
  score: np.ndarray,
  expected: int,
) -> records.Records[Suspicion]:
  """Adds labels, ranks and the expected entities to the worst facts."""
  words = predictor.data.vocabulary
  parsed = [
    questions.Fact(
      (words.entities[head], words.relations[relation], words.entities[tail]),
      head,
      (relation,),
      tail,
    )
    for head, relation, tail in facts.triples[worst].tolist()
  ]
  new = known_facts.Restriction(new_only=True)
  others = known_facts.Restriction(new_only=True, exclude_own=True)
  ranks = {}
  instead: dict[str, Any] = {}
  for side in validation.SIDES:
    ranks[side] = predictor.rank([(fact, side) for fact in parsed], new)
    asked = [fact.question(side) for fact in parsed]
    instead[side] = (
      predictor.answer(asked, expected, others)
      if expected
      else [[]] * len(worst)
    )
  return records.Records(
    (
      Suspicion(
        fact=(fact.labels[0], fact.labels[1], fact.labels[2]),
        score=float(score[row]),
        tail_rank=ranks['tail'][row].rank,
        head_rank=ranks['head'][row].rank,
        expected_tails=tuple(one.label for one in instead['tail'][row]),
        expected_heads=tuple(one.label for one in instead['head'][row]),
        known_in=graph.SPLITS[facts.split[worst[row]]],
      )
      for row, fact in enumerate(parsed)
    ),
    Suspicion,
  )
