"""Compares the model with the authors' implementation. Tests options."""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import vocabulary
from coke_jax.model import encoder, loss, parameters

# The file contains parameters, inputs, hidden states, logits and losses of a
# small model in the authors' implementation.
ORACLE = pathlib.Path(__file__).parents[1] / 'data' / 'official_forward.npz'

# For each data set: its name, the numbers of entities and relations, and the
# millions of parameters in table 4 of the paper.
PAPER_PARAMETERS = [
  ('FB15k', 14_951, 1_345, 10.58),
  ('FB15k-237', 14_541, 237, 10.19),
  ('WN18', 40_943, 18, 16.92),
  ('WN18RR', 40_943, 11, 16.92),
]


def small_model(**changes):
  return small.coke(9, 4, max_length=5, **changes)


def oracle_params(stored):
  """Converts the stored parameters to a parameter tree of `encoder.CoKE`."""

  def get(name):
    return stored[f'params/{name}']

  def product(name):
    return {'kernel': get(f'{name}/kernel'), 'bias': get(f'{name}/bias')}

  def norm(name):
    return {'scale': get(f'{name}/scale'), 'bias': get(f'{name}/bias')}

  def block(number):
    start = f'layers/{number}'
    parts = [
      product(f'{start}/attention/{p}') for p in ('query', 'key', 'value')
    ]
    fused = {
      leaf: np.concatenate([part[leaf] for part in parts], axis=-1)
      for leaf in ('kernel', 'bias')
    }
    return {
      'attention': {
        'query_key_value': fused,
        'output': product(f'{start}/attention/output'),
      },
      'attention_norm': norm(f'{start}/attention_norm'),
      'hidden': product(f'{start}/feed_forward/hidden'),
      'output': product(f'{start}/feed_forward/output'),
      'feed_forward_norm': norm(f'{start}/feed_forward_norm'),
    }

  return {
    'element_embedding': get('element_embedding'),
    'position_embedding': get('position_embedding'),
    'embedding_norm': norm('embedding_norm'),
    **{f'blocks_{number}': block(number) for number in range(3)},
    'prediction_dense': product('prediction/dense'),
    'prediction_norm': norm('prediction/norm'),
    'entity_bias': get('prediction/entity_bias'),
  }


@pytest.fixture(scope='module')
def oracle():
  with np.load(ORACLE) as stored:
    return dict(stored)


@pytest.fixture(scope='module')
def oracle_model():
  return encoder.CoKE(
    num_entities=40,
    num_tokens=48,
    pad_id=47,
    max_length=7,
    num_layers=3,
    hidden_size=32,
    num_heads=4,
    feed_forward_size=64,
    dropout=0.1,
  )


def test_hidden_states_equal_the_authors(oracle, oracle_model):
  params = oracle_params(oracle)
  hidden = small.apply(oracle_model, params, oracle['tokens'], method='encode')
  real = np.arange(7) < oracle['length'][:, None]
  assert real.sum() == oracle['length'].sum()
  np.testing.assert_allclose(
    np.asarray(hidden)[real], oracle['hidden'][real], atol=1e-4
  )


def test_logits_equal_the_authors(oracle, oracle_model):
  logits = small.apply(
    oracle_model,
    oracle_params(oracle),
    oracle['tokens'],
    oracle['mask_position'],
  )
  assert logits.shape == (24, 40)
  np.testing.assert_allclose(logits, oracle['entity_logits'], atol=1e-4)


@pytest.mark.parametrize('target_mass', [0.8, 0.25, 1.0])
def test_loss_equals_the_authors(oracle, target_mass):
  losses = loss.smoothed_cross_entropy(
    jnp.asarray(oracle['entity_logits']),
    jnp.asarray(oracle['target'][:, None]),
    target_mass,
  )
  expected = oracle[f'loss_target_mass_{target_mass}']
  np.testing.assert_allclose(losses.mean(), expected, rtol=1e-5)


