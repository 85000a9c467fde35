"""Tests models in forked processes, and pickled models."""

import os
import pickle
import warnings

import numpy as np
import pytest
import small

import coke_jax
from coke_jax import parallel

QUESTIONS = [('e03', 'likes', '?'), ('?', 'near', 'e11')]
FACTS = [('e03', 'likes', 'e04')]


@pytest.fixture(scope='module')
def model():
  return small.coke_model()


def in_fork(function):
  """Calls a function in a forked process, and returns its error as text."""
  read, write = os.pipe()
  with warnings.catch_warnings():
    warnings.simplefilter('ignore')  # JAX warns about forks.
    child = os.fork()
  if not child:
    try:
      function()
      text = 'no error'
    except BaseException as error:
      text = f'{type(error).__name__}: {error}'
    os.write(write, text.encode())
    os._exit(0)
  os.close(write)
  with os.fdopen(read) as received:
    text = received.read()
  os.waitpid(child, 0)
  return text


def test_a_forked_process_is_refused(model):
  """Without the error, a prediction in a fork would wait forever."""
  model.predict(QUESTIONS)
  copy = pickle.dumps(model)
  for use in (
    lambda: model.predict(QUESTIONS),
    lambda: model.rank(FACTS),
    lambda: model.score(FACTS),
    lambda: model.embed(FACTS),
    model.embed_elements,
    lambda: pickle.loads(copy).predict(QUESTIONS),
    lambda: coke_jax.load(coke_jax.EXAMPLE_MODEL),
  ):
    text = in_fork(use)
    assert text.startswith('ForkError: process ')
    assert "'spawn'" in text
  assert model.predict(QUESTIONS)  # This process is not a fork.


def test_a_fork_of_a_process_without_devices_is_allowed(monkeypatch):
  monkeypatch.setattr(parallel._Process, 'uses_devices', False)
  assert in_fork(parallel.check_process) == 'no error'


@pytest.mark.parametrize('used', [False, True])
def test_a_pickled_model_is_the_same(used):
  model = small.coke_model()
  if used:
    model.predict(QUESTIONS)
    model.embed(FACTS)
  again = pickle.loads(pickle.dumps(model))
  assert again.predict(QUESTIONS) == model.predict(QUESTIONS)
  assert again.rank(FACTS) == model.rank(FACTS)
  np.testing.assert_array_equal(
    again.embed(FACTS).vectors, model.embed(FACTS).vectors
  )
  np.testing.assert_array_equal(
    again.embed_elements().vectors, model.embed_elements().vectors
  )
