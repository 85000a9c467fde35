"""Compares ensembles with their single members."""

import jax
import numpy as np
import optax
import pytest
import small

from coke_jax import parallel
from coke_jax.model import ensemble, parameters
from coke_jax.training import train_state, train_step

MEMBERS = 3
TOKENS = np.array([[1, 20, 22], [22, 21, 4]], np.int32)
POSITION = np.array([2, 0], np.int32)


@pytest.fixture(scope='module')
def model():
  return ensemble.Ensemble(small.coke(num_layers=1, dropout=0.1), MEMBERS)


@pytest.fixture(scope='module')
def params(model):
  return parameters.init_params(model, 0)


def of_member(tree, index):
  return jax.tree.map(lambda leaf: leaf[index], tree)


def call_members(model, params, *arguments, **options):
  """Returns one array for each member."""
  return [
    np.asarray(
      small.apply(
        model.member,
        of_member(params['member'], index),
        *arguments,
        **options,
      )
    )
    for index in range(MEMBERS)
  ]


def test_members_start_from_different_parameters(params):
  table = np.asarray(params['member']['element_embedding'])
  assert table.shape == (MEMBERS, 24, 8)
  for index in range(1, MEMBERS):
    assert np.abs(table[index] - table[0]).max() > 0.01


def test_logits_are_the_mean_over_members(model, params):
  logits = call_members(model, params, TOKENS, POSITION)
  got = small.apply(model, params, TOKENS, POSITION)
  np.testing.assert_allclose(got, np.mean(logits, axis=0), rtol=1e-5, atol=1e-6)
  query = small.apply(model, params, TOKENS, POSITION, method='query_embedding')
  some = small.apply(model, params, query, 5, count=4, method='entity_logits')
  np.testing.assert_allclose(some, got[:, 5:9], rtol=1e-5, atol=1e-6)


def test_mean_logits_rank_like_mean_log_probabilities(model, params):
  logits = call_members(model, params, TOKENS, POSITION)
  mean = np.mean([jax.nn.log_softmax(one) for one in logits], axis=0)
  got = small.apply(model, params, TOKENS, POSITION)
  np.testing.assert_array_equal(np.argsort(got), np.argsort(mean))


@pytest.mark.parametrize('layer', [0, None])
def test_hidden_states_are_concatenated(model, params, layer):
  options = {'layer': layer, 'method': 'encode'}
  got = small.apply(model, params, TOKENS, **options)
  expected = call_members(model, params, TOKENS, **options)
  assert got.shape == (2, 3, model.hidden_size)
  np.testing.assert_allclose(
    got, np.concatenate(expected, axis=-1), rtol=1e-5, atol=1e-6
  )


def test_members_train_like_single_models(model, params):
  """Trains the ensemble, then each member alone with the same dropout keys."""
  optimizer = optax.chain(optax.clip_by_global_norm(0.1), optax.adam(0.01))
  steps = [
    {
      'tokens': np.roll(TOKENS, shift, axis=0),
      'mask_position': np.roll(POSITION, shift),
      'answers': np.array([[3, 5], [7, -1]], np.int32),
    }
    for shift in range(2)
  ]
  key = parameters.dropout_key(1)

  def train(model, state, key):
    step = train_step.make_train_step(
      model, optimizer, target_mass=0.9, steps_per_call=2
    )
    return step(parallel.replicate(state), steps, key)

  state, metrics = train(
    model, train_state.init_state(model, optimizer, 0), key
  )
  assert int(state.step) == 2
  losses = []
  for index in range(MEMBERS):
    own = of_member(params['member'], index)
    alone, own_metrics = train(
      model.member,
      train_state.TrainState(np.int32(0), own, optimizer.init(own)),
      jax.random.fold_in(key, index),
    )
    losses.append(own_metrics['loss'])
    together = of_member((state.params['member'], state.optimizer_state), index)
    for left, right in zip(
      jax.tree.leaves(together),
      jax.tree.leaves((alone.params, alone.optimizer_state)),
      strict=True,
    ):
      np.testing.assert_allclose(left, right, rtol=1e-5, atol=1e-6)
  np.testing.assert_allclose(
    metrics['loss'], np.mean(losses, axis=0), rtol=1e-6
  )
