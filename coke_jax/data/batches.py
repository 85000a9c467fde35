"""One epoch as fixed-shape NumPy batches, from (seed, epoch) alone."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator

import numpy as np

from coke_jax.data import queries as queries_lib

PAD_ANSWER = -1  # fills a row of answers to its fixed width, and padding rows

Batch = dict[str, np.ndarray]


@dataclasses.dataclass(frozen=True, eq=False)
class TrainingSet:
  """Queries laid out for training: rows of one length are batched together.

  A batch holds rows of a single sequence length, so that no compute goes into
  padding; each length has one fixed shape, [batch_size, length]. The last batch
  of a length is filled with rows that have no answer and hence no weight.

  Attributes:
    queries: what to train on; each answer of a row is one training instance.
    batch_size: rows in a batch, over all devices together.
    pad_id: the token id of PAD.
    seed: with the number of an epoch, decides the order of its rows.
    together: batches of one length that follow each other, where there are as
      many, so that they can be handed to the devices at once.
    answer_weight: float32 [N], what each answer of a row weighs in the loss;
      None: 1.
  """

  queries: queries_lib.Queries
  batch_size: int
  pad_id: int
  seed: int
  together: int = 1
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
    """Pairs of a masked sequence and an answer in one epoch."""
    return len(self.queries.indices)

  @property
  def weight_per_row(self) -> float:
    """The mean weight of a row, all its answers together."""
    if self.answer_weight is None:
      return self.num_instances / len(self.queries)
    return float(np.mean(self.queries.num_answers * self.answer_weight))

  @property
  def answers_per_row(self) -> int:
    """The most answers that a row has: the width of the answer arrays."""
    return int(self.queries.num_answers.max())

  @property
  def steps_per_epoch(self) -> int:
    """Batches in one epoch."""
    rows: dict[int, np.ndarray] = self._rows  # type: ignore[attr-defined]
    return sum(-(-len(index) // self.batch_size) for index in rows.values())

  def epoch(self, epoch: int, first_batch: int = 0) -> Iterator[Batch]:
    """Yields the batches of one epoch, each row in exactly one of them.

    Args:
      epoch: counts from 0; its order depends on the seed and this alone.
      first_batch: where to begin, when resuming inside an epoch.

    Yields:
      tokens int32 [B, length], mask_position int32 [B], and answers int32
      [B, answers_per_row] filled up with PAD_ANSWER; where answers have
      weights, answer_weight float32 [B], 0 in rows that only fill up.
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
        of_length[start : start + self.together]
        for start in range(0, len(of_length), self.together)
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


def runs(
  epoch: Iterable[Batch], most: int, ends: Callable[[int], bool]
) -> Iterator[list[Batch]]:
  """Gathers batches of one shape that follow each other.

  Args:
    epoch: the batches.
    most: batches in a run at most.
    ends: whether the n-th batch, counted from 1, must be the last of its run.

  Yields:
    1 to `most` batches, in the order given.
  """
  run: list[Batch] = []
  for number, batch in enumerate(epoch, 1):
    if run and batch['tokens'].shape != run[0]['tokens'].shape:
      yield run
      run = []
    run.append(batch)
    if len(run) == most or ends(number):
      yield run
      run = []
  if run:
    yield run


def stack(run: list[Batch], size: int) -> Batch:
  """Batches of one shape as arrays [size, B, ...]; 0 where there are fewer.

  Raises:
    ValueError: no batch, or more than `size`.
  """
  if not 1 <= len(run) <= size:
    raise ValueError(f'{len(run)} batches: expected 1 to {size}')
  stacked = {}
  for name, array in run[0].items():
    stacked[name] = np.zeros((size, *array.shape), array.dtype)
    for number, batch in enumerate(run):
      stacked[name][number] = batch[name]
  return stacked
