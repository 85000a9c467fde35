"""Compares updates of single rows with updates of the full tables."""

import jax
import numpy as np
import pytest
import small

from coke_jax import parallel, tasks
from coke_jax.model import parameters
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_step

RECIPE = {
  'composition': 'complex',
  'relation_directions': True,
  'prediction_head': False,
  'dropout': 0.2,
}


@pytest.mark.parametrize(
  'model',
  [
    {'num_layers': 0, 'input_norm': False, 'num_members': 2},
    {'num_layers': 1},
  ],
  ids=str,
)
def test_updates_of_rows_equal_updates_of_the_tables(model):
  config = small.config(
    model={**RECIPE, **model},
    train={
      'rows': 'query',
      'batch_size': 8,
      'candidates': 40,
      'optimizer': 'adagrad',
      'learning_rate': 0.1,
      'n3_penalty': 0.01,
      'dura_penalty': 0.01,
      'rare_answer_weight': 0.2,
      'weight_decay': 0.0,
      'steps_per_call': 4,
    },
  )
  data = small.random_graph(entities=100, sizes=(60, 9, 9))
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  steps = list(setup.training_set.epoch(0))[:4]
  assert {batch['candidates'].size for batch in steps} == {40}

  def train(update_rows):
    step = train_step.make_train_step(
      setup.model,
      setup.transformation,
      target_mass=0.9,
      penalties=setup_lib.penalties(config),
      answers_per_row=setup.training_set.mean_answers_per_row,
      steps_per_call=4,
      update_rows=update_rows,
    )
    state = parallel.replicate(setup.init_state())
    state, metrics = step(state, steps, parameters.dropout_key(0))
    return jax.device_get((state, metrics))

  (state, metrics), (expected, full_metrics) = train(True), train(False)
  np.testing.assert_allclose(metrics['loss'], full_metrics['loss'], rtol=1e-4)
  np.testing.assert_allclose(
    metrics['gradient_norm'], full_metrics['gradient_norm'], rtol=1e-3
  )
  for (path, got), want in zip(
    jax.tree_util.tree_leaves_with_path(state),
    jax.tree.leaves(expected),
    strict=True,
  ):
    if got.shape == (3 * config.model.hidden_size,):
      # These are the biases of query, key and value. The bias of the keys is
      # not compared: its exact gradient is 0, and Adagrad turns rounding errors
      # in this gradient into steps of full size.
      got, want = (np.delete(one, slice(8, 16)) for one in (got, want))
    np.testing.assert_allclose(
      got, want, rtol=2e-3, atol=2e-4, err_msg=jax.tree_util.keystr(path)
    )
  table = jax.tree.leaves(setup.init_state().params)
  changed = [
    (np.asarray(old) != np.asarray(new)).any()
    for old, new in zip(table, jax.tree.leaves(state.params), strict=True)
  ]
  # Without blocks, the embeddings of positions and the backward embeddings of
  # relations are not used.
  assert sum(changed) >= len(changed) - 2


def test_the_config_selects_updates_of_rows(monkeypatch):
  chosen = []
  monkeypatch.setattr(
    train_step,
    'make_train_step',
    lambda *_, update_rows, **__: chosen.append(update_rows),
  )
  for changes in (
    {'optimizer': 'adagrad', 'candidates': 12},
    {'optimizer': 'adagrad'},
    {'candidates': 12},
    {'optimizer': 'adagrad', 'candidates': 12, 'weight_decay': 0.01},
  ):
    config = small.config(
      train={'rows': 'query', 'weight_decay': 0.0, **changes}
    )
    data = small.random_graph()
    _ = setup_lib.Setup(config, tasks.make_task(config, data)).train_step
  assert chosen == [True, False, False, False]
