"""Tests the conversion of queries for the head to queries for the tail."""

import numpy as np
import pytest
import small

INVERSE = (1, 0, 3, 2)
V = len(small.ENTITIES)
RELATIONS = [V, V + 1, V + 2, V + 3]
MASK, PAD = V + 4, V + 5
# Row i of HEADS is converted to row i of TAILS.
HEADS = np.array(
  [
    [MASK, V, 3, PAD, PAD],
    [MASK, V + 2, V, 5, PAD],
    [MASK, V + 1, V + 3, V + 2, 7],
  ]
)
TAILS = np.array(
  [
    [3, V + 1, MASK, PAD, PAD],
    [5, V + 1, V + 3, MASK, PAD],
    [7, V + 3, V + 2, V, MASK],
  ]
)
LAST = np.array([2, 3, 4])

BLOCKS = {}
PRODUCT = {
  'num_layers': 0,
  'composition': 'complex',
  'prediction_head': False,
  'input_norm': False,
}
BOTH = {'composition': 'rotation', 'relation_directions': True}


def make(**changes):
  model = small.coke(num_relations=4, max_length=5, inverse=INVERSE, **changes)
  return model, small.random_params(model)


@pytest.mark.parametrize('changes', [BLOCKS, PRODUCT, BOTH], ids=str)
def test_scores_of_heads_are_those_of_tails_of_the_inverse_path(changes):
  model, params = make(**changes)
  plain = model.clone(inverse=())
  expected = small.apply(plain, params, TAILS, LAST)
  first = np.zeros(3, np.int32)
  np.testing.assert_allclose(
    small.apply(model, params, HEADS, first), expected, rtol=1e-5
  )
  np.testing.assert_allclose(
    small.apply(model, params, TAILS, LAST), expected, rtol=1e-5
  )
  other = small.apply(plain, params, HEADS, first)
  assert np.abs(other - expected).max() > 1e-3


def test_hidden_states_stay_at_their_tokens():
  model, params = make()
  heads = small.apply(model, params, HEADS, method='encode')
  tails = small.apply(model, params, TAILS, method='encode')
  for row, last in enumerate(LAST):
    np.testing.assert_allclose(
      heads[row, : last + 1], tails[row, : last + 1][::-1], rtol=1e-5
    )


def test_sequences_without_mask_do_not_change():
  model, params = make()
  tokens = np.array([[1, V, V + 2, 4, PAD]])
  np.testing.assert_array_equal(
    small.apply(model, params, tokens, method='encode'),
    small.apply(model.clone(inverse=()), params, tokens, method='encode'),
  )