@pytest.mark.parametrize(
  ('name', 'entities', 'relations', 'millions'), PAPER_PARAMETERS
)
def test_parameter_count_is_the_papers(name, entities, relations, millions):
  labels = vocabulary.Vocabulary(
    tuple(map(str, range(entities))), tuple(map(str, range(relations)))
  )
  coke = tasks.build_model(config_lib.default_config(), labels)
  shapes = parameters.param_shapes(coke)
  assert round(parameters.count_parameters(shapes) / 1e6, 2) == millions, name


def test_masked_state_equals_the_full_encoding():
  coke = small_model()
  params = small.random_params(coke)
  tokens = np.array([[13, 10, 3, 14, 14], [2, 9, 11, 12, 13], [1, 13, 4, 5, 6]])
  position = np.array([0, 4, 1])
  hidden = small.apply(coke, params, tokens, method='encode')
  alone = small.apply(coke, params, tokens, position, method='masked_state')
  np.testing.assert_allclose(
    alone, np.asarray(hidden)[np.arange(3), position], rtol=1e-5, atol=1e-6
  )


def test_padding_does_not_change_logits():
  coke = small_model()
  params = small.random_params(coke)
  short = small.apply(coke, params, np.array([[13, 10, 3]]), np.array([0]))
  padded = small.apply(
    coke, params, np.array([[13, 10, 3, 14, 14]]), np.array([0])
  )
  np.testing.assert_allclose(short, padded, rtol=1e-5, atol=1e-6)


def test_remat_changes_nothing():
  tokens, position = np.array([[13, 10, 3], [2, 9, 13]]), np.array([0, 2])
  plain, remat = small_model(), small_model(remat=True)
  params = small.random_params(plain)

  def gradient(coke):
    def objective(p):
      return coke.apply({'params': p}, tokens, position, train=True).var()

    return jax.jit(jax.grad(objective))(params)

  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6),
    gradient(plain),
    gradient(remat),
  )


def test_bfloat16_products_stay_close_and_return_float32():
  exact, short = small_model(), small_model(dtype=jnp.bfloat16)
  params = small.random_params(exact, scale=0.2)
  tokens, position = np.array([[13, 10, 3]]), np.array([0])
  expected = small.apply(exact, params, tokens, position)
  got = small.apply(short, params, tokens, position)
  assert got.dtype == jnp.float32
  np.testing.assert_allclose(got, expected, atol=0.05)
  assert not np.array_equal(got, expected)


def test_dropout_differs_between_rows():
  coke = small_model(dropout=0.5)
  params = small.random_params(coke)
  tokens = np.array([[13, 10, 3]] * 4)
  position = np.zeros(4, np.int32)

  def run(seed):
    key = jax.random.key(seed)
    return small.apply(
      coke, params, tokens, position, train=True, rngs={'dropout': key}
    )

  first = np.asarray(run(0))
  assert len(np.unique(first[:, 0])) == 4  # Equal rows have different dropout.
  np.testing.assert_array_equal(first, run(0))
  assert not np.array_equal(first, run(1))


def test_initial_parameters():
  coke = small_model(hidden_size=64, num_tokens=2000, pad_id=1999)
  params = parameters.init_params(coke, 3)
  embedding = np.asarray(params['element_embedding'])
  # Values beyond two standard deviations are drawn again.
  assert np.abs(embedding).max() <= 0.04 + 1e-6
  np.testing.assert_allclose(embedding.std(), 0.02 * 0.8796, rtol=0.02)
  assert not params['entity_bias'].any()
  assert not params['blocks_0']['hidden']['bias'].any()


def test_sequences_longer_than_max_length_are_an_error():
  coke = small_model()
  with pytest.raises(ValueError, match=r'6 tokens.*at most 5'):
    coke.apply(
      {'params': small.random_params(coke)},
      jnp.zeros((1, 6), int),
      jnp.zeros(1, int),
    )
