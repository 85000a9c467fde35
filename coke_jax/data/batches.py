"""Training batches of fixed shapes, in an order given by (seed, epoch)."""

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from coke_jax.data import candidates as candidates_lib
from coke_jax.data import fresh_walks
from coke_jax.data import queries as queries_lib

# This number fills the unused columns and the padding rows of `answers`.
PAD_ANSWER = -1

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingSet:
  """Training queries, divided into batches.

  All rows of a batch have the same number of tokens, so no computation is spent
  on padding tokens. All batches with the same length have the shape
  [batch_size, length]. If too few rows are left for the last batch of a length,
  it is filled with padding rows, which have no answers and no weight in the
  loss.

  Attributes:
    queries: the training data. Each answer of a row is one training instance.
    batch_size: B, the number of rows in a batch over all devices.
    pad_id: the token id of PAD.
    seed: the order of the rows in an epoch depends on the seed and the number
      of the epoch.
    chunk_size: the number of consecutive batches with the same length. Such a
      chunk can be sent to the devices in one call. The last chunk of a length
      can be smaller. Default: 1.
    num_candidates: the number of entities in the softmax of a batch, see
      `candidates`. Default: 0, which means all entities.
    num_entities: V. It is only used for candidates and weights of answers.
    own_rows: int64 [b]. If several processes share each batch, these are the
      rows for this process. `epoch` yields only these rows. Default: all rows.
    walks: the source of more batches, which are different in every epoch.
      Default: there are only the batches of `queries`.
    rare_answer_weight: the weight of an answer without training instances,
      relative to the weight of the most frequent answer. Default: 1, which
      means equal weights.
  """

  queries: queries_lib.Queries
  batch_size: int
  pad_id: int
  seed: int
  chunk_size: int = 1
  num_candidates: int = 0
  num_entities: int = 0
  own_rows: np.ndarray | None = None
  walks: fresh_walks.FreshWalks | None = None
  rare_answer_weight: float = 1.0

  def __post_init__(self) -> None:
    lengths = (self.queries.tokens != self.pad_id).sum(axis=1, dtype=np.int32)
    rows = {
      int(length): np.flatnonzero(lengths == length).astype(np.int32)
      for length in np.flatnonzero(np.bincount(lengths))
    }
    object.__setattr__(self, '_rows', rows)

  @property
  def num_instances(self) -> int:
    """The number of training instances (query and answer) in an epoch."""
    return len(self.queries.indices) + self._num_walks

  @property
  def num_rows(self) -> int:
    """The number of rows in an epoch, without padding rows."""
    return len(self.queries) + self._num_walks

  @property
  def mean_answers_per_row(self) -> float:
    """Mean number of answers of a row."""
    return self.num_instances / self.num_rows

  @functools.cached_property
  def answers_per_row(self) -> int:
    """Maximum number of answers of a row, and the width of `answers`."""
    return int(self.queries.num_answers.max())

  @functools.cached_property
  def weight_of_entity(self) -> np.ndarray | None:
    """The weight of each entity as an answer, float32 [V].

    It grows linearly with the number of training instances that have the
    answer. The mean over all training instances in `queries` is 1. None if all
    weights are 1.
    """
    if self.rare_answer_weight == 1:
      return None
    count = np.bincount(self.queries.indices, minlength=self.num_entities)
    rare = self.rare_answer_weight
    weight = rare + (1 - rare) * count / count.max()
    return (weight / np.average(weight, weights=count)).astype(np.float32)

  @property
  def steps_per_epoch(self) -> int:
    """The number of batches in an epoch."""
    rows: dict[int, np.ndarray] = self._rows  # type: ignore[attr-defined]
    of_queries = sum(
      -(-len(index) // self.batch_size) for index in rows.values()
    )
    return of_queries + self._num_walks // self.batch_size

  @property
  def _num_walks(self) -> int:
    if self.walks is None:
      return 0
    return fresh_walks.num_walks(
      self.walks.per_epoch, self.walks.longest, self.batch_size
    )

  def _walk_batches(self) -> list[list[tuple[int, np.ndarray | None]]]:
    """Returns a pair (length, None) for each batch of `walks`, by length."""
    if self.walks is None:
      return []
    lengths = range(2, self.walks.longest + 1)
    count = self._num_walks // (self.batch_size * len(lengths))
    return [[(relations + 2, None)] * count for relations in lengths]

  def epoch(self, epoch: int, first_batch: int = 0) -> Iterator[Batch]:
    """Yields the batches of one epoch. Each row is in exactly one batch.

    Args:
      epoch: the number of the epoch, counted from 0. The order of the rows
        depends only on this number and the seed.
      first_batch: the number of batches to skip, for a training that continues
        within an epoch. Default: 0.

    Yields:
      A dictionary of these arrays. If `own_rows` is set, the arrays with B rows
      have b rows instead.
        `tokens`: int32 [B, length].
        `mask_position`: int32 [B].
        `answers`: int32 [B, answers_per_row], padded with PAD_ANSWER.
        `answer_weight`: float32 [B, answers_per_row], the factor of the loss of
          each answer. It is missing if all weights are 1.
        `candidates`, `candidate_weight`: see `candidates.sample_candidates`.
          They are missing if the attribute `num_candidates` is 0. If they
          exist, `candidates` contains all entities of `tokens`, and `answers`
          contains indices of `candidates`, not entity ids.
    """
    generator = np.random.default_rng([self.seed, epoch])
    rows: dict[int, np.ndarray] = self._rows  # type: ignore[attr-defined]
    by_length: list[list[tuple[int, np.ndarray | None]]] = []
    for length, index in rows.items():
      shuffled = generator.permutation(index)
      by_length.append(
        [
          (length, shuffled[start : start + self.batch_size])
          for start in range(0, len(shuffled), self.batch_size)
        ]
      )
    by_length.extend(self._walk_batches())
    parts = [
      of_length[start : start + self.chunk_size]
      for of_length in by_length
      for start in range(0, len(of_length), self.chunk_size)
    ]
    order = generator.permutation(len(parts))
    ordered = [part for number in order for part in parts[number]]
    for number, (length, chosen) in enumerate(
      ordered[first_batch:], first_batch
    ):
      queries = self._queries(length, chosen, [self.seed, epoch, number, 1])
      if not self.num_candidates:
        yield self._batch(length, queries, self.own_rows)
        continue
      # Sample from all rows, so that all processes get the same candidates.
      batch = self._batch(length, queries)
      sampled = candidates_lib.sample_candidates(
        batch['answers'],
        self.num_entities,
        self.num_candidates,
        np.random.default_rng([self.seed, epoch, number]),
        batch['tokens'][batch['tokens'] < self.num_entities],
      )
      batch['answers'] = sampled.pop('answers')
      if self.own_rows is not None:
        batch = {name: array[self.own_rows] for name, array in batch.items()}
      yield batch | sampled

  def _queries(
    self, length: int, chosen: np.ndarray | None, seed: list[int]
  ) -> queries_lib.Queries:
    """Returns the chosen rows, or new walks with `length` tokens."""
    if chosen is not None:
      return self.queries.take(chosen)
    assert self.walks is not None  # Only batches of `walks` have no rows.
    generator = np.random.default_rng(seed)
    return self.walks.sample(length - 2, self.batch_size, generator)

  def _batch(
    self,
    length: int,
    queries: queries_lib.Queries,
    own: np.ndarray | None = None,
  ) -> Batch:
    size = self.batch_size
    if own is not None:
      size, queries = len(own), queries.take(own[own < len(queries)])
    count = len(queries)
    tokens = np.full((size, length), self.pad_id, dtype=np.int32)
    mask_position = np.zeros(size, dtype=np.int32)
    shape = (size, self.answers_per_row)
    answers = np.full(shape, PAD_ANSWER, dtype=np.int32)
    tokens[:count] = queries.tokens[:, :length]
    mask_position[:count] = queries.mask_position
    filled = np.arange(shape[1]) < queries.num_answers[:, None]
    answers[:count][filled] = queries.indices
    batch = {
      'tokens': tokens,
      'mask_position': mask_position,
      'answers': answers,
    }
    if self.weight_of_entity is not None:
      # The weight of padding has no effect.
      batch['answer_weight'] = self.weight_of_entity[answers]
    return batch


def chunks(
  epoch: Iterable[Batch], size: int, ends: Callable[[int], bool]
) -> Iterator[list[Batch]]:
  """Groups consecutive batches of equal shape into chunks.

  Args:
    epoch: the batches.
    size: maximum number of batches in a chunk.
    ends: a function of the number of a batch, counted from 1. It returns
      whether a chunk must end after this batch.

  Yields:
    Lists of 1 to `size` batches. The order of the batches does not change.
  """
  chunk: list[Batch] = []
  for number, batch in enumerate(epoch, 1):
    if chunk and _shapes(batch) != _shapes(chunk[0]):
      yield chunk
      chunk = []
    chunk.append(batch)
    if len(chunk) == size or ends(number):
      yield chunk
      chunk = []
  if chunk:
    yield chunk


def _shapes(batch: Batch) -> dict[str, tuple[int, ...]]:
  return {name: array.shape for name, array in batch.items()}


def stack(chunk: list[Batch], size: int) -> Batch:
  """Stacks batches of equal shape along a new first axis.

  If there are fewer than `size` batches, the rest of the arrays is 0.

  Args:
    chunk: 1 to `size` batches.
    size: the length of the new axis.

  Returns:
    A dictionary of arrays [size, B, ...].

  Raises:
    ValueError: `chunk` has no batch, or more than `size`.
  """
  if not 1 <= len(chunk) <= size:
    raise ValueError(f'{len(chunk)} batches: expected 1 to {size}')
  stacked = {}
  for name, array in chunk[0].items():
    stacked[name] = np.zeros((size, *array.shape), array.dtype)
    for number, batch in enumerate(chunk):
      stacked[name][number] = batch[name]
  return stacked
