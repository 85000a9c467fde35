"""Training batches of fixed shapes, in an order given by (seed, epoch)."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from coke_jax.data import queries as queries_lib

PAD_ANSWER = -1  # pads the answers of a row, and fills padding rows

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingSet:
  """Training queries in batches of rows of equal length.

  All rows of a batch have the same sequence length, so that no computation is
  spent on padding tokens. Each length has one fixed shape, [batch_size,
  length]. The last batch of a length is filled up with rows that have no answer
  and therefore no weight.

  Attributes:
    queries: the training data; each answer of a row is one training instance.
    batch_size: B, rows per batch, over all devices together.
    pad_id: the token id of PAD.
    seed: determines, together with the number of the epoch, the order of rows.
    chunk_size: batches of one length that follow each other (fewer at the end
      of a length), so that they can go to the devices in one call. Default: 1.
    answer_weight: float32 [N], the weight in the loss of each answer of a row.
      Default: 1 for every row.
  """

  queries: queries_lib.Queries
  batch_size: int
  pad_id: int
  seed: int
  chunk_size: int = 1
  answer_weight: np.ndarray | None = None

  def __post_init__(self) -> None:
    lengths = (self.queries.tokens != self.pad_id).sum(axis=1)
    rows = {
      int(length): np.flatnonzero(lengths == length)
      for length in np.unique(lengths)
    }
    object.__setattr__(self, '_rows', rows)

  @property
  def num_instances(self) -> int:
    """Training instances (a masked sequence and an answer) in one epoch."""
    return len(self.queries.indices)

  @property
  def weight_per_row(self) -> float:
    """The mean over rows of the summed weight of a row's answers."""
    if self.answer_weight is None:
      return self.num_instances / len(self.queries)
    return float(np.mean(self.queries.num_answers * self.answer_weight))

  @property
  def answers_per_row(self) -> int:
    """The largest number of answers of a row: the width of `answers`."""
    return int(self.queries.num_answers.max())

  @property
  def steps_per_epoch(self) -> int:
    """Batches in one epoch."""
    rows: dict[int, np.ndarray] = self._rows  # type: ignore[attr-defined]
    return sum(-(-len(index) // self.batch_size) for index in rows.values())

  def epoch(self, epoch: int, first_batch: int = 0) -> Iterator[Batch]:
    """Yields the batches of one epoch; each row is in exactly one of them.

    Args:
      epoch: the number of the epoch, counted from 0. The order depends on it
        and the seed only.
      first_batch: the number of batches to skip, for resuming inside an epoch.
        Default: 0.

    Yields:
      A dictionary of `tokens` int32 [B, length], `mask_position` int32 [B] and
      `answers` int32 [B, answers_per_row], padded with PAD_ANSWER; also, if
      the answers have weights, `answer_weight` float32 [B], 0 in padding rows.
    """
    generator = np.random.default_rng([self.seed, epoch])
    rows: dict[int, np.ndarray] = self._rows  # type: ignore[attr-defined]
    parts: list[list[tuple[int, np.ndarray]]] = []
    for length, index in rows.items():
      shuffled = generator.permutation(index)
      of_length = [
        (length, shuffled[start : start + self.batch_size])
        for start in range(0, len(shuffled), self.batch_size)
      ]
      parts.extend(
        of_length[start : start + self.chunk_size]
        for start in range(0, len(of_length), self.chunk_size)
      )
    order = generator.permutation(len(parts))
    ordered = [part for number in order for part in parts[number]]
    for part in ordered[first_batch:]:
      yield self._batch(*part)

  def _batch(self, length: int, rows: np.ndarray) -> Batch:
    taken = self.queries.take(rows)
    tokens = np.full((self.batch_size, length), self.pad_id, dtype=np.int32)
    mask_position = np.zeros(self.batch_size, dtype=np.int32)
    shape = (self.batch_size, self.answers_per_row)
    answers = np.full(shape, PAD_ANSWER, dtype=np.int32)
    tokens[: len(rows)] = taken.tokens[:, :length]
    mask_position[: len(rows)] = taken.mask_position
    filled = np.arange(shape[1]) < taken.num_answers[:, None]
    answers[: len(rows)][filled] = taken.indices
    batch: Batch = {
      'tokens': tokens,
      'mask_position': mask_position,
      'answers': answers,
    }
    if self.answer_weight is not None:
      weight = np.zeros(self.batch_size, dtype=np.float32)
      weight[: len(rows)] = self.answer_weight[rows]
      batch['answer_weight'] = weight
    return batch


def chunks(
  epoch: Iterable[Batch], size: int, ends: Callable[[int], bool]
) -> Iterator[list[Batch]]:
  """Groups consecutive batches of equal shape into chunks.

  Args:
    epoch: the batches.
    size: the most batches of a chunk.
    ends: whether the n-th batch, counted from 1, must be the last of its chunk.

  Yields:
    Lists of 1 to `size` batches, in the given order.
  """
  chunk: list[Batch] = []
  for number, batch in enumerate(epoch, 1):
    if chunk and batch['tokens'].shape != chunk[0]['tokens'].shape:
      yield chunk
      chunk = []
    chunk.append(batch)
    if len(chunk) == size or ends(number):
      yield chunk
      chunk = []
  if chunk:
    yield chunk


def stack(chunk: list[Batch], size: int) -> Batch:
  """Stacks batches of equal shape along a new first axis, padded with 0.

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
