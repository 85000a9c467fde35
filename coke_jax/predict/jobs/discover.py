"""Finds the most plausible facts that are not known.

The probabilities of all tails of a head and relation have the sum 1. If n tails
are correct, each correct tail has a probability of about 1 / n. So facts are
ordered by the probability of the tail, multiplied by the number of known tails.
On CoDEx-S, with only the facts of train known, 95 of the first 100 facts are in
valid or test. Without the multiplication, only 60 facts are.
"""

import dataclasses
import math
from collections.abc import Iterator, Sequence

import numpy as np

from coke_jax import progress_bar
from coke_jax.data import grouping
from coke_jax.predict import predictor, records
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.predict.jobs import plausible_entities

_SYMMETRIC = 0.5  # the minimum share in `is_symmetric`


@dataclasses.dataclass(frozen=True)
class NewFact:
  """A plausible fact that is not known.

  Attributes:
    fact: the labels of head, relation and tail.
    score: log(`probability` * `known_tails`). If `known_tails` is 0, the score
      is log(`probability` * p) instead. With `type_matching=True`, p is the
      probability that the head has an unknown tail, see
      `PlausibleEntities.heads`. With `type_matching=False`, p is 1.
    probability: the probability of the tail, given head and relation. It is the
      softmax of the model's scores over all entities.
    known_tails: the number of known tails of this head and relation.
  """

  fact: tuple[str, str, str]
  score: float
  probability: float
  known_tails: int


@dataclasses.dataclass(eq=False)
class _Best:
  """The best facts so far.

  Attributes:
    size: the number of facts to keep.
    per_head: the maximum number of facts with the same head.
    triples: int32 [N, 3], N <= size, best first.
    score: float32 [N].
  """

  size: int
  per_head: int
  triples: np.ndarray
  score: np.ndarray

  @property
  def least(self) -> float:
    """The minimum score of a fact that can still be added."""
    return float(self.score[-1]) if len(self.score) == self.size else -np.inf

  def add(self, triples: np.ndarray, score: np.ndarray) -> None:
    """Adds facts, then keeps only the best of all facts."""
    triples = np.concatenate([self.triples, triples])
    score = np.concatenate([self.score, score])
    head, relation, tail = triples.T
    order = np.lexsort((tail, head, relation, -score))
    kept = order[grouping.count_before(head[order]) < self.per_head][
      : self.size
    ]
    self.triples, self.score = triples[kept], score[kept]


