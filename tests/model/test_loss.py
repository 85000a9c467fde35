"""Compares the loss with a slow reference implementation."""

import jax.numpy as jnp
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from coke_jax.model import loss


def brute_force(logits, answers, target_mass, weights=None):
  """Computes the loss from full target distributions in float64."""
  logits = np.asarray(logits, np.float64)
  count = logits.shape[1]
  losses = []
  if weights is None:
    weights = np.ones(answers.shape)
  for row, row_answers, row_weights in zip(
    logits, answers, weights, strict=True
  ):
    log_p = row - np.log(np.exp(row - row.max()).sum()) - row.max()
    total = 0.0
    for answer, weight in zip(row_answers, row_weights, strict=True):
      if answer < 0:
        continue
      target = np.full(count, (1 - target_mass) / max(count - 1, 1))
      target[answer] = target_mass if count > 1 else 1.0
      assert np.isclose(target.sum(), 1)
      total -= weight * (target * log_p).sum()
    losses.append(total)
  return np.array(losses)


@settings(max_examples=40, deadline=None)
@given(
  seed=st.integers(0, 10**6),
  rows=st.just(3),
  # There are only three sizes, because each shape is compiled.
  entities=st.sampled_from([1, 2, 7]),
  most=st.just(4),
  target_mass=st.sampled_from([0.05, 0.25, 0.8, 1.0]),
)
def test_equals_the_full_distribution(seed, rows, entities, most, target_mass):
  generator = np.random.default_rng(seed)
  logits = generator.normal(size=(rows, entities)).astype(np.float32) * 5
  answers = generator.integers(-1, entities, (rows, most)).astype(np.int32)
  got = loss.smoothed_cross_entropy(
    jnp.asarray(logits), jnp.asarray(answers), target_mass
  )
  expected = brute_force(logits, answers, target_mass)
  np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)
  weights = generator.random(answers.shape).astype(np.float32)
  got = loss.smoothed_cross_entropy(
    jnp.asarray(logits),
    jnp.asarray(answers),
    target_mass,
    answer_weight=jnp.asarray(weights),
  )
  expected = brute_force(logits, answers, target_mass, weights)
  np.testing.assert_allclose(got, expected, rtol=2e-4, atol=2e-4)


def test_a_higher_target_mass_rewards_the_answer_more():
  """`target_mass` is the answer's probability in the target distribution."""
  unsure = jnp.zeros((1, 4))
  sure = jnp.array([[2.0, 0.0, 0.0, 0.0]])
  answer = jnp.array([[0]])

  def gain(mass):
    low = loss.smoothed_cross_entropy(unsure, answer, mass)
    return float((low - loss.smoothed_cross_entropy(sure, answer, mass))[0])

  assert gain(0.8) > 0
  assert gain(1.0) > gain(0.8) > gain(0.25)
  assert gain(0.1) < 0  # Every other entity has more mass than the answer.


def test_rows_without_answers_have_a_loss_of_zero():
  logits = jnp.ones((2, 3))
  losses = loss.smoothed_cross_entropy(logits, jnp.array([[-1], [2]]), 0.8)
  assert losses[0] == 0
  assert losses[1] > 0
