"""Queries: sequences with one masked entity, and the entities known to fit.

The one structure behind training, evaluation and asking a model. A training
set is the queries made from triples or paths, a filter is the same queries
joined with all splits, a user's question is a query without answers.
"""

import dataclasses

import numpy as np

from coke_jax.data import grouping
from coke_jax.data import vocabulary as vocabulary_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Queries:
  """N masked sequences and their answers.

  Attributes:
    tokens: int32 [N, K] token ids, one MASK a row, PAD on the right.
    mask_position: int32 [N], the column of the MASK.
    indptr: int64 [N + 1]; the answers of row i are
      indices[indptr[i]:indptr[i + 1]].
    indices: int32 [answers], entity ids.
  """

  tokens: np.ndarray
  mask_position: np.ndarray
  indptr: np.ndarray
  indices: np.ndarray

  def __post_init__(self) -> None:
    rows = len(self.tokens)
    if self.mask_position.shape != (rows,) or self.indptr.shape != (rows + 1,):
      raise ValueError(
        f'tokens {self.tokens.shape}, mask_position '
        f'{self.mask_position.shape}, indptr {self.indptr.shape}: expected '
        '[N, K], [N] and [N + 1]'
      )

  def __len__(self) -> int:
    return len(self.tokens)

  @property
  def num_answers(self) -> np.ndarray:
    """How many answers each row has: int64 [N]."""
    return np.diff(self.indptr)

  def take(self, rows: np.ndarray) -> 'Queries':
    """The queries at `rows` (integers [M] or booleans [N]), in that order."""
    rows = np.arange(len(self))[rows]
    counts = self.num_answers[rows]
    return Queries(
      self.tokens[rows],
      self.mask_position[rows],
      grouping.indptr_of(counts),
      self.indices[grouping.ranges(self.indptr[rows], counts)],
    )

  def grouped(self) -> 'Queries':
    """The distinct masked sequences, each with all the answers of its rows.

    Answers are counted as often as they are given: an answer of two equal rows
    is there twice. Rows come in the order of their first appearance.
    """
    group, num_groups = grouping.group_rows(
      self.tokens
    )  # equal tokens, equal masks
    answer_group = np.repeat(group, self.num_answers)
    order = np.argsort(answer_group, kind='stable')
    first = np.full(num_groups, len(self), dtype=np.int64)
    np.minimum.at(first, group, np.arange(len(self)))
    counts = np.bincount(answer_group, minlength=num_groups)
    merged = Queries(
      self.tokens[first],
      self.mask_position[first],
      grouping.indptr_of(counts),
      self.indices[order],
    )
    return merged.take(np.argsort(first))

  def known_answers(self, known: 'Queries') -> tuple[np.ndarray, np.ndarray]:
    """Joins these queries with `known` ones: which entities fit each query.

    Returns:
      indptr int64 [N + 1] and indices int32 [total]: for each of these queries
      the distinct answers of all rows of `known` that have the same tokens.
    """
    rows = len(self)
    both = np.concatenate([self.tokens, known.tokens])
    group, num_groups = grouping.group_rows(both)
    answer_group = np.repeat(group[rows:], known.num_answers)
    span = int(known.indices.max(initial=0)) + 1
    # NumPy 2.4 sorts faster than it hashes: return_index makes it sort.
    pairs, _ = np.unique(answer_group * span + known.indices, return_index=True)
    counts = np.bincount(pairs // span, minlength=num_groups)
    starts = grouping.indptr_of(counts)[:-1]
    asked = group[:rows]
    indices = (pairs % span).astype(np.int32)
    return (
      grouping.indptr_of(counts[asked]),
      indices[grouping.ranges(starts[asked], counts[asked])],
    )

  def total_answers(self) -> np.ndarray:
    """How many answers all rows of the same tokens have together: int64 [N]."""
    group, num_groups = grouping.group_rows(self.tokens)
    totals = np.zeros(num_groups, dtype=np.int64)
    np.add.at(totals, group, self.num_answers)
    return totals[group]

  def split_answers(self, most: int) -> 'Queries':
    """The same queries, rows with more than `most` answers cut into several."""
    pieces = np.maximum(-(-self.num_answers // most), 1)
    rows = np.repeat(np.arange(len(self)), pieces)
    piece = np.arange(len(rows)) - np.repeat(
      grouping.indptr_of(pieces)[:-1], pieces
    )
    counts = np.minimum(self.num_answers[rows] - piece * most, most)
    return Queries(
      self.tokens[rows],
      self.mask_position[rows],
      grouping.indptr_of(counts),
      self.indices,
    )


def from_triples(
  triples: np.ndarray,
  vocabulary: vocabulary_lib.Vocabulary,
  *,
  side: str = 'both',
) -> Queries:
  """Queries that ask for the head, the tail or both of each triple.

  Args:
    triples: int32 [T, 3]: head entity id, relation index, tail entity id.
    vocabulary: gives relations and MASK their token ids.
    side: which entity is masked: `head` (? r o), `tail` (s r ?) or `both`:
      first the T tail queries, then the T head queries.

  Returns:
    T or 2 T queries of K = 3 tokens with one answer each.
  """
  if side == 'both':
    tail = from_triples(triples, vocabulary, side='tail')
    head = from_triples(triples, vocabulary, side='head')
    return concatenate([tail, head])
  if side not in ('head', 'tail'):
    raise ValueError(f"side is {side!r}: expected 'head', 'tail' or 'both'")
  position = {'head': 0, 'tail': 2}[side]
  tokens = triples + np.array([0, vocabulary.num_entities, 0], dtype=np.int32)
  tokens[:, position] = vocabulary.mask_id
  return Queries(
    tokens,
    np.full(len(triples), position, dtype=np.int32),
    np.arange(len(triples) + 1, dtype=np.int64),
    np.ascontiguousarray(triples[:, position]),
  )


def concatenate(parts: list[Queries]) -> Queries:
  """One set of queries after the other; all have the same width K."""
  counts = np.concatenate([part.num_answers for part in parts])
  return Queries(
    np.concatenate([part.tokens for part in parts]),
    np.concatenate([part.mask_position for part in parts]),
    grouping.indptr_of(counts),
    np.concatenate([part.indices for part in parts]),
  )
