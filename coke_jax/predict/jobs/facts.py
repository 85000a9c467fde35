"""The known facts of a graph, and the distinct questions about them."""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np
import tqdm

from coke_jax.data import arrays, graph, grouping
from coke_jax.data import paths as paths_lib
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import scorer as scorer_lib

# If a question has at most this number of known answers, only the scores of
# these answers are copied from the devices.
FEW_ANSWERS = 16


@dataclasses.dataclass(frozen=True, eq=False)
class Facts:
  """Distinct facts, sorted by relation, then by head, then by tail.

  Attributes:
    triples: int32 [T, 3], head entity id, relation index, tail entity id.
    split: int8 [T], the first split that contains the fact, as an index of
      `graph.SPLITS`.
  """

  triples: np.ndarray
  split: np.ndarray

  def of(self, relation: int) -> np.ndarray:
    """Returns the facts of one relation: int32 [M, 3], sorted."""
    low, high = np.searchsorted(self.triples[:, 1], [relation, relation + 1])
    return self.triples[low:high]

  def are_in(self, other: 'Facts') -> np.ndarray:
    """Returns which facts are also in `other`: bool [T]."""
    both = np.concatenate([self.triples, other.triples])
    group, num_groups = grouping.group_rows(both)
    found = np.zeros(num_groups, dtype=bool)
    found[group[len(self.triples) :]] = True
    return found[group[: len(self.triples)]]


@dataclasses.dataclass(frozen=True, eq=False)
class Questions:
  """Q distinct questions for one side, and the known answers to each.

  Attributes:
    side: the side of the unknown entity, `head` or `tail`.
    relation: int32 [Q], relation indices.
    entity: int32 [Q], the id of the known entity.
    indptr: int64 [Q + 1]. The answers to question i are
      `answers[indptr[i]:indptr[i + 1]]`.
    answers: int32 [total], entity ids.
    fact: int64 [total]. Answer i completes the fact `Facts.triples[fact[i]]`.
  """

  side: str
  relation: np.ndarray
  entity: np.ndarray
  indptr: np.ndarray
  answers: np.ndarray
  fact: np.ndarray

  def __len__(self) -> int:
    return len(self.relation)

  def with_any(self, chosen: np.ndarray) -> 'Questions':
    """Returns the questions with an answer that completes a chosen fact.

    Args:
      chosen: bool [T], one value for each fact.
    """
    if not len(self):
      return self
    kept = np.logical_or.reduceat(chosen[self.fact], self.indptr[:-1])
    counts = np.diff(self.indptr)
    answers = np.repeat(kept, counts)
    return Questions(
      self.side,
      self.relation[kept],
      self.entity[kept],
      grouping.indptr_of(counts[kept]),
      self.answers[answers],
      self.fact[answers],
    )

  def known(self, rows: slice, num_entities: int) -> np.ndarray:
    """Returns masks of known answers to the questions `rows`: bool [B, V]."""
    start, stop, _ = rows.indices(len(self))
    mask = np.zeros((stop - start, num_entities), dtype=bool)
    counts = np.diff(self.indptr[start : stop + 1])
    answers = self.answers[self.indptr[start] : self.indptr[stop]]
    mask[np.repeat(np.arange(stop - start), counts), answers] = True
    return mask


def base_relations(data: arrays.DataSet) -> np.ndarray:
  """Returns the relations that are not inverse relations: int32 [M].

  Only path data contain inverse relations. The label of an inverse relation
  consists of a marker and the label of the base relation. So it is longer than
  the label of the base relation.
  """
  count = data.vocabulary.num_relations
  relations = np.arange(count, dtype=np.int32)
  if not isinstance(data, paths_lib.PathData):
    return relations
  length = np.array([len(label) for label in data.vocabulary.relations])
  inverse = np.where(
    data.inverse == vocabulary_lib.NO_RELATION, relations, data.inverse
  )
  shorter = (length < length[inverse]) | (inverse == relations)
  return relations[shorter]


def to_base(data: arrays.DataSet, relations: Iterable[int]) -> list[int]:
  """Replaces inverse relations by their base relations.

  Returns:
    The distinct relation indices, in ascending order.
  """
  base = set(base_relations(data).tolist())
  return sorted(
    {
      relation
      if relation in base or not isinstance(data, paths_lib.PathData)
      else int(data.inverse[relation])
      for relation in relations
    }
  )


def known(data: arrays.DataSet, splits: Iterable[str] = graph.SPLITS) -> Facts:
  """Returns the distinct facts of some splits.

  In path data, the facts are the paths with a single relation. A fact with an
  inverse relation is converted to a fact with the base relation.
  """
  splits = list(splits)
  parts = [_edges(data, split) for split in splits]
  numbers = [graph.SPLITS.index(split) for split in splits]
  triples = np.concatenate([np.zeros((0, 3), np.int32), *parts])
  split = np.repeat(np.array(numbers, np.int8), list(map(len, parts)))
  head, relation, tail = triples.T
  order = np.lexsort((split, tail, head, relation))
  triples, split = triples[order], split[order]
  first = np.ones(len(triples), dtype=bool)
  first[1:] = (triples[1:] != triples[:-1]).any(axis=1)
  return Facts(triples[first], split[first])


