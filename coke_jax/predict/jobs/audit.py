"""Finds the known facts that a model considers least plausible.

A low log-probability alone does not show that a known fact is wrong, because
the model was trained on all known facts, including the wrong ones. If a wrong
tail is the only known tail of its head and relation, the model usually gives it
a high probability. So the score of a tail also depends on n, the number of
known tails of its head and relation. The score is the sum of

- the log-probability of the tail, given head and relation,
- log n, because n answers share the probability of 1,
- if n is 1, half the logarithm of the share of facts with n = 1 among the facts
  of the relation.

The score of the head is computed in the same way. The score of the fact is the
mean of both scores.
"""

import dataclasses
from collections.abc import Iterable, Sequence
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

# The factor of the third term of the score, chosen with wrong facts that were
# added to CoDEx-S. With 0, the audit finds few entities of a wrong type. With
# 1, it finds few other errors.
_WEIGHT_OF_RARITY = 0.5


@dataclasses.dataclass(frozen=True)
class Suspicion:
  """A known fact that the model considers implausible.

  Attributes:
    fact: the labels of head, relation and tail.
    score: the mean of the scores of head and tail. The module defines them.
    tail_rank: the filtered rank of the tail among all entities.
    head_rank: the filtered rank of the head among all entities.
    expected_tails: the most probable tails that are not known, best first. The
      head of the fact is left out.
    expected_heads: the most probable heads that are not known, best first. The
      tail of the fact is left out.
    known_in: the first split that contains the fact.
  """

  fact: tuple[str, str, str]
  score: float
  tail_rank: float
  head_rank: float
  expected_tails: tuple[str, ...]
  expected_heads: tuple[str, ...]
  known_in: str


@dataclasses.dataclass(frozen=True, eq=False)
class Judge:
  """A model that scores some of the facts.

  Attributes:
    predictor: predicts with the model, on the data set of the audit.
    facts: bool [T], whether to score each fact of `facts.known(data)`.
  """

  predictor: predictor.Predictor
  facts: np.ndarray


def audit(
  predictor: predictor.Predictor,
  *,
  top: int,
  relations: Sequence[int] | None,
  splits: Sequence[str],
  expected: int,
  entities: Sequence[int] | None = None,
  progress: bool = False,
  judges: Iterable[Judge] = (),
) -> records.Records[Suspicion]:
  """Finds the least plausible facts of some splits.

  Args:
    predictor: predicts with the model.
    top: the maximum number of facts.
    relations: the relations of the facts, or None for all relations.
    splits: the splits whose facts are audited. Known answers are counted in all
      splits.
    expected: the maximum number of entities in `expected_tails` and
      `expected_heads`.
    entities: ids of entities. Only facts with one of them are audited. Default:
      all facts are audited.
    progress: whether to show a progress bar.
    judges: models that score some of the facts. `predictor` scores all facts
      that no judge scores. Default: none.

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
  if entities is not None:
    chosen &= np.isin(facts.triples[:, ::2], entities).any(axis=1)
  score = np.full(len(chosen), np.inf, dtype=np.float32)
  judges = tuple(judges)
  # The index of each fact's judge in `predictors`, which ends with `predictor`.
  judge = np.full(len(chosen), len(judges))
  for number, other in enumerate(judges):
    judge[other.facts] = number
  predictors = [*(other.predictor for other in judges), predictor]
  for number, one in enumerate(predictors):
    own = chosen & (judge == number)
    if own.any():
      score[own] = plausibility(one, facts, own, progress)[own].mean(axis=1)
  worst = np.argsort(score, kind='stable')[: min(top, int(chosen.sum()))]
  found: dict[int, Suspicion] = {}
  for number in np.unique(judge[worst]).tolist():
    rows = worst[judge[worst] == number]
    described = _records(predictors[number], facts, rows, score[rows], expected)
    found.update(zip(rows.tolist(), described, strict=True))
  return records.Records((found[row] for row in worst.tolist()), Suspicion)


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
    facts: T facts. They define the known answers to all questions.
    chosen: bool [T], whether to score each fact.
    progress: whether to show a progress bar.

  Returns:
    float32 [T, 2], the scores of tail and head. The module defines them. Rows
    of facts that are not chosen contain no valid scores.

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
  """Computes the terms of the scores that do not depend on the model.

  Args:
    asked: the questions of all facts for one side.
    num_relations: R.

  Returns:
    float64 [number of answers].
  """
  counts = np.diff(asked.indptr)
  number = np.repeat(counts, counts)
  relation = np.repeat(asked.relation, counts)
  facts = np.bincount(relation, minlength=num_relations)
  single = np.bincount(relation[number == 1], minlength=num_relations)
  # For a relation with few facts, adding 1 and 2 keeps the share away from 0
  # and from 1.
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
