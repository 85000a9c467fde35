"""Tests that programs are compiled before the first request needs them."""

import threading

import pytest
import small

from coke_jax.serve import engine as engine_lib
from coke_jax.serve import (
  jobs,
  limits,
  metrics,
  operations,
  reload,
  served,
  warm_up,
)

FACT = (small.ENTITIES[0], small.RELATIONS[0], small.ENTITIES[1])


@pytest.fixture
def model():
  """Returns a served model that counts how often a program is compiled."""
  made = small.table_model()
  made.encoder.num_layers = 0
  made.encoder.hidden_size = 3
  return served.Served(made)


def requests(model):
  entity, relation, _ = FACT
  jobs.explain(model, [model.base_fact(FACT)], top=10, similar=3)
  jobs.audit(model, 0, top=10, expected=3)
  jobs.contextual_map(model, 0)
  for chosen in (None, relation):
    jobs.similar(
      model, entity, relation=chosen, side='head', top=3, type_matching=False
    )
  jobs.discover(model, relation, top=10, per_head=None, type_matching=True)
  operations.relations(model, False, [(0, 1, 2)])


def test_no_request_compiles_a_program_after_the_warm_up(model):
  warm_up.predictions(model)
  before = model.model.encoder.traces
  warm_up.other_requests(model)
  compiled = model.model.encoder.traces
  sizes = len(model.model.predictor.scorer.batch_sizes())
  assert compiled - before == 4 * sizes
  requests(model)
  # One more trace: the static embeddings are computed without compilation.
  assert model.model.encoder.traces == compiled + 1


def test_a_model_is_served_before_the_other_programs_are_compiled(
  model, monkeypatch
):
  compiled = threading.Event()
  run = warm_up.other_requests

  def wait_and_run(*arguments):
    assert compiled.wait(60)
    run(*arguments)

  monkeypatch.setattr(served, 'load_served', lambda _: model)
  monkeypatch.setattr(warm_up, 'other_requests', wait_and_run)
  engine = engine_lib.Engine(limits.Limits(), metrics.Metrics())
  reloader = reload.Reloader('any', engine, warm_up=True)
  reloader.load()
  before = model.model.encoder.traces
  assert engine.served is model
  compiled.set()
  reloader._background._thread.join(60)
  sizes = len(model.model.predictor.scorer.batch_sizes())
  assert model.model.encoder.traces - before == 4 * sizes
  reloader.stop()
  engine.stop()


def test_stop_ends_a_warm_up_early(model):
  first = threading.Event()
  run = model.model.predictor.scorer._run

  def slow_run(program, batch):
    first.set()
    return run(program, batch)

  model.model.predictor.scorer._run = slow_run
  background = warm_up.Background(model)
  assert first.wait(60)
  background.stop()
  sizes = len(model.model.predictor.scorer.batch_sizes())
  assert 0 < model.model.encoder.traces < 4 * sizes


def test_scores_that_are_not_finite_end_the_warm_up_with_a_warning(
  model, caplog
):
  model.model.predictor.scorer._params[0] = (
    model.model.predictor.scorer._params[0] * float('nan')
  )
  background = warm_up.Background(model)
  background._thread.join(60)
  background.stop()
  assert 'programs are not compiled in advance' in caplog.text
