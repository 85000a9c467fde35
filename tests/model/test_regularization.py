"""Compares the penalties with loops over complex numbers."""

import jax
import jax.test_util
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


# For each query: the known entity, the rows of its factors, and the answers.
QUERIES = [(3, [1], [4, 9]), (5, [R, R + 1], [7]), (0, [], [])]
# The same queries if the query for the head is inverted. Relations 0 and 1 are
# inverses of each other. The path 0, 1 is reversed to 1, 0, and then each
# relation is replaced by its inverse. The result is 0, 1 again.
INVERTED = [(3, [1], [4, 9]), (5, [0, 1], [7]), (0, [], [])]
MODEL = small.coke(max_length=5, composition='complex')


@pytest.fixture(scope='module')
def params():
  return small.random_params(MODEL)


def complex_numbers(vector):
  vector = np.asarray(vector, np.float64)
  half = len(vector) // 2
  return vector[:half] + 1j * vector[half:]


def n3(params, *, penalize_factors=True):
  entities, factors = (
    params['element_embedding'],
    params['composition_embedding'],
  )

  def cubes(vector):
    return (np.abs(complex_numbers(vector)) ** 3).sum()

  return [
    sum(
      cubes(entities[known])
      + sum(cubes(factors[row]) for row in rows if penalize_factors)
      + cubes(entities[answer])
      for answer in answers
    )
    for known, rows, answers in QUERIES
  ]


def dura(params, queries, *, rotation=False):
  def squares(vector):
    return (np.abs(vector) ** 2).sum()

  totals = []
  for known, rows, answers in queries:
    total = 0.0
    for answer in answers:
      product = np.ones(MODEL.hidden_size // 2, complex)
      for row in rows:
        factor = complex_numbers(params['composition_embedding'][row])
        product *= factor / np.abs(factor) if rotation else factor
      for entity in (known, answer):
        vector = complex_numbers(params['element_embedding'][entity])
        total += 0.5 * squares(vector) + 1.5 * squares(vector * product)
    totals.append(total)
  return totals


def penalty(params, batch, model=MODEL, **options):
  return regularization.Penalties(**options)(params, batch, model)


BATCH = {'tokens': TOKENS, 'answers': ANSWERS}


def test_n3_equals_the_sum_over_instances(params):
  got = penalty(params, BATCH, n3=1.0)
  np.testing.assert_allclose(got, n3(params), rtol=1e-5)


def test_n3_without_factors(params):
  got = penalty(params, BATCH, n3=1.0, penalize_factors=False)
  np.testing.assert_allclose(got, n3(params, penalize_factors=False), rtol=1e-5)


@pytest.mark.parametrize(
  ('changes', 'queries'),
  [
    ({}, QUERIES),
    ({'composition': 'rotation'}, QUERIES),
    ({'inverse': (1, 0)}, INVERTED),
  ],
  ids=str,
)
def test_dura_equals_the_sum_over_instances(params, changes, queries):
  got = penalty(params, BATCH, MODEL.clone(**changes), dura=1.0)
  expected = dura(params, queries, rotation='composition' in changes)
  np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_the_gradient_of_dura_equals_finite_differences(params):
  jax.test_util.check_grads(
    lambda params: penalty(params, BATCH, dura=1.0),
    (params,), order=1, modes=['rev'], rtol=1e-2, atol=1e-2,
  )  # fmt: skip


def test_sums_of_answers_are_equal_in_steps_and_at_once():
  generator = np.random.default_rng(0)
  table = generator.standard_normal((6, 3)).astype(np.float32)
  answers = np.array([[0, 5, 0, -1], [-1, -1, -1, -1], [2, -1, -1, -1]])
  weight = generator.standard_normal((3, 3)).astype(np.float32)
  expected = [table[0] + table[5] + table[0], np.zeros(3), table[2]]
  gradient = np.zeros_like(table)
  for row, entity in [(0, 0), (0, 5), (0, 0), (2, 2)]:
    gradient[entity] += weight[row]
  for sums in (regularization.sums_in_steps, regularization.sums_at_once):
    np.testing.assert_allclose(sums(table, answers), expected, rtol=1e-6)
    np.testing.assert_allclose(
      jax.grad(lambda table, sums=sums: (weight * sums(table, answers)).sum())(
        table
      ),
      gradient,
      rtol=1e-5,
    )


def test_penalties_are_weighted_and_added(params):
  got = penalty(params, BATCH, n3=0.5, dura=2.0)
  expected = 0.5 * np.array(n3(params)) + 2.0 * np.array(dura(params, QUERIES))
  np.testing.assert_allclose(got, expected, rtol=1e-5)
  assert regularization.Penalties(dura=0.1)
  assert not regularization.Penalties()


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
  assert setup_lib.penalties(config).penalize_factors == penalized


def test_candidates_do_not_change_the_penalty(params):
  sampled = candidates.sample_candidates(
    ANSWERS, V, 8, np.random.default_rng(0)
  )
  batch = {
    'tokens': TOKENS,
    'answers': sampled['answers'],
    'candidates': sampled['candidates'][0],
  }
  expected = n3(params), dura(params, QUERIES)
  for options, wanted in zip(
    ({'n3': 1.0}, {'dura': 1.0}), expected, strict=True
  ):
    got = penalty(params, batch, **options)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)


def test_the_gradient_at_zero_is_finite():
  gradient = jax.grad(lambda x: regularization.cubed_moduli(x).sum())(
    np.zeros(6, np.float32)
  )
  np.testing.assert_array_equal(gradient, 0)
