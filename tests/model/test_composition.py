"""Tests options of the model that are not in the paper, such as composition."""

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import small

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import batches, queries
from coke_jax.model import composition, input_embedding, loss, parameters
from coke_jax.predict import export, load
from coke_jax.training import loop, optimizer
from coke_jax.training import setup as setup_lib

V, R, MASK, PAD = 5, 3, 8, 9
# For each row: the tokens, the known entity, the relations, and whether the
# head is masked.
SEQUENCES = [
  ([2, V + 1, MASK, PAD, PAD], 2, [1], False),
  ([MASK, V + 1, 2, PAD, PAD], 2, [1], True),
  ([4, V, V + 2, V + 1, MASK], 4, [0, 2, 1], False),
  ([MASK, V, V + 2, 3, PAD], 3, [0, 2], True),
]
TOKENS = np.array([tokens for tokens, *_ in SEQUENCES], np.int32)
OPTIONS = {
  'composition': 'complex',
  'relation_directions': True,
  'prediction_head': False,
  'input_dropout': 0.3,
  'output_dropout': 0.2,
  'embedding_stddev': 0.1,
  'kernel_stddev': 0.0,
}


def as_complex(vector):
  half = len(vector) // 2
  return vector[:half] + 1j * vector[half:]


@pytest.fixture
def tables():
  generator = np.random.default_rng(0)

  def draw(rows):
    return generator.normal(size=(rows, 6)).astype(np.float32)

  return {
    'elements': draw(V + R + 2),
    'positions': draw(5),
    'backward_relations': draw(R),
    'factors': draw(2 * R),
  }


def test_the_input_by_hand(tables):
  """Computes the input at each position with complex numbers of NumPy."""
  got = input_embedding.embed_tokens(TOKENS, TOKENS != PAD, V, **tables)
  for row, (tokens, known, relations, head_query) in enumerate(SEQUENCES):
    product = as_complex(tables['elements'][known])
    for relation in relations:
      product = product * as_complex(
        tables['factors'][relation + R * head_query]
      )
    length = len(relations) + 2
    for place, token in enumerate(tokens[:length]):
      expected = tables['elements'][token].copy()
      if head_query and V <= token < V + R:
        expected = tables['backward_relations'][token - V].copy()
      expected += tables['positions'][
        length - 1 - place if head_query else place
      ]
      if token == MASK:
        expected += np.concatenate([product.real, product.imag])
      np.testing.assert_allclose(got[row, place], expected, rtol=1e-5)


def test_without_options_the_input_is_that_of_the_paper(tables):
  got = input_embedding.embed_tokens(
    TOKENS, TOKENS != PAD, V, tables['elements'], tables['positions']
  )
  expected = tables['elements'][TOKENS] + tables['positions'][None]
  np.testing.assert_array_equal(got, expected)


def test_a_sequence_without_mask_has_no_composition(tables):
  tokens = np.array([[2, V + 1, 3, PAD, PAD]], np.int32)
  without = dict(tables, factors=None)
  np.testing.assert_array_equal(
    input_embedding.embed_tokens(tokens, tokens != PAD, V, **tables),
    input_embedding.embed_tokens(tokens, tokens != PAD, V, **without),
  )


def test_complex_product():
  generator = np.random.default_rng(1)
  x, y = generator.normal(size=(2, 7, 10)).astype(np.float32)
  got = composition.complex_product(x, y)
  for row in range(7):
    expected = as_complex(x[row]) * as_complex(y[row])
    np.testing.assert_allclose(as_complex(got[row]), expected, rtol=1e-4)


def test_rotations_have_modulus_one(tables):
  rotated = dict(tables, factors=composition.unit_modulus(tables['factors']))
  factors = rotated['factors'][..., :3] + 1j * rotated['factors'][..., 3:]
  np.testing.assert_allclose(np.abs(factors), 1, rtol=1e-4)
  angles = tables['factors'][..., :3] + 1j * tables['factors'][..., 3:]
  np.testing.assert_allclose(np.angle(factors), np.angle(angles), rtol=1e-4)
  np.testing.assert_allclose(
    input_embedding.embed_tokens(
      TOKENS, TOKENS != PAD, V, **tables, rotation=True
    ),
    input_embedding.embed_tokens(TOKENS, TOKENS != PAD, V, **rotated),
    rtol=1e-4,
    atol=1e-5,
  )


def test_the_gradient_of_a_factor_of_zero_is_finite():
  gradient = jax.grad(lambda x: composition.unit_modulus(x).sum())(jnp.zeros(4))
  assert np.isfinite(gradient).all()


@pytest.mark.parametrize('input_norm', [False, True])
def test_without_blocks_the_scores_are_those_of_complex(input_norm):
  model = small.coke(num_layers=0, input_norm=input_norm, **OPTIONS)
  params = small.random_params(model)
  tokens, position = np.array([[1, 20, 22]]), np.array([2])
  product = as_complex(params['element_embedding'][1]) * as_complex(
    params['composition_embedding'][0]
  )
  state = np.concatenate([product.real, product.imag])
  if input_norm:
    norm = params['embedding_norm']
    state = (state - state.mean()) / state.std() * norm['scale'] + norm['bias']
  logits = state @ params['element_embedding'][:20].T + params['entity_bias']
  got = small.apply(model, params, tokens, position)
  np.testing.assert_allclose(got[0], logits, rtol=1e-4, atol=1e-4)


