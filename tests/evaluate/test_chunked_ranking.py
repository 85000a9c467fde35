"""Tests of ranking in chunks, for scores that do not fit in memory at once."""

import json
import os
import resource
import subprocess
import sys

import jax
import numpy as np
import pytest
import small

from coke_jax import parallel
from coke_jax.data import entity_sets, queries
from coke_jax.evaluate import counting, filters
from coke_jax.evaluate import ranker as ranker_lib

MANY = 2_000_000


def coke(num_entities, width):
  return small.coke(
    num_entities,
    num_layers=1,
    hidden_size=width,
    num_heads=1,
    feed_forward_size=width,
  )


def random_queries(num_entities, count, seed):
  """Returns tail queries with one gold answer each, and the known answers."""
  generator = np.random.default_rng(seed)
  tokens = np.stack(
    [
      generator.integers(0, num_entities, count),
      num_entities + generator.integers(0, 2, count),
      np.full(count, num_entities + 2),
    ],
    axis=1,
  ).astype(np.int32)
  gold = generator.integers(0, num_entities, count).astype(np.int32)
  masked = queries.Queries(
    tokens, np.full(count, 2, np.int32), np.arange(count + 1), gold
  )
  known = generator.integers(0, num_entities, (count, 5)).astype(np.int32)
  known[:, 0] = gold
  sets = entity_sets.EntitySets(
    np.arange(count, dtype=np.int32),
    np.arange(count + 1) * 5,
    known.reshape(-1),
    num_entities,
  )
  return masked, sets


@pytest.mark.parametrize('chunk', [1, 2, 4, 5, 7, 10, 11])
def test_counts_are_the_same_in_chunks(chunk):
  generator = np.random.default_rng(chunk)
  whole = jax.jit(counting.count_filtered)
  for _ in range(5):
    scores = generator.integers(-2, 3, size=(6, 11)).astype(np.float32)
    gold = generator.integers(0, 11, size=6).astype(np.int32)
    row = generator.integers(0, 9, size=40).astype(np.int32)
    entity = generator.integers(0, 11, size=40).astype(np.int32)
    of = generator.integers(0, 6, size=6).astype(np.int32)

    def by_chunks(scores, gold, row, entity, of):
      pairs = (-(-11 // chunk), 40)
      return counting.count_filtered_by_chunks(
        lambda start: jax.lax.dynamic_slice_in_dim(scores, start, chunk, 1),
        chunk,
        11,
        gold,
        jax.numpy.broadcast_to(row, pairs),
        jax.numpy.broadcast_to(entity, pairs),
        of,
      )

    got, got_finite = jax.jit(by_chunks)(scores, gold, row, entity, of)
    wanted, finite = whole(scores, gold, row, entity, of)
    assert got.keys() == wanted.keys()
    for name, count in wanted.items():
      assert got[name].tolist() == count.tolist()
    assert got_finite.tolist() == finite.tolist()


def test_an_infinite_score_is_found_in_any_chunk():
  scores = np.zeros((2, 5), np.float32)
  scores[1, 4] = np.inf
  _, finite = counting.count_filtered_by_chunks(
    lambda start: jax.lax.dynamic_slice_in_dim(scores, start, 2, 1),
    2,
    5,
    np.array([0, 0]),
    np.full((3, 1), 9),
    np.zeros((3, 1), int),
  )
  assert finite.tolist() == [True, False]


def test_ranks_are_the_same_in_chunks():
  """Entities with equal embeddings are tied, even in different chunks."""
  entities = 60
  coke_model = coke(entities, 8)
  params = small.random_params(coke_model, scale=1.0)
  params['element_embedding'][30:60] = params['element_embedding'][:30]
  params['entity_bias'][30:60] = params['entity_bias'][:30]
  masked, known = random_queries(entities, 41, 1)
  placed = parallel.replicate(params)
  usual = ranker_lib.Ranker(coke_model).rank_filtered(placed, masked, known)
  ranker = ranker_lib.Ranker(coke_model, score_bytes=4 * 256 * 13)
  assert ranker.chunk_size == 13
  chunked = ranker.rank_filtered(placed, masked, known)
  assert (usual.equal > 0).any()
  for name in ('better', 'equal', 'candidates'):
    np.testing.assert_array_equal(
      getattr(chunked, name), getattr(usual, name), err_msg=name
    )


@pytest.mark.parametrize('chunk', [1000, 300])
def test_the_answers_of_a_hub_are_sent_once_per_batch(chunk):
  """All queries but the last have the same 700 known answers."""
  devices = parallel.num_devices()
  rows = 64 * devices
  set_of = np.zeros(rows, np.int32)
  set_of[-1] = 1
  known = entity_sets.EntitySets(
    set_of, np.array([0, 700, 702]), np.r_[0:700, 5, 990].astype(np.int32), 1000
  )
  batch = filters.Filters(known, rows, chunk).batch(0)
  assert batch['filter_entity'].size <= 2048 * devices
  found = np.zeros((devices, 65, 1000), bool)
  for device in range(devices):
    pairs = batch['filter_row'][device], batch['filter_entity'][device]
    found[device][pairs] = True
    row, entity = pairs
    used = row < 64
    places = np.broadcast_to(np.arange(len(row))[:, None], row.shape)
    assert (entity // chunk == places)[used].all()
  of_rows = np.take_along_axis(found, batch['filter_of'][..., None], axis=1)
  assert (of_rows.reshape(rows, 1000) == known.mask(np.arange(rows))).all()


def test_two_million_entities_fit():
  """Ranks 300 queries in a separate process whose memory is measured."""
  done = subprocess.run(
    [sys.executable, __file__],
    env={
      **os.environ,
      'PYTHONPATH': str(small.TESTS),
      # XLA should optimize the functions, because they run for long.
      'JAX_DISABLE_MOST_OPTIMIZATIONS': 'false',
      'XLA_FLAGS': '',
    },
    capture_output=True,
    text=True,
    timeout=600,
  )
  assert done.returncode == 0, done.stderr
  measured = json.loads(done.stdout)
  assert measured['candidates'] == [MANY - 4] * 3
  embeddings = 4 * 4 * MANY  # The embeddings are float32 [V, 4].
  # All scores of a batch would take 256 x 2 million x 4 bytes = 2 GB.
  assert measured['grown'] < 3 * embeddings + 600 * 2**20


def main():
  coke_model = coke(MANY, 4)
  params = parallel.replicate(small.random_params(coke_model, scale=1.0))
  masked, known = random_queries(MANY, 300, 1)
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  ranks = ranker_lib.Ranker(coke_model).rank_filtered(params, masked, known)
  after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  print(
    json.dumps(
      {
        'grown': 1024 * (after - before),
        'candidates': ranks.candidates[:3].tolist(),
      }
    )
  )


if __name__ == '__main__':
  main()
