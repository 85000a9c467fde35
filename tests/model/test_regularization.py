"""Compares the N3 penalty with loops over complex numbers."""

import jax
import numpy as np
import pytest
import small

from coke_jax.data import candidates
from coke_jax.model import regularization
from coke_jax.training import setup as setup_lib

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


def brute_force(params, *, penalize_factors=True):
  entities, factors = (
    params['element_embedding'],
    params['composition_embedding'],
  )
  # For each query: the known entity, the rows of its factors, and the answers.
  queries = [(3, [1], [4, 9]), (5, [R, R + 1], [7]), (0, [], [])]
  return [
    sum(
      cubes(entities[known])
      + sum(cubes(factors[row]) for row in rows if penalize_factors)
      + cubes(entities[answer])
      for answer in answers
    )
    for known, rows, answers in queries
  ]


def test_equals_the_sum_over_instances(params):
  batch = {'tokens': TOKENS, 'answers': ANSWERS}
  got = regularization.n3_penalty(params, batch, V, PAD)
  np.testing.assert_allclose(got, brute_force(params), rtol=1e-5)


def test_the_penalty_without_factors(params):
  batch = {'tokens': TOKENS, 'answers': ANSWERS}
  got = regularization.n3_penalty(params, batch, V, PAD, penalize_factors=False)
  expected = brute_force(params, penalize_factors=False)
  np.testing.assert_allclose(got, expected, rtol=1e-5)


@pytest.mark.parametrize(
  ('kind', 'composition', 'penalized'),
  [
    ('triples', 'complex', True),
    ('triples', 'rotation', False),
    ('paths', 'complex', False),
    ('walks', 'rotation', False),
  ],
)
def test_only_factors_of_products_with_one_relation_are_penalized(
  kind, composition, penalized
):
  config = small.config(model={'composition': composition})
  config.data.kind = kind
  assert setup_lib.penalizes_factors(config) == penalized


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