def test_padding_does_not_change_the_scores():
  model = small.coke(max_length=7, **OPTIONS)
  params = small.random_params(model)
  words = small.labels(small.ENTITIES, small.RELATIONS)
  relation = words.num_entities + 1
  rows = np.array([[3, relation, words.mask_id], [words.mask_id, relation, 3]])
  position = np.array([2, 0])
  wide = np.pad(rows, ((0, 0), (0, 4)), constant_values=words.pad_id)
  np.testing.assert_allclose(
    small.apply(model, params, rows, position),
    small.apply(model, params, wide, position),
    rtol=2e-5,
    atol=2e-5,
  )


def test_without_prediction_head_the_state_is_multiplied_with_the_entities():
  model = small.coke(prediction_head=False)
  params = small.random_params(model)
  assert not any('prediction' in name for name in params)
  tokens, position = np.array([[1, 20, 22]]), np.array([2])
  state = np.asarray(
    small.apply(model, params, tokens, position, method='masked_state')
  )
  logits = state @ params['element_embedding'][:20].T + params['entity_bias']
  np.testing.assert_allclose(
    small.apply(model, params, tokens, position), logits, rtol=1e-4
  )


def test_initial_deviations():
  model = small.coke(num_entities=400, hidden_size=64, num_heads=2, **OPTIONS)
  params = parameters.init_params(model, 0)
  # Values beyond two standard deviations are drawn again, which multiplies the
  # standard deviation by 0.88.
  for leaf, stddev in (
    (params['element_embedding'], 0.1),
    (params['composition_embedding'], 1.0),
    (params['blocks_0']['attention']['output']['kernel'], 64**-0.5),
  ):
    assert float(jnp.std(leaf)) == pytest.approx(0.88 * stddev, rel=0.05)


def test_dropout_has_a_rate_of_its_own_at_input_and_output():
  tokens, position = np.array([[1, 20, 22]] * 4), np.array([2] * 4)
  key = jax.random.key(0)

  def logits(train, **changes):
    model = small.coke(num_layers=1, dropout=0.0, **changes)
    params = small.random_params(model)
    return np.asarray(
      small.apply(
        model, params, tokens, position, train=train, rngs={'dropout': key}
      )
    )

  plain = logits(False)
  np.testing.assert_array_equal(logits(True), plain)
  for changes in ({'input_dropout': 0.5}, {'output_dropout': 0.5}):
    np.testing.assert_array_equal(logits(False, **changes), plain)
    assert np.abs(logits(True, **changes) - plain).max() > 0.01


def test_the_factor_multiplies_the_learning_rate_of_embeddings():
  params = {
    'element_embedding': jnp.ones(3),
    'entity_bias': jnp.ones(2),
    'blocks_0': {'kernel': jnp.ones(2)},
  }
  gradients = jax.tree.map(lambda leaf: 0.1 * leaf, params)

  def update(rate, factor):
    chain = optimizer.make_optimizer(
      optax.constant_schedule(rate),
      weight_decay=0.0,
      clip_norm=0.0,
      embedding_factor=factor,
    )
    return chain.update(gradients, chain.init(params), params)[0]

  got, slow, fast = update(0.01, 5.0), update(0.01, 1.0), update(0.05, 1.0)
  for name in ('element_embedding', 'entity_bias'):
    np.testing.assert_allclose(got[name], fast[name], rtol=1e-6)
  np.testing.assert_array_equal(
    got['blocks_0']['kernel'], slow['blocks_0']['kernel']
  )


def test_adagrad_divides_by_the_root_of_the_summed_squares():
  params = {'element_embedding': jnp.array([1.0, -2.0, 0.0])}
  schedule = optimizer.learning_rate_schedule(0.1, 4, 0.25)
  chain = optimizer.make_optimizer(
    schedule,
    name='adagrad',
    weight_decay=0.5,
    clip_norm=0.0,
    embedding_factor=3.0,
  )
  state = chain.init(params)
  expected = np.array(params['element_embedding'], np.float64)
  squares = np.zeros(3)
  for step in range(4):
    gradient = np.array([0.3, 1e-6 * step, 0.0]) * (step + 1)
    updates, state = chain.update(
      {'element_embedding': jnp.asarray(gradient)}, state, params
    )
    params = jax.tree.map(jnp.add, params, updates)
    squares += gradient**2
    scaled = gradient / np.sqrt(np.where(squares > 0, squares, 1.0))
    rate = 3.0 * float(schedule(step))
    expected -= rate * (scaled + 0.5 * expected)
    np.testing.assert_allclose(params['element_embedding'], expected, rtol=1e-5)