def discover(
  predictor: predictor.Predictor,
  *,
  top: int,
  relations: Sequence[int] | None,
  per_head: int | None,
  splits: Sequence[str],
  type_matching: bool,
  progress: bool = False,
) -> records.Records[NewFact]:
  """Finds the most plausible facts that none of the given splits contains.

  For each head and relation, the tails are scored once. If a relation has no
  known fact from an entity to itself, such facts are left out. The memory
  contains only the best facts and the scores of one batch.

  Args:
    predictor: predicts with the model.
    top: the maximum number of facts.
    relations: the relations, or None for all relations except the inverse
      relations of path data.
    per_head: the maximum number of facts with the same head, or None for no
      limit.
    splits: the splits whose facts count as known. Facts of train always count.
    type_matching: whether heads and tails are limited to those that
      `plausible_entities` finds.
    progress: whether to show a progress bar.

  Returns:
    The facts, best first. Equal scores are ordered by relation, head and tail
    id. If a relation is symmetric, only the better one of (h, r, t) and
    (t, r, h) is returned.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  data = predictor.data
  facts = facts_lib.known(data, dict.fromkeys(['train', *splits]))
  chosen = facts_lib.base_relations(data) if relations is None else relations
  plausible = None
  if type_matching:
    plausible = plausible_entities.PlausibleEntities(
      facts, data.vocabulary.num_entities, data.vocabulary.num_relations
    )
  best = _Best(
    # Twice as many facts as requested are kept, because up to half of them may
    # be removed as equivalent to better facts.
    2 * top,
    2 * top if per_head is None else per_head,
    np.zeros((0, 3), np.int32),
    np.zeros(0, np.float32),
  )
  with progress_bar.create(
    'discovering' if progress else '', unit='relation', total=len(chosen)
  ) as bar:
    for relation in chosen:
      for triples, score in _candidates(
        predictor, facts, int(relation), best, plausible
      ):
        best.add(triples, score)
      bar.update()
  kept = _not_equivalent(best.triples, facts)[:top]
  words = data.vocabulary
  expected = np.ones(len(kept))
  if plausible is not None:
    expected = plausible.of_heads(best.triples[kept])
  return records.Records(
    (
      NewFact(
        (words.entities[head], words.relations[relation], words.entities[tail]),
        score,
        math.exp(score) / (max(known, 1) * share),
        known,
      )
      for (head, relation, tail), score, known, share in zip(
        best.triples[kept].tolist(),
        best.score[kept].tolist(),
        _known_tails(facts, best.triples[kept]).tolist(),
        expected.tolist(),
        strict=True,
      )
    ),
    NewFact,
  )


def _known_tails(facts: facts_lib.Facts, triples: np.ndarray) -> np.ndarray:
  """Counts the known tails of the head and relation of each triple.

  Args:
    facts: the known facts.
    triples: int32 [N, 3].

  Returns:
    int64 [N].
  """
  pairs = np.concatenate([facts.triples[:, :2], triples[:, :2]])
  group, num_groups = grouping.group_rows(pairs)
  known = len(facts.triples)
  counts = np.bincount(group[:known], minlength=num_groups)
  return counts[group[known:]]


def _candidates(
  predictor: predictor.Predictor,
  facts: facts_lib.Facts,
  relation: int,
  best: _Best,
  plausible: plausible_entities.PlausibleEntities | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
  """Yields the new facts of a relation that may be among the best.

  Yields:
    Pairs (triples, scores): int32 [M, 3] and float32 [M].
  """
  vocabulary = predictor.data.vocabulary
  own = facts.of(relation)
  heads: np.ndarray = np.arange(vocabulary.num_entities)
  tails = np.ones(vocabulary.num_entities, dtype=bool)
  expected = np.ones(vocabulary.num_entities)
  if plausible is not None:
    expected = plausible.heads(relation)
    heads = np.flatnonzero(expected)
    tails = plausible.tails(relation)
    if not tails.any():
      return
  loops = (own[:, 0] == own[:, 2]).any()
  asked = np.full(len(heads), relation)
  for rows, scores in facts_lib.score(
    predictor.scorer, asked, heads, 'tail', vocabulary
  ):
    batch = heads[rows]
    scores[:, ~tails] = -np.inf
    low = np.searchsorted(own[:, 0], batch[0])
    high = np.searchsorted(own[:, 0], batch[-1], side='right')
    known = own[low:high]
    known = known[np.isin(known[:, 0], batch)]
    row = np.searchsorted(batch, known[:, 0])
    count = np.bincount(row, minlength=len(batch))
    factor = np.maximum(count, 1) * expected[batch]
    scores += np.log(factor.astype(np.float32))[:, None]
    scores[row, known[:, 2]] = -np.inf
    if not loops:
      scores[np.arange(len(batch)), batch] = -np.inf
    row, tail = _select(scores, best)
    triples = np.stack([batch[row], np.full(len(row), relation), tail], axis=1)
    yield triples.astype(np.int32), scores[row, tail]


def _select(scores: np.ndarray, best: _Best) -> tuple[np.ndarray, np.ndarray]:
  """Selects the scores of one batch that may be among the best.

  Args:
    scores: float32 [B, V]. Minus infinity marks known and excluded facts. This
      function sets scores that are too low to minus infinity.
    best: the best facts so far.

  Returns:
    The rows and columns of the selected scores: int64 [M] each.
  """
  scores[scores < best.least] = -np.inf
  if np.count_nonzero(scores > -np.inf) > best.size:
    if best.per_head < scores.shape[1]:
      # Each row has one head, so only its best `per_head` scores matter.
      least = np.partition(scores, -best.per_head, axis=1)[:, -best.per_head]
      scores[scores < least[:, None]] = -np.inf
    level = np.partition(scores.reshape(-1), -best.size)[-best.size]
    scores[scores < level] = -np.inf
  row, column = np.nonzero(scores > -np.inf)
  return row, column


def _not_equivalent(triples: np.ndarray, facts: facts_lib.Facts) -> np.ndarray:
  """Returns the indices of triples without an equivalent earlier triple.

  (h, r, t) and (t, r, h) are equivalent if r is symmetric.

  Args:
    triples: int32 [N, 3].
    facts: the known facts, which determine the symmetric relations.
  """
  symmetric = {
    relation: is_symmetric(facts.of(relation))
    for relation in np.unique(triples[:, 1]).tolist()
  }
  seen: set[tuple[int, int, int]] = set()
  kept = []
  for row, (head, relation, tail) in enumerate(triples.tolist()):
    if symmetric[relation] and (tail, relation, head) in seen:
      continue
    seen.add((head, relation, tail))
    kept.append(row)
  return np.array(kept, dtype=np.int64)


def is_symmetric(triples: np.ndarray) -> bool:
  """Returns whether a relation is symmetric.

  A relation r is symmetric if (t, r, h) is known for at least half of its facts
  (h, r, t). Facts from an entity to itself are not counted.

  Args:
    triples: int32 [T, 3], the distinct facts of one relation.
  """
  pairs = triples[triples[:, 0] != triples[:, 2]][:, [0, 2]].astype(np.int64)
  if not len(pairs):
    return False
  span = int(pairs.max()) + 1
  there, back = pairs @ [span, 1], pairs @ [1, span]
  return bool(np.isin(there, back).mean() >= _SYMMETRIC)
