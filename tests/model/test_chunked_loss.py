"""Compares `chunked_loss` with `loss`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small

from coke_jax import parallel, tasks
from coke_jax.model import chunked_loss, loss, parameters, products
from coke_jax.training import setup as setup_lib

ENTITIES, ROWS, WIDTH, EXTRA = 11, 5, 8, 3


def example(most, seed=0):
  """Returns the queries, the table, the bias, the answers and the weights."""
  generator = np.random.default_rng(seed)
  draw = generator.standard_normal
  answers = generator.integers(-1, ENTITIES, (ROWS, most))
  # These are the first and last entities of chunks of 4. The last chunk, from 7
  # to 10, overlaps with the chunk before it.
  borders = [0, 3, 4, 7, 10]
  answers[:, 0] = borders
  answers[0] = -1
  return (
    3 * draw((ROWS, WIDTH)).astype(np.float32),
    draw((ENTITIES + EXTRA, WIDTH)).astype(np.float32),
    draw(ENTITIES).astype(np.float32),
    answers.astype(np.int32),
    generator.random(ROWS).astype(np.float32),
  )


@pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
@pytest.mark.parametrize(
  ('chunk', 'most', 'weighted'),
  [(4, 1, False), (4, 6, True), (1, 3, False), (99, 3, True)],
)
def test_loss_and_gradients_are_those_of_all_entities(
  chunk, most, weighted, dtype
):
  dtype = jnp.dtype(dtype)
  *arrays, answers, weight = example(most)
  of_answers = (
    np.random.default_rng(1).random(answers.shape).astype(np.float32)
    if weighted
    else None
  )

  def whole(query, table, bias):
    logits = products.inner_products(query, table[:ENTITIES], dtype)
    logits = products.add_bias(logits, bias)
    losses = loss.smoothed_cross_entropy(
      logits, answers, 0.8, answer_weight=of_answers
    )
    return (losses * weight).sum(), losses

  def in_chunks(query, table, bias):
    losses = chunked_loss.smoothed_cross_entropy(
      query, table, bias, answers, 0.8, chunk, dtype, of_answers
    )
    return (losses * weight).sum(), losses

  wanted, got = (
    jax.jit(jax.value_and_grad(function, (0, 1, 2), has_aux=True))(*arrays)
    for function in (whole, in_chunks)
  )
  assert float(got[0][1][0]) == 0  # Row 0 has no answers.
  assert not np.asarray(got[1][1])[ENTITIES:].any()
  # bfloat16 has 8 significant bits. A gradient may be rounded differently.
  tolerance = 1e-5 if dtype == jnp.float32 else 1e-2
  for one, other in zip(
    jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True
  ):
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(('rows', 'members'), [('instance', 1), ('query', 2)])
def test_training_is_the_same_in_chunks(rows, members):
  """Compares the results of two training steps with dropout."""
  config = small.config(
    train={'rows': rows},
    model={'num_layers': 0, 'output_dropout': 0.1, 'num_members': members},
  )
  graph = small.random_graph()
  states = []
  for chunk in (-1, 7):
    config.train.vocabulary_chunk = chunk
    made = setup_lib.Setup(config, tasks.make_task(config, graph))
    batches = list(made.training_set.epoch(0))[:2]
    state, metrics = made.train_step(
      parallel.replicate(made.init_state()),
      batches,
      parameters.dropout_key(config.train.seed),
    )
    states.append(jax.device_get((state.params, metrics)))
  jax.tree.map(
    lambda one, other: np.testing.assert_allclose(one, other, atol=2e-6),
    *states,
  )


def test_chunks_are_used_when_logits_exceed_a_gibibyte():
  assert chunked_loss.default_chunk_size(512, 2**19) == 0
  assert chunked_loss.default_chunk_size(512, 2**19 + 1) == 2**15
  assert chunked_loss.default_chunk_size(2**30, 9) == 1
  settings = small.config().train
  settings.update(batch_size=512 * parallel.num_devices())
  assert setup_lib.chunk_size(settings, 5_000_000) == 2**15
  assert setup_lib.chunk_size(settings, 75_043) == 0
  settings.vocabulary_chunk = 1000
  assert setup_lib.chunk_size(settings, 75_043) == 1000
  assert setup_lib.chunk_size(settings, 500) == 500
  settings.vocabulary_chunk = -1
  assert setup_lib.chunk_size(settings, 5_000_000) == 0
  settings.update(vocabulary_chunk=0, candidates=100)
  assert setup_lib.chunk_size(settings, 5_000_000) == 0


def test_memory_does_not_grow_with_the_vocabulary():
  """The compiler reports the memory of all intermediate arrays."""

  def temporary(entities, chunk):
    def total(query, table, bias, answers):
      if chunk:
        return chunked_loss.smoothed_cross_entropy(
          query, table, bias, answers, 0.8, chunk, jnp.float32
        ).sum()
      logits = products.inner_products(query, table, jnp.float32)
      logits = products.add_bias(logits, bias)
      return loss.smoothed_cross_entropy(logits, answers, 0.8).sum()

    shapes = [((256, 4), 'float32'), ((entities, 4), 'float32')]
    shapes += [((entities,), 'float32'), ((256, 1), 'int32')]
    arguments = [jax.ShapeDtypeStruct(*one) for one in shapes]
    compiled = jax.jit(jax.grad(total, (0, 1, 2))).lower(*arguments).compile()
    return compiled.memory_analysis().temp_size_in_bytes

  logits = 4 * 256 * 40_000
  assert temporary(40_000, 0) > logits
  assert temporary(40_000, 1_000) < logits / 8
  # Only copies of the table and the bias may grow with the vocabulary.
  grown = temporary(80_000, 1_000) - temporary(40_000, 1_000)
  assert grown <= 2 * 4 * 5 * 40_000