def settings(model, train):
  return small.config(
    model={**OPTIONS, 'dropout': 0.1, **model},
    train={
      'embedding_learning_rate_factor': 5.0,
      'candidates': 8,
      'n3_penalty': 0.01,
      **train,
    },
  )


ENSEMBLE = ({'num_members': 2}, {'rows': 'instance'})


@pytest.mark.parametrize(
  ('model', 'train'),
  [
    ENSEMBLE,
    (
      {
        'dtype': 'bfloat16',
        'composition': 'rotation',
        'num_layers': 0,
        'input_norm': False,
      },
      {
        'rows': 'query',
        'optimizer': 'adagrad',
        'dura_penalty': 0.01,
        'rare_answer_weight': 0.2,
      },
    ),
  ],
  ids=str,
)
def test_a_resumed_training_equals_the_undisturbed_one(tmp_path, model, train):
  config, data = settings(model, train), small.random_graph()

  def train(name):
    folder = tmp_path / name
    if not folder.exists():
      small.create_workdir(folder, config, data)
    setup = setup_lib.Setup(config, tasks.make_task(config, data))
    return setup, loop.Trainer(setup, small.workdir.Workdir(folder))

  _, whole = train('whole')
  expected = whole.run()
  setup, parts = train('parts')
  validate, calls = setup.validation_is_due, []

  def interrupt(step):
    calls.append(step)
    if len(calls) > 7:
      raise KeyboardInterrupt
    return validate(step)

  setup.validation_is_due = interrupt
  with pytest.raises(KeyboardInterrupt):
    parts.run()
  assert parts.progress.step < setup.num_steps
  resumed = train('parts')[1].run()
  for left, right in zip(
    jax.tree.leaves(expected), jax.tree.leaves(resumed), strict=True
  ):
    np.testing.assert_array_equal(left, right)


def test_a_trained_model_is_exported_and_loaded(tmp_path):
  config, data = settings(*ENSEMBLE), small.random_graph()
  folder = small.create_workdir(tmp_path / 'work', config, data)
  loop.Trainer(
    setup_lib.Setup(config, tasks.make_task(config, data)), folder
  ).run()
  export.write(tmp_path / 'work', tmp_path / 'model')
  questions = [('e03', 'likes', '?'), ('?', 'near', 'e03')]
  trained, exported = (
    load.load(tmp_path / name).predict(questions, top=5)
    for name in ('work', 'model')
  )
  assert trained == exported
  model = load.load(tmp_path / 'model')
  width = 2 * config.model.hidden_size
  assert model.embed([('e03', 'likes', '?')]).vectors.shape == (1, 3, width)
  assert model.embed_elements().vectors.shape == (22, width)


def test_instances_and_queries_have_the_same_gradient():
  """Sums the losses of all instances and of all queries, without dropout."""
  data = small.random_graph(repeats=False)
  made = queries.from_triples(data.train, data.vocabulary)
  model = small.coke(
    **{**OPTIONS, 'input_dropout': 0.0, 'output_dropout': 0.0}, num_layers=0
  )
  params = small.random_params(model)

  def total(rows):
    width = int(rows.num_answers.max())
    answers = np.full((len(rows), width), batches.PAD_ANSWER, np.int32)
    for row in range(len(rows)):
      answers[row, : rows.num_answers[row]] = rows.indices[
        rows.indptr[row] : rows.indptr[row + 1]
      ]

    def loss_sum(params):
      logits = model.apply({'params': params}, rows.tokens, rows.mask_position)
      return loss.smoothed_cross_entropy(logits, answers, 0.9).sum()

    return jax.jit(jax.value_and_grad(loss_sum))(params)

  (instance, left), (query, right) = total(made), total(made.grouped())
  np.testing.assert_allclose(instance, query, rtol=1e-5)
  for a, b in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
  ('field', 'value'),
  [
    ('model.output_dropout', 1.0),
    ('model.input_dropout', 1.5),
    ('model.embedding_stddev', 0.0),
    ('model.composition_stddev', 0.0),
    ('model.kernel_stddev', -1.0),
    ('model.composition', 'quaternion'),
    ('model.num_members', 0),
    ('model.num_layers', -1),
    ('train.embedding_learning_rate_factor', 0.0),
    ('train.candidates', -1),
    ('train.n3_penalty', -0.1),
    ('train.dura_penalty', -0.1),
    ('train.dura_penalty', 0.1),  # This needs a composition.
    ('train.rare_answer_weight', 0.0),
    ('train.rare_answer_weight', 1.5),
    ('train.optimizer', 'sgd'),
  ],
)
def test_settings_out_of_range(field, value):
  config = small.config()
  config.update_from_flattened_dict({field: value})
  with pytest.raises(config_lib.ConfigError, match=f'{field} is'):
    config_lib.validate(config)


def test_a_composition_needs_an_even_width():
  config = small.config(
    model={'composition': 'complex', 'hidden_size': 9, 'num_heads': 3}
  )
  with pytest.raises(config_lib.ConfigError, match='even number'):
    config_lib.validate(config)
