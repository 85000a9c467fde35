"""Compares the N3 penalty with loops over complex numbers."""

import jax
import numpy as np
import pytest
import small

from coke_jax.data import candidates
from coke_jax.model import regularization

V, R, MASK, PAD = 20, 2, 22, 23
TOKENS = np.array(
  [
    [3, V + 1, MASK, PAD, PAD],
    [MASK, V, V + 1, 5, PAD],
    [PAD, PAD, PAD, PAD, PAD],
  ],
  np.int32,
)
ANSWERS = np.array([[4, 9, -1], [7, -1, -1], [-1, -1, -1]], np.int32)


@pytest.fixture(scope='module')
def params():
  return small.random_params(small.coke(max_length=5, composition='complex'))


def cubes(vector):
  vector = np.asarray(vector, np.float64)
  half = len(vector) // 2
  return (np.abs(vector[:half] + 1j * vector[half:]) ** 3).sum()


def brute_force(params, *, rotation=False):
  entities, factors = (
    params['element_embedding'],
    params['composition_embedding'],
  )
  # For each query: the known entity, the rows of its factors, and the answers.
  queries = [(3, [1], [4, 9]), (5, [R, R + 1], [7]), (0, [], [])]
  return [
    sum(
      cubes(entities[known])
      + sum(cubes(factors[row]) for row in rows if not rotation)
      + cubes(entities[answer])
      for answer in answers
    )
    for known, rows, answers in queries
  ]


def test_equals_the_sum_over_instances(params):
  batch = {'tokens': TOKENS, 'answers': ANSWERS}
  got = regularization.n3_penalty(params, batch, V, PAD)
  np.testing.assert_allclose(got, brute_force(params), rtol=1e-5)


def test_factors_of_rotations_are_not_penalized(params):
  batch = {'tokens': TOKENS, 'answers': ANSWERS}
  got = regularization.n3_penalty(params, batch, V, PAD, rotation=True)
  expected = brute_force(params, rotation=True)
  np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_candidates_do_not_change_the_penalty(params):
  sampled = candidates.sample_candidates(
    ANSWERS, V, 8, np.random.default_rng(0)
  )
  batch = {
    'tokens': TOKENS,
    'answers': sampled['answers'],
    'candidates': sampled['candidates'][0],
  }
  got = regularization.n3_penalty(params, batch, V, PAD)
  np.testing.assert_allclose(got, brute_force(params), rtol=1e-5)


def test_the_gradient_at_zero_is_finite():
  gradient = jax.grad(lambda x: regularization.cubed_moduli(x).sum())(
    np.zeros(6, np.float32)
  )
  np.testing.assert_array_equal(gradient, 0)
