"""Compares sampled candidates with all entities: sums, losses, gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small

from coke_jax.data import batches, candidates, queries
from coke_jax.model import loss


@pytest.mark.parametrize('num_entities', [60, 1000])
def test_candidates_are_the_answers_and_sampled_entities(num_entities):
  generator = np.random.default_rng(0)
  answers = generator.integers(-1, num_entities, (7, 3)).astype(np.int32)
  got = candidates.sample_candidates(answers, num_entities, 40, generator)
  chosen, weight = got['candidates'][0], got['candidate_weight'][0]
  assert len(chosen) == len(weight) == 40
  assert len(set(chosen)) == 40
  assert chosen.min() >= 0
  assert chosen.max() < num_entities
  is_answer = np.isin(chosen, answers)
  assert is_answer.sum() == len(np.unique(answers[answers >= 0]))
  np.testing.assert_array_equal(weight[is_answer], 1)
  assert weight.sum() == pytest.approx(num_entities, rel=1e-5)
  real = answers >= 0
  np.testing.assert_array_equal(got['answers'][~real], -1)
  np.testing.assert_array_equal(chosen[got['answers'][real]], answers[real])


@pytest.mark.parametrize('num_entities', [40, 1000])
def test_other_entities_are_sampled_uniformly(num_entities):
  generator = np.random.default_rng(1)
  answers = np.array([[3, 5], [5, -1]], np.int32)
  counts, trials = np.zeros(num_entities), 4000
  for _ in range(trials):
    got = candidates.sample_candidates(answers, num_entities, 12, generator)
    counts[got['candidates'][0]] += 1
  assert counts[3] == counts[5] == trials
  others = np.delete(counts, [3, 5])
  rate = 10 / (num_entities - 2)
  deviations = (others - trials * rate) / (trials * rate * (1 - rate)) ** 0.5
  assert np.abs(deviations).max() < 5
  assert 0.5 < (deviations**2).mean() < 1.6


def test_many_answers_get_more_candidates():
  generator = np.random.default_rng(0)
  answers = np.arange(30, dtype=np.int32).reshape(5, 6)
  for num_entities, size in ((1000, 40), (35, 35)):
    got = candidates.sample_candidates(answers, num_entities, 10, generator)
    assert got['candidates'].shape == (1, size)


def test_with_all_entities_as_candidates_the_loss_is_exact():
  generator = np.random.default_rng(0)
  answers = np.array([[1, 4], [2, -1], [-1, -1]], np.int32)
  logits = generator.normal(size=(3, 9)).astype(np.float32)
  got = candidates.sample_candidates(answers, 9, 50, generator)
  chosen, weight = got['candidates'][0], got['candidate_weight'][0]
  assert sorted(chosen) == list(range(9))
  np.testing.assert_allclose(
    loss.smoothed_cross_entropy(
      jnp.asarray(logits[:, chosen]),
      jnp.asarray(got['answers']),
      0.8,
      candidate_weight=jnp.asarray(weight),
      num_entities=9,
    ),
    loss.smoothed_cross_entropy(jnp.asarray(logits), answers, 0.8),
    rtol=1e-5,
  )


def test_the_sampled_sums_are_unbiased():
  """The mean over samples approaches the sums over all entities."""
  generator = np.random.default_rng(0)
  answers = np.array([[1, 4]], np.int32)
  logits = generator.normal(size=200)
  sums = []
  for _ in range(3000):
    got = candidates.sample_candidates(answers, 200, 30, generator)
    chosen, weight = got['candidates'][0], got['candidate_weight'][0]
    sums.append(
      ((weight * np.exp(logits[chosen])).sum(), (weight * logits[chosen]).sum())
    )
  mean, error = np.mean(sums, axis=0), np.std(sums, axis=0) / 3000**0.5
  expected = np.array([np.exp(logits).sum(), logits.sum()])
  assert (np.abs(mean - expected) < 5 * error).all()


def test_logits_of_candidates_and_their_gradients():
  model = small.coke()
  params = small.random_params(model)
  tokens, position = np.array([[1, 20, 22]]), np.array([2])
  chosen = np.array([7, 2, 11], np.int32)
  weight = np.array([1.0, -2.0, 0.5], np.float32)

  def some(params):
    logits = model.apply(
      {'params': params}, tokens, position, candidates=chosen
    )
    return (logits[0] * weight).sum()

  def every(params):
    logits = model.apply({'params': params}, tokens, position)
    return (logits[0, chosen] * weight).sum()

  value, gradient = jax.jit(jax.value_and_grad(some))(params)
  expected, wanted = jax.jit(jax.value_and_grad(every))(params)
  np.testing.assert_allclose(value, expected, rtol=1e-5)
  for left, right in zip(
    jax.tree.leaves(gradient), jax.tree.leaves(wanted), strict=True
  ):
    np.testing.assert_allclose(left, right, rtol=1e-4, atol=1e-5)


def test_batches_have_the_same_candidates_when_an_epoch_continues():
  graph = small.random_graph()
  rows = queries.from_triples(graph.train, graph.vocabulary).grouped()
  training_set = batches.TrainingSet(
    rows,
    8,
    graph.vocabulary.pad_id,
    0,
    num_candidates=12,
    num_entities=graph.vocabulary.num_entities,
  )
  whole = list(training_set.epoch(1))
  rest = list(training_set.epoch(1, first_batch=2))
  assert len(rest) == len(whole) - 2
  for left, right in zip(whole[2:], rest, strict=True):
    assert left.keys() == right.keys()
    for name, array in left.items():
      np.testing.assert_array_equal(array, right[name])
  plain = batches.TrainingSet(rows, 8, graph.vocabulary.pad_id, 0)
  for batch, other in zip(whole, plain.epoch(1), strict=True):
    real = other['answers'] >= 0
    np.testing.assert_array_equal(
      batch['candidates'][0][batch['answers'][real]], other['answers'][real]
    )
