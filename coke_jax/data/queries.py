"""Queries: sequences with one masked entity, and their known answers.

A model is trained on the queries of the training triples or paths. The filtered
evaluation removes the answers that a query has in any split from the
candidates. Prediction uses queries without answers.
"""

import dataclasses

import numpy as np

from coke_jax.data import grouping
from coke_jax.data import vocabulary as vocabulary_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Queries:
  """N masked sequences and their answers.

  Attributes:
    tokens: int32 [N, K], token ids. Each row has one MASK and is padded with
      PAD on the right.
    mask_position: int32 [N], the column of MASK in each row.
    indptr: int64 [N + 1]. The answers of row i are
      `indices[indptr[i]:indptr[i + 1]]`.
    indices: int32 [answers], entity ids.

  Raises:
    ValueError: the shapes do not fit together.
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
    """The number of answers of each row: int64 [N]."""
    return np.diff(self.indptr)

  def take(self, rows: np.ndarray) -> 'Queries':
    """Returns the queries at `rows`, integers [M] or booleans [N]."""
    rows = np.arange(len(self))[rows]
    counts = self.num_answers[rows]
    return Queries(
      self.tokens[rows],
      self.mask_position[rows],
      grouping.indptr_of(counts),
      self.indices[grouping.ranges(self.indptr[rows], counts)],
    )

  def grouped(self) -> 'Queries':
    """Merges all rows with equal tokens into one row with all their answers.

    If two merged rows have the same answer, the merged row contains it twice.
    Rows are in the order of their first appearance.
    """
    group, num_groups = grouping.group_rows(self.tokens)
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
    """Returns the answers that other queries with the same tokens have.

    Args:
      known: queries with the same number of columns K.

    Returns:
      indptr: int64 [N + 1]. The known answers of row i are
        `indices[indptr[i]:indptr[i + 1]]`.
      indices: int32 [total]. For each row, the sorted distinct answers of all
        rows of `known` with the same tokens.
    """
    rows = len(self)
    both = np.concatenate([self.tokens, known.tokens])
    group, num_groups = grouping.group_rows(both)
    answer_group = np.repeat(group[rows:], known.num_answers)
    span = int(known.indices.max(initial=0)) + 1
    # NumPy 2.4 finds unique values by hashing, which is slower here than
    # sorting. With return_index=True, it sorts.
    pairs, _ = np.unique(answer_group * span + known.indices, return_index=True)
    counts = np.bincount(pairs // span, minlength=num_groups)
    starts = grouping.indptr_of(counts)[:-1]
    own = group[:rows]
    indices = (pairs % span).astype(np.int32)
    return (
      grouping.indptr_of(counts[own]),
      indices[grouping.ranges(starts[own], counts[own])],
    )

  def total_answers(self) -> np.ndarray:
    """Returns the total number of answers of each query: int64 [N].

    The number of a row is the sum over all rows with the same tokens.
    """
    group, num_groups = grouping.group_rows(self.tokens)
    totals = np.zeros(num_groups, dtype=np.int64)
    np.add.at(totals, group, self.num_answers)
    return totals[group]

  def split_answers(self, most: int) -> 'Queries':
    """Splits rows with more than `most` answers into several rows.

    Args:
      most: maximum number of answers of a row in the result, at least 1.

    Returns:
      The queries, in the same order. All rows of a split query have its tokens,
      and together they have its answers in the same order.
    """
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
  """Makes queries for the head or the tail of each triple, or for both.

  Args:
    triples: int32 [T, 3]: head entity id, relation index, tail entity id.
    vocabulary: the vocabulary of the token ids.
    side: `head` masks the head (? r o) and `tail` the tail (s r ?) of each
      triple. `both` gives the T tail queries, then the T head queries. Default:
      `both`.

  Returns:
    T or 2 T queries with K = 3 tokens and one answer each.

  Raises:
    ValueError: `side` has another value.
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
  """Concatenates sets of queries.

  Args:
    parts: one or more sets of queries with the same number of columns K.
  """
  counts = np.concatenate([part.num_answers for part in parts])
  return Queries(
    np.concatenate([part.tokens for part in parts]),
    np.concatenate([part.mask_position for part in parts]),
    grouping.indptr_of(counts),
    np.concatenate([part.indices for part in parts]),
  )
