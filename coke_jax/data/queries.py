"""Queries: sequences with one masked entity, and their known answers.

A model is trained on the queries of the training triples or paths. When the
filtered evaluation ranks an answer, it leaves out the other answers of the
query in all splits. Prediction uses queries without answers.
"""

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from coke_jax.data import entity_sets, grouping
from coke_jax.data import vocabulary as vocabulary_lib

# Number of triples in a part of `parts_from_triples`.
_PART = 1 << 20


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
    """Returns the queries at `rows`, integers >= 0 [M] or booleans [N]."""
    if rows.dtype == bool:
      rows = np.flatnonzero(rows)
    # `num_answers` would count the answers of all N rows.
    counts = self.indptr[rows + 1] - self.indptr[rows]
    return Queries(
      self.tokens[rows],
      self.mask_position[rows],
      grouping.indptr_of(counts),
      self.indices[grouping.ranges(self.indptr[rows], counts)],
    )

  def grouped(self) -> 'Queries':
    """Merges all rows with equal tokens into one row with all their answers.

    An answer that two rows share is kept twice. Rows are in the order of their
    first appearance.
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

  def known_answers(
    self, known: 'Queries | Iterable[Queries]', num_entities: int
  ) -> entity_sets.EntitySets:
    """Finds the answers in `known` for the tokens of each row.

    The answers for equal tokens are stored only once.

    Args:
      known: queries with K columns, or several sets of such queries. The sets
        are read one at a time.
      num_entities: V, the number of entities.

    Returns:
      N sets. Set i contains the answers of all rows of `known` with the tokens
      of row i.
    """
    finder = grouping.RowFinder(self.tokens)
    pairs = [np.zeros(0, np.int64)]
    for part in [known] if isinstance(known, Queries) else known:
      group, rows = finder.find(part.tokens)
      counts = part.num_answers[rows]
      answers = part.indices[grouping.ranges(part.indptr[rows], counts)]
      pairs.append(np.repeat(group, counts) * num_entities + answers)
    found = grouping.distinct_values(np.concatenate(pairs))
    counts = np.bincount(found // num_entities, minlength=finder.num_groups)
    return entity_sets.EntitySets(
      finder.group.astype(np.int32),
      grouping.indptr_of(counts),
      (found % num_entities).astype(np.int32),
      num_entities,
    )

  def split_answers(self, most: int) -> 'Queries':
    """Splits rows with more than `most` answers into several rows.

    Args:
      most: maximum number of answers of a row in the result, at least 1.

    Returns:
      The queries, in the same order. Each part of a query has all its tokens
      and some of its answers. The answers stay in order.
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
    side: `head` masks the head of each triple (? r o), and `tail` masks its
      tail (s r ?). `both` gives the T tail queries, then the T head queries.
      Default: `both`.

  Returns:
    T or 2 T queries with K = 3 tokens and one answer each.

  Raises:
    ValueError: `side` has another value.
  """
  positions = {'both': (2, 0), 'head': (0,), 'tail': (2,)}
  if side not in positions:
    raise ValueError(f"side is {side!r}: expected 'head', 'tail' or 'both'")
  chosen = np.array(positions[side], dtype=np.int32)
  tokens = np.tile(triples, (len(chosen), 1))
  tokens[:, 1] += vocabulary.num_entities
  mask_position = np.repeat(chosen, len(triples))
  for place, position in enumerate(chosen):
    rows = slice(place * len(triples), (place + 1) * len(triples))
    tokens[rows, position] = vocabulary.mask_id
  return Queries(
    tokens,
    mask_position,
    np.arange(len(tokens) + 1, dtype=np.int64),
    triples[:, chosen].T.reshape(-1),
  )


def parts_from_triples(
  triples: np.ndarray, vocabulary: vocabulary_lib.Vocabulary
) -> Iterator[Queries]:
  """Yields the queries of `from_triples` in parts that need little memory.

  Args:
    triples: int32 [T, 3]: head entity id, relation index, tail entity id.
    vocabulary: the vocabulary of the token ids.

  Yields:
    The tail queries, then the head queries of at most 2^20 triples.
  """
  for start in range(0, len(triples), _PART):
    yield from_triples(triples[start : start + _PART], vocabulary)


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
