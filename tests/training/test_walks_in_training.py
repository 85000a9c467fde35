"""Tests trainings with walks that are sampled in every epoch."""

import jax
import numpy as np
import pytest
import small

from coke_jax import tasks
from coke_jax.data import graph, walks
from coke_jax.predict import export, load
from coke_jax.training import loop
from coke_jax.training import setup as setup_lib

PRODUCT = {
  'num_layers': 0,
  'hidden_size': 32,
  'dropout': 0.0,
  'composition': 'complex',
  'prediction_head': False,
  'input_norm': False,
  'embedding_stddev': 0.1,
  'invert_head_queries': True,
}
ADAGRAD = {
  'optimizer': 'adagrad',
  'learning_rate': 0.2,
  'warmup_fraction': 0.0,
  'learning_rate_decay': 'none',
  'target_mass': 1.0,
  'weight_decay': 0.0,
  'clip_norm': 0.0,
  'rows': 'query',
  'candidates': 20,
  'n3_penalty': 1e-3,
}
BLOCK = {'num_layers': 1, 'composition': 'rotation', 'dropout': 0.1}


def ring():
  """Returns paths in a ring of 30 entities."""
  triples = np.array([[i, 0, (i + 1) % 30] for i in range(30)], np.int32)
  return walks.sample_path_data(
    graph.KnowledgeGraph(
      'ring', small.labels(30, ['next']), triples, triples[:5], triples[5:10]
    ),
    seed=0,
    longest=3,
  )


def make_config(model, train):
  return small.config(
    data={'name': 'walks', 'kind': 'walks', 'max_path_length': 3},
    model=model,
    train={
      'batch_size': 16,
      'walks_per_epoch': 64,
      'steps_per_call': 2,
      'validate_every_epochs': 1,
    }
    | train,
  )


def trainer(folder, config, data):
  if not folder.exists():
    small.create_workdir(folder, config, data)
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  return loop.Trainer(setup, small.workdir.Workdir(folder))


@pytest.mark.parametrize(
  ('model', 'train'),
  [(PRODUCT, ADAGRAD), (BLOCK, {'rows': 'instance'})],
  ids=['product', 'block'],
)
def test_a_resumed_training_equals_the_undisturbed_one(tmp_path, model, train):
  config, data = make_config(model, {'num_epochs': 3, **train}), ring()
  expected = trainer(tmp_path / 'whole', config, data).run()
  parts = trainer(tmp_path / 'parts', config, data)
  setup = parts.setup
  validate, calls = setup.validation_is_due, []

  def interrupt(step):
    calls.append(step)
    if step > setup.steps_per_epoch + 3:
      raise KeyboardInterrupt
    return validate(step)

  setup.validation_is_due = interrupt
  with pytest.raises(KeyboardInterrupt):
    parts.run()
  assert setup.steps_per_epoch <= parts.progress.step < setup.num_steps
  resumed = trainer(tmp_path / 'parts', config, data).run()
  for left, right in zip(
    jax.tree.leaves(expected), jax.tree.leaves(resumed), strict=True
  ):
    np.testing.assert_array_equal(left, right)


def test_the_ring_is_learned_and_exported(tmp_path):
  config = make_config(
    PRODUCT, {'num_epochs': 60, 'validate_every_epochs': 0, **ADAGRAD}
  )
  data = ring()
  run = trainer(tmp_path / 'work', config, data)
  state = run.run()
  results = run.setup.task.evaluate(
    run.ranker, state.params, 'test', choosing=False
  )
  assert results['mean_quantile'] > 0.95
  export.write(tmp_path / 'work', tmp_path / 'model')
  # The model inverts queries for the head, so both sides are tested.
  questions = [
    (('e03', 'next', 'next', '?'), 'e05'),
    (('?', 'next', 'next', 'e05'), 'e03'),
    (('?', '**next', 'e05'), 'e06'),
  ]
  for folder in ('work', 'model'):
    model = load.load(tmp_path / folder)
    for question, right in questions:
      assert model.predict(question, top=1)[0].label == right