def questions(facts: Facts, side: str) -> Questions:
  """Groups facts by the question for their head or tail."""
  head, relation, tail = facts.triples.T
  entity, answer = (tail, head) if side == 'head' else (head, tail)
  order = np.lexsort((answer, entity, relation))
  relation, entity, answer = relation[order], entity[order], answer[order]
  new = np.ones(len(order), dtype=bool)
  new[1:] = (relation[1:] != relation[:-1]) | (entity[1:] != entity[:-1])
  first = np.flatnonzero(new)
  indptr = np.append(first, len(order)).astype(np.int64)
  return Questions(side, relation[first], entity[first], indptr, answer, order)


def to_queries(
  relation: np.ndarray,
  entity: np.ndarray,
  side: str,
  vocabulary: vocabulary_lib.Vocabulary,
  width: int,
) -> queries_lib.Queries:
  """Converts questions with one relation each to queries without answers.

  Args:
    relation: integers [B], relation indices.
    entity: integers [B], the known entities.
    side: the side of the unknown entity, `head` or `tail`.
    vocabulary: defines the token ids.
    width: K, the number of tokens in a row, at least 3.

  Returns:
    B queries with K tokens.
  """
  count = len(relation)
  tokens = np.full((count, width), vocabulary.pad_id, dtype=np.int32)
  position = 0 if side == 'head' else 2
  tokens[:, 1] = vocabulary.num_entities + relation
  tokens[:, 2 - position] = entity
  tokens[:, position] = vocabulary.mask_id
  return queries_lib.Queries(
    tokens,
    np.full(count, position, dtype=np.int32),
    np.zeros(count + 1, dtype=np.int64),
    np.zeros(0, dtype=np.int32),
  )


def score(
  scorer: scorer_lib.Scorer,
  relation: np.ndarray,
  entity: np.ndarray,
  side: str,
  vocabulary: vocabulary_lib.Vocabulary,
  progress: tqdm.tqdm | None = None,
) -> Iterator[tuple[slice, np.ndarray]]:
  """Scores all entities as answers to questions, batch by batch.

  Args:
    scorer: runs the encoder.
    relation: integers [Q], relation indices.
    entity: integers [Q], the known entities.
    side: the side of the unknown entity, `head` or `tail`.
    vocabulary: defines the token ids.
    progress: a progress bar that counts questions.

  Yields:
    The slice of the questions in a batch.
    The log-probabilities of all entities, float32 [B, V]. The caller may change
    this array.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  width: int = scorer.model.max_length
  for start in range(0, len(relation), scorer.batch_size):
    rows = slice(start, min(start + scorer.batch_size, len(relation)))
    queries = to_queries(relation[rows], entity[rows], side, vocabulary, width)
    # Arrays from a device are read-only, so copy them.
    yield rows, np.array(scorer.log_probabilities(queries))
    if progress is not None:
      progress.update(rows.stop - rows.start)


def score_answers(
  scorer: scorer_lib.Scorer,
  asked: Questions,
  vocabulary: vocabulary_lib.Vocabulary,
  progress: tqdm.tqdm | None = None,
) -> np.ndarray:
  """Scores the known answers to questions. Each question is scored once.

  Args:
    scorer: runs the encoder.
    asked: the questions and their known answers.
    vocabulary: defines the token ids.
    progress: a progress bar that counts questions.

  Returns:
    float32 [total], the log-probability of each answer.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  scores = np.empty(len(asked.answers), np.float32)
  counts = np.diff(asked.indptr)
  few = counts <= FEW_ANSWERS
  width: int = scorer.model.max_length
  for start in range(0, int(few.sum()), scorer.batch_size):
    rows = np.flatnonzero(few)[start : start + scorer.batch_size]
    places = asked.indptr[rows][:, None] + np.arange(FEW_ANSWERS)
    real = places < asked.indptr[rows + 1][:, None]
    answers = asked.answers[np.where(real, places, 0)]
    queries = to_queries(
      asked.relation[rows], asked.entity[rows], asked.side, vocabulary, width
    )
    found = scorer.answer_log_probabilities(queries, answers)
    scores[places[real]] = found[real]
    if progress is not None:
      progress.update(len(rows))
  many = np.flatnonzero(~few)
  for batch, found in score(
    scorer,
    asked.relation[many],
    asked.entity[many],
    asked.side,
    vocabulary,
    progress,
  ):
    rows = many[batch]
    row = np.repeat(np.arange(len(rows)), counts[rows])
    places = grouping.ranges(asked.indptr[rows], counts[rows])
    scores[places] = found[row, asked.answers[places]]
  return scores


def _edges(data: arrays.DataSet, split: str) -> np.ndarray:
  """Returns the facts of a split, with base relations: int32 [T, 3]."""
  if not isinstance(data, paths_lib.PathData):
    return data.split(split)
  edges = data.split(split).single_edges()
  is_base = np.isin(edges[:, 1], base_relations(data))
  back = edges[~is_base][:, ::-1].copy()
  back[:, 1] = data.inverse[back[:, 1]]
  return np.concatenate([edges[is_base], back])
