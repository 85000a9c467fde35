"""Checks that an epoch contains each instance once, in a reproducible order."""

import collections
import itertools

import hypothesis
import numpy as np
import pytest
import small
from hypothesis import strategies as st

from coke_jax.data import batches, queries

VOCABULARY = small.labels(8, 3)
MASK, PAD = VOCABULARY.mask_id, VOCABULARY.pad_id


def triple_queries(count: int, seed: int = 0) -> queries.Queries:
  generator = np.random.default_rng(seed)
  triples = generator.integers(0, [8, 3, 8], size=(count, 3)).astype(np.int32)
  return queries.from_triples(triples, VOCABULARY)


def path_queries(count: int, seed: int = 0) -> queries.Queries:
  """Returns path queries with 3 to 7 tokens and 1 to 4 answers each."""
  generator = np.random.default_rng(seed)
  tokens = np.full((count, 7), PAD, dtype=np.int32)
  position = np.zeros(count, dtype=np.int32)
  counts = generator.integers(1, 5, size=count)
  for row in range(count):
    relations = generator.integers(8, 11, size=generator.integers(1, 6))
    entity = generator.integers(0, 8)
    masks_head = generator.random() < 0.5
    ends = (MASK, entity) if masks_head else (entity, MASK)
    length = len(relations) + 2
    tokens[row, :length] = [ends[0], *relations, ends[1]]
    position[row] = 0 if masks_head else length - 1
  return queries.Queries(
    tokens,
    position,
    np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
    generator.integers(0, 8, size=counts.sum()).astype(np.int32),
  )


def instances(made: queries.Queries) -> collections.Counter:
  """Counts the (tokens without padding, answer) pairs of queries."""
  return collections.Counter(
    (tuple(t for t in made.tokens[row].tolist() if t != PAD), answer)
    for row in range(len(made))
    for answer in made.indices[made.indptr[row] : made.indptr[row + 1]].tolist()
  )


def instances_of_batches(epoch: list[batches.Batch]) -> collections.Counter:
  """Checks the batches of an epoch, and counts their instances."""
  seen: collections.Counter = collections.Counter()
  for batch in epoch:
    assert set(batch) == {'tokens', 'mask_position', 'answers'}
    assert all(array.dtype == np.int32 for array in batch.values())
    for tokens, position, answers in zip(
      batch['tokens'].tolist(),
      batch['mask_position'].tolist(),
      batch['answers'].tolist(),
      strict=True,
    ):
      given = [a for a in answers if a != batches.PAD_ANSWER]
      assert answers == given + [batches.PAD_ANSWER] * (
        len(answers) - len(given)
      )
      if given:
        assert PAD not in tokens  # All rows of a batch have the same length.
        assert tokens[position] == MASK
        seen.update((tuple(tokens), answer) for answer in given)
      else:
        assert set(tokens) == {PAD}
  return seen


def equal(left: list[batches.Batch], right: list[batches.Batch]) -> bool:
  return len(left) == len(right) and all(
    np.array_equal(one[name], other[name])
    for one, other in zip(left, right, strict=True)
    for name in one
  )


@hypothesis.settings(deadline=None, max_examples=60)
@hypothesis.given(
  count=st.integers(1, 40),
  size=st.integers(1, 50),
  seed=st.integers(0, 2**32),
  epoch=st.integers(0, 1000),
  kind=st.sampled_from(['triples', 'paths', 'grouped', 'cut']),
)
def test_an_epoch_visits_each_instance_once(count, size, seed, epoch, kind):
  made = path_queries(count) if kind == 'paths' else triple_queries(count)
  if kind in ('grouped', 'cut'):
    made = made.grouped()
  if kind == 'cut':
    made = made.split_answers(2)
  data = batches.TrainingSet(made, size, PAD, seed)
  made_batches = list(data.epoch(epoch))
  assert instances_of_batches(made_batches) == instances(made)
  assert len(made_batches) == data.steps_per_epoch
  assert data.num_instances == sum(instances(made).values())
  assert data.mean_answers_per_row == data.num_instances / len(made)
  assert data.answers_per_row == max(np.diff(made.indptr))
  if kind == 'cut':
    assert data.answers_per_row <= 2


def test_no_row_is_in_two_batches():
  made = path_queries(53)
  rows = 0
  for batch in batches.TrainingSet(made, 8, PAD, 3).epoch(0):
    rows += int((batch['answers'] != batches.PAD_ANSWER).any(axis=1).sum())
  assert rows == 53


def test_shapes_are_fixed_for_each_length():
  data = batches.TrainingSet(path_queries(200), 16, PAD, 0)
  shapes = set()
  for epoch in range(3):
    for batch in data.epoch(epoch):
      assert batch['mask_position'].shape == (16,)
      assert batch['answers'].shape == (16, 4)
      shapes.add(batch['tokens'].shape)
  assert shapes == {(16, length) for length in range(3, 8)}


def test_batches_of_different_lengths_are_mixed():
  data = batches.TrainingSet(path_queries(400), 8, PAD, 0)
  lengths = [batch['tokens'].shape[1] for batch in data.epoch(0)]
  assert lengths != sorted(lengths)
  changes = sum(a != b for a, b in itertools.pairwise(lengths))
  assert changes > len(lengths) / 2


def test_batches_of_one_length_follow_each_other_in_chunks():
  made = path_queries(400)
  apart = batches.TrainingSet(made, 8, PAD, 0)
  data = batches.TrainingSet(made, 8, PAD, 0, chunk_size=3)
  assert data.steps_per_epoch == apart.steps_per_epoch
  epoch = list(data.epoch(0))
  assert instances_of_batches(epoch) == instances(made)
  assert equal(epoch[5:], list(data.epoch(0, 5)))
  lengths = [batch['tokens'].shape[1] for batch in epoch]
  changes = sum(a != b for a, b in itertools.pairwise(lengths))
  assert changes < len(lengths) / 2
  alone = collections.Counter(
    batch['tokens'].shape[1] for batch in apart.epoch(0)
  )
  assert collections.Counter(lengths) == alone


