"""Tests trainings with extreme numbers and sizes."""

import json
import math
import pathlib

import jax
import numpy as np
import pytest
import small

from coke_jax import errors, tasks
from coke_jax.model import parameters
from coke_jax.storage import workdir
from coke_jax.training import loop, progress_log, run, train_state
from coke_jax.training import setup as setup_lib

RING = [(f'e{i}', 'r', f'e{(i + 1) % 6}') for i in range(6)]


def small_config(folder, *, train=RING, valid=(), test=(), **settings):
  """Writes triples to a folder, and returns a small config that reads them.

  The model has no blocks, which halves the time of compilation.
  """
  data = small.write_splits(
    folder / 'data', train=train, valid=valid, test=test
  )
  config = small.config(
    data={'name': 'numbers', 'dir': str(data)},
    model={'num_layers': 0},
    train={'batch_size': 8},
  )
  config.update_from_flattened_dict(settings)
  return config


def train(folder, config) -> pathlib.Path:
  run.train_and_evaluate(config, str(folder / 'work'))
  return folder / 'work'


def losses(work: pathlib.Path) -> list[float]:
  lines = map(json.loads, (work / 'metrics.jsonl').read_text().splitlines())
  return [line['loss'] for line in lines if line['kind'] == 'train']


def results(work: pathlib.Path) -> dict:
  return json.loads((work / 'results.json').read_text())


def saved_leaves(folder, config) -> list[np.ndarray]:
  """Returns the arrays of the newest checkpoint, or [] if there is none."""
  place = workdir.Workdir(folder / 'work')
  coke = tasks.build_model(config, place.data().vocabulary)
  optimizer, _ = setup_lib.build_optimizer(config, 1)
  template = jax.eval_shape(
    lambda: train_state.to_items(train_state.init_state(coke, optimizer, 0))
  )
  with place.checkpoints(writing=False) as checkpoints:
    restored = checkpoints.latest(template)
  return [] if restored is None else jax.tree.leaves(restored[0])


@pytest.mark.parametrize(
  ('dtype', 'rate'), [('float32', 1e4), ('bfloat16', 1e4), ('float32', 1e38)]
)
def test_a_learning_rate_that_is_too_high(tmp_path, dtype, rate):
  """Training stays finite or stops with an error. No NaN is saved."""
  config = small_config(
    tmp_path,
    valid=RING[:2],
    test=RING[:2],
    **{
      'model.num_layers': 1,
      'model.dtype': dtype,
      'train.learning_rate': rate,
      'train.clip_norm': 0.0,
      'train.num_epochs': 20.0,
    },
  )
  message = ''
  try:
    train(tmp_path, config)
  except loop.TrainingError as error:
    message = str(error)
  work = tmp_path / 'work'
  assert bool(message) != (work / 'results.json').exists()
  if message:
    assert 'step' in message
    assert 'finite' in message
    assert loop.ADVICE in message
  else:
    assert rate < 1e20
    assert math.isfinite(results(work)['both']['mrr'])
  assert all(map(math.isfinite, losses(work)))
  assert all(np.isfinite(leaf).all() for leaf in saved_leaves(tmp_path, config))


def test_numbers_that_overflow_in_the_optimizer_are_not_saved(
  tmp_path, monkeypatch
):
  """Parameters that are not finite are detected even if no loss is checked."""
  config = small_config(tmp_path, **{'train.learning_rate': 3e38})
  config.train.clip_norm = 0.0
  monkeypatch.setattr(progress_log.TrainingLog, 'fetch', lambda self: [])
  with pytest.raises(loop.TrainingError, match=r'step \d+: .*finite'):
    train(tmp_path, config)
  assert saved_leaves(tmp_path, config) == []


def test_scores_that_overflow_in_bfloat16(tmp_path, monkeypatch):
  config = small_config(
    tmp_path,
    valid=RING[:2],
    **{'model.num_layers': 1, 'model.dtype': 'bfloat16'},
  )
  original = parameters.init_params

  def huge(model, seed):
    return jax.tree.map(lambda leaf: leaf * 1e37, original(model, seed))

  monkeypatch.setattr(parameters, 'init_params', huge)
  with pytest.raises(loop.TrainingError, match=r'step 1: loss'):
    train(tmp_path, config)
  assert not list((tmp_path / 'work' / 'checkpoints').iterdir())


def test_one_entity(tmp_path):
  loop = [('only', 'r', 'only')]
  config = small_config(tmp_path, train=loop, valid=loop, test=loop)
  work = train(tmp_path, config)
  assert losses(work) == [0.0, 0.0, 0.0]
  both = results(work)['both']
  assert both['mrr'] == both['hits@1'] == both['mean_rank'] == 1.0


def test_one_relation_and_a_batch_larger_than_the_data(tmp_path):
  config = small_config(
    tmp_path, valid=RING[:1], test=RING[1:2], **{'train.batch_size': 64}
  )
  work = train(tmp_path, config)
  assert len(losses(work)) == 3  # Each epoch has one step.
  assert results(work)['queries'] == 2


@pytest.mark.parametrize('rows', ['instance', 'query'])
def test_no_valid_split(tmp_path, rows):
  config = small_config(tmp_path, test=RING[:2], **{'train.rows': rows})
  work = train(tmp_path, config)
  # The last checkpoint is evaluated.
  assert results(work)['step'] == len(losses(work))


def test_no_train_split(tmp_path):
  config = small_config(tmp_path, train=[], valid=RING)
  with pytest.raises(errors.CokeError, match=r'train\.txt: contains no triple'):
    train(tmp_path, config)
  assert not (tmp_path / 'work').exists()


def test_the_only_candidate_has_rank_one(tmp_path):
  """All triples are known, so the correct answer is the only candidate."""
  names = ['hub', 'a', 'b', 'c']
  everything = [(one, 'likes', other) for one in names for other in names]
  config = small_config(
    tmp_path,
    train=everything,
    valid=[('hub', 'likes', 'a')],
    test=[('a', 'likes', 'hub')],
    **{'train.rows': 'query', 'train.max_answers_per_row': 2},
  )
  both = results(train(tmp_path, config))['both']
  assert both['mrr'] == both['hits@1'] == both['mean_rank'] == 1.0
  # The index is 1 if there is only one candidate.
  assert both['adjusted_mean_rank_index'] == 1.0


def test_paths_with_all_candidates_reached(tmp_path):
  """If there are no negatives, all queries are trivial and have no metric."""
  lines = [('a', 'r', 'b'), ('b', 'r', 'a'), ('a', 'r', 'a'), ('b', 'r', 'b')]
  config = small_config(
    tmp_path, train=lines, valid=lines[:1], test=lines[:2],
    **{'data.kind': 'paths', 'data.max_path_length': 1},
  )  # fmt: skip
  found = results(train(tmp_path, config))
  assert found['queries'] == found['trivial'] == 2
  assert 'mean_quantile' not in found
