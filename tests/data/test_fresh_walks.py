"""Tests of training batches from walks that are sampled in every epoch."""

import numpy as np
import pytest
import small

from coke_jax import config as config_lib
from coke_jax import path_training, tasks
from coke_jax.data import batches, paths
from coke_jax.training import setup as setup_lib

LONGEST = 4
BATCH = 8


def make_config(**train):
  return small.config(
    data={'name': 'walks', 'kind': 'walks', 'max_path_length': LONGEST},
    train={'batch_size': BATCH, 'rows': 'query', 'walks_per_epoch': 50} | train,
  )


def make_set(data, *, invert=True, **train):
  config = make_config(**train)
  config.model.invert_head_queries = invert
  return setup_lib.Setup(config, tasks.make_task(config, data)).training_set


def edges_of(data):
  """Returns the training edges in both directions, as (head, token, tail)."""
  first = data.vocabulary.num_entities
  found = set()
  for head, relation, tail in data.train.single_edges().tolist():
    back = int(data.inverse[relation])
    found |= {(head, first + relation, tail), (tail, first + back, head)}
  return found


def reached(edges, source, steps):
  """Returns the entities that the steps reach from the source."""
  here = {source}
  for step in steps:
    here = {t for h, r, t in edges if h in here and r == step}
  return here


def walks_of(batch, data):
  """Returns the (source, relation tokens, target) of each row of a batch."""
  found = []
  mask = data.vocabulary.mask_id
  for tokens, answer in zip(
    batch['tokens'].tolist(), batch['answers'][:, 0].tolist(), strict=True
  ):
    ends = [answer if token == mask else token for token in tokens]
    found.append((ends[0], tokens[1:-1], ends[-1]))
  return found


@pytest.mark.parametrize('invert', [True, False])
def test_walks_follow_training_edges(invert):
  data = small.random_paths(LONGEST)
  edges = edges_of(data)
  mask = data.vocabulary.mask_id
  lengths = []
  for batch in make_set(data, invert=invert).epoch(0):
    length = batch['tokens'].shape[1] - 2
    if length == 1:
      continue
    lengths.append(length)
    masked = batch['tokens'] == mask
    tails = BATCH if invert else BATCH // 2
    assert masked[:tails, -1].all()
    assert masked[tails:, 0].all()
    for source, steps, target in walks_of(batch, data):
      assert target in reached(edges, source, steps)
  # 50 walks are rounded up to 72: 3 batches of 8 walks for each length.
  assert sorted(lengths) == [2] * 3 + [3] * 3 + [4] * 3


def test_each_epoch_has_all_edges_and_new_walks():
  data = small.random_paths(LONGEST)
  training_set = make_set(data)
  seen = []
  for epoch in range(2):
    edges, walks = [], []
    for batch in training_set.epoch(epoch):
      if batch['tokens'].shape[1] == 3:
        edges.extend(batch['answers'][batch['answers'] >= 0].tolist())
      else:
        walks.extend(map(str, walks_of(batch, data)))
    seen.append(walks)
    triples = data.train.single_edges()
    assert sorted(edges) == sorted(triples[:, [0, 2]].ravel().tolist())
  # The graph is small, so a few walks are equal by chance.
  assert len(set(seen[0]) & set(seen[1])) < len(set(seen[0])) / 3
  again = make_set(data)
  for epoch in range(2):
    whole = list(again.epoch(epoch))
    assert len(whole) == training_set.steps_per_epoch
    for one, other in zip(training_set.epoch(epoch), whole, strict=True):
      assert all((one[name] == other[name]).all() for name in one)
    rest = list(training_set.epoch(epoch, 5))
    for one, other in zip(rest, whole[5:], strict=True):
      assert all((one[name] == other[name]).all() for name in one)


def test_counts():
  data = small.random_paths(LONGEST)
  training_set = make_set(data)
  rows = instances = 0
  for batch in training_set.epoch(3):
    filled = batch['answers'] >= 0
    rows += int(filled.any(axis=1).sum())
    instances += int(filled.sum())
  assert (rows, instances) == (
    training_set.num_rows,
    training_set.num_instances,
  )
  assert instances == path_training.instances_per_epoch(make_config(), data)


def test_several_processes_share_the_walks():
  data = small.random_paths(LONGEST)
  whole = make_set(data, candidates=12)
  parts = [
    batches.TrainingSet(
      **{
        **{name: getattr(whole, name) for name in whole.__dataclass_fields__},
        'own_rows': own,
      }
    )
    for own in (np.arange(0, 4), np.arange(4, 8))
  ]
  for batch, *shared in zip(
    whole.epoch(0), *(part.epoch(0) for part in parts), strict=True
  ):
    for name in ('tokens', 'mask_position', 'answers'):
      joined = np.concatenate([one[name] for one in shared])
      assert (joined == batch[name]).all()
    for one in shared:
      assert (one['candidates'] == batch['candidates']).all()


def without_inverses(data):
  """Returns a copy in which no relation has an inverse."""
  return paths.PathData(
    data.name,
    data.vocabulary,
    np.full_like(data.inverse, -1),
    data.train,
    data.valid,
    data.test,
    {},
  )


def test_errors():
  data = small.random_paths(LONGEST)
  with pytest.raises(
    config_lib.ConfigError,
    match=r"walks_per_epoch is 50: expected 0, because relation '\w+' has no",
  ):
    tasks.make_task(make_config(), without_inverses(data))
  long = data.train.take(data.train.length > 1)
  without = paths.PathData(
    'x', data.vocabulary, data.inverse, long, data.valid, data.test, {}
  )
  with pytest.raises(config_lib.ConfigError, match='no training path with one'):
    tasks.make_task(make_config(), without)
  for walks in (-1, 5):
    config = make_config(walks_per_epoch=walks)
    config.data.max_path_length = 1 if walks > 0 else 3
    with pytest.raises(config_lib.ConfigError, match=r'train\.walks_per_epoch'):
      config_lib.validate(config)
  config = small.config(model={'invert_head_queries': True})
  with pytest.raises(config_lib.ConfigError, match='invert_head_queries'):
    config_lib.validate(config)
  config = make_config()
  config.model.invert_head_queries = True
  with pytest.raises(
    config_lib.ConfigError, match=r"no relation '\*\*likes', the inverse of"
  ):
    tasks.build_model(config, small.labels(5, ['likes']), 4)