@pytest.mark.parametrize('size', [1, 3, 100])
def test_each_chunk_has_consecutive_batches_of_one_length(size):
  data = batches.TrainingSet(path_queries(200), 8, PAD, 0, chunk_size=4)
  epoch = list(data.epoch(0))
  made = list(batches.chunks(iter(epoch), size, lambda number: number % 5 == 0))
  assert equal([batch for chunk in made for batch in chunk], epoch)
  done = 0
  for chunk in made:
    assert 1 <= len(chunk) <= size
    assert len({batch['tokens'].shape for batch in chunk}) == 1
    # A chunk does not continue after a batch at which it must end.
    assert done // 5 == (done + len(chunk) - 1) // 5
    done += len(chunk)
  if size > 1:
    assert max(map(len, made)) > 1
  assert not list(batches.chunks([], size, lambda _: False))


def test_a_stack_is_padded_with_zeros():
  data = batches.TrainingSet(triple_queries(20), 8, PAD, 0)
  chunk = list(data.epoch(0))[:2]
  stacked = batches.stack(chunk, 3)
  for name, array in stacked.items():
    np.testing.assert_array_equal(array[0], chunk[0][name])
    np.testing.assert_array_equal(array[1], chunk[1][name])
    assert not array[2].any()
  for wrong in ([], chunk * 2):
    with pytest.raises(ValueError, match=r'\d batches: expected 1 to 3'):
      batches.stack(wrong, 3)


@pytest.mark.parametrize('made', [triple_queries(60), path_queries(120)])
def test_seed_and_epoch_determine_the_order(made):
  data = batches.TrainingSet(made, 8, PAD, 7)
  first = list(data.epoch(4))
  for _ in data.epoch(9):  # Another epoch in between has no effect.
    pass
  assert equal(first, list(data.epoch(4)))
  again = batches.TrainingSet(made, 8, PAD, 7)
  assert equal(first, list(again.epoch(4)))
  assert not equal(first, list(data.epoch(5)))
  other = batches.TrainingSet(made, 8, PAD, 8)
  assert not equal(first, list(other.epoch(4)))


def test_seed_and_epoch_are_not_added_up():
  made = triple_queries(60)
  assert not equal(
    list(batches.TrainingSet(made, 8, PAD, 1).epoch(2)),
    list(batches.TrainingSet(made, 8, PAD, 2).epoch(1)),
  )


def test_each_epoch_batches_other_rows_together():
  data = batches.TrainingSet(triple_queries(60), 8, PAD, 0)

  def first_batch(epoch: int) -> frozenset:
    batch = next(data.epoch(epoch))
    return frozenset(map(tuple, batch['tokens'].tolist()))

  assert len({first_batch(epoch) for epoch in range(10)}) > 5


@pytest.mark.parametrize('made', [triple_queries(33), path_queries(90)])
def test_an_epoch_can_start_at_any_batch(made):
  data = batches.TrainingSet(made, 7, PAD, 5)
  whole = list(data.epoch(3))
  for first in (0, 1, len(whole) - 1, len(whole)):
    assert equal(whole[first:], list(data.epoch(3, first)))


def test_a_batch_can_be_larger_than_the_data():
  data = batches.TrainingSet(triple_queries(3), 64, PAD, 0)
  (batch,) = data.epoch(0)
  assert batch['tokens'].shape == (64, 3)
  assert (batch['tokens'][6:] == PAD).all()
  assert (batch['answers'][6:] == batches.PAD_ANSWER).all()


def test_yielded_batches_do_not_share_memory():
  """The next batch may be built while a batch is still copied to a device."""
  data = batches.TrainingSet(triple_queries(20), 8, PAD, 0)
  epoch = list(data.epoch(0))
  before = [batch['tokens'].copy() for batch in epoch]
  for batch in data.epoch(1):
    batch['tokens'][:] = -5
  assert all(
    np.array_equal(batch['tokens'], copy)
    for batch, copy in zip(epoch, before, strict=True)
  )


@pytest.mark.parametrize('num_candidates', [0, 6])
def test_weights_of_answers_grow_with_their_number_of_instances(num_candidates):
  made = triple_queries(40).grouped()
  count = np.bincount(made.indices, minlength=VOCABULARY.num_entities)
  data = batches.TrainingSet(
    made, 8, PAD, 0,
    num_candidates=num_candidates, num_entities=VOCABULARY.num_entities,
    rare_answer_weight=0.25,
  )  # fmt: skip
  expected = {
    entity: 0.25 + 0.75 * number / count.max()
    for entity, number in enumerate(count.tolist())
  }
  mean = sum(expected[entity] for entity in made.indices.tolist())
  mean /= len(made.indices)
  seen, total = 0, 0.0
  for batch in data.epoch(3):
    for answers, weights in zip(
      batch['answers'], batch['answer_weight'], strict=True
    ):
      valid = answers >= 0
      entities = answers[valid]
      if num_candidates:
        entities = batch['candidates'][0][entities]
      np.testing.assert_allclose(
        weights[valid],
        [expected[entity] / mean for entity in entities.tolist()],
        rtol=1e-6,
      )
      seen, total = seen + len(entities), total + weights[valid].sum()
  assert seen == data.num_instances
  assert total == pytest.approx(seen, rel=1e-5)
