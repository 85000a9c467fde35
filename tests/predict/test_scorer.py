"""Tests the results of `Scorer`, and how often programs are compiled."""

import copy
import json
import pathlib
import sys

import numpy as np
import pytest
import small

from coke_jax import parallel
from coke_jax.evaluate import device_call
from coke_jax.predict import model as model_lib
from coke_jax.predict import questions, scorer

V = len(small.ENTITIES)


@pytest.fixture(scope='module')
def table():
  return small.table_model()


def to_queries(model, listed, gold=None):
  answers = np.zeros(0, np.int32) if gold is None else np.array(gold, np.int32)
  parsed = [model.parser.question(question) for question in listed]
  return questions.to_queries(
    parsed, answers, model.data.vocabulary, model.width
  )


def best_by_hand(model, question, top, candidates=None):
  """Returns the ids and log-probabilities of the best entities, best first.

  Entities with equal scores are sorted by id.
  """
  scores, logs = small.scores_by_hand(model, question)
  kept = [e for e in range(V) if candidates is None or candidates[e]]
  order = sorted(kept, key=lambda e: (-scores[e], e))[:top]
  return order, [logs[e] for e in order]


@pytest.mark.parametrize('top', [1, 2, 15, 16, 17, V])
def test_top_k_equals_a_sorted_list(table, top):
  listed = small.every_question()[:9]
  queries = to_queries(table, listed)
  entities, scores = table.predictor.scorer.top_k(queries, top)
  assert entities.shape == scores.shape == (9, top)
  ties = 0
  for row, question in enumerate(listed):
    order, logs = best_by_hand(table, question, top)
    assert entities[row].tolist() == order
    np.testing.assert_allclose(scores[row], logs, rtol=1e-5)
    ties += int((np.diff(scores[row]) == 0).sum())
  # Without equal scores, the order of ties would not be tested.
  assert ties or top == 1


@pytest.mark.parametrize('top', [5, V])
def test_only_candidates_are_found(table, top):
  listed = small.every_question()[:8]
  candidates = np.random.default_rng(0).random((8, V)) < 0.3
  candidates[3] = False
  queries = to_queries(table, listed)
  entities, scores = table.predictor.scorer.top_k(queries, top, candidates)
  for row, question in enumerate(listed):
    order, logs = best_by_hand(table, question, top, candidates[row])
    found = scores[row] > -np.inf
    assert entities[row][found].tolist() == order
    np.testing.assert_allclose(scores[row][found], logs, rtol=1e-5)
  assert not (scores[3] > -np.inf).any()


def test_ranks_count_better_and_equal_scores(table):
  listed = small.every_question()[:11]
  gold = np.random.default_rng(1).integers(0, V, 11)
  candidates = np.random.default_rng(2).random((11, V)) < 0.6
  queries = to_queries(table, listed, gold)
  ranks, logs = table.predictor.scorer.rank(queries, candidates)
  for row, question in enumerate(listed):
    scores, expected = small.scores_by_hand(table, question)
    others = [e for e in range(V) if candidates[row, e] and e != gold[row]]
    own = scores[gold[row]]
    assert ranks.better[row] == sum(scores[e] > own for e in others)
    assert ranks.equal[row] == sum(scores[e] == own for e in others)
    assert ranks.candidates[row] == len(others) + 1
    assert logs[row] == pytest.approx(expected[gold[row]], rel=1e-5)


def test_hidden_states_keep_rows_and_layers_apart(table):
  tokens = np.arange(30, dtype=np.int32).reshape(10, 3) % V
  for layer in range(3):
    states = table.predictor.scorer.encode(tokens, layer)
    assert states.shape == (10, 3, 3)
    assert states.dtype == np.float32
    assert (states[..., 0] == tokens).all()
    assert (states[..., 1] == np.arange(3)[None]).all()
    assert (states[..., 2] == layer).all()


def test_a_batch_is_padded_to_one_of_few_sizes():
  found = scorer.Scorer(small.TableModel(small.random_graph().vocabulary), None)
  devices = parallel.num_devices()
  full = found.batch_size
  assert full == device_call.batch_rows(V)
  assert full > 64 * devices
  sizes = [found.padded_size(n) for n in (1, 8, 9, 64, 65, full)]
  if devices == 1:
    assert sizes == [8, 8, 64, 64, full, full]
  found.batch_size = 8 * devices
  assert found.padded_size(1) == found.padded_size(8 * devices) == 8 * devices


def test_nothing_is_compiled_twice():
  model = small.table_model()
  question = small.every_question()[0]

  def call_all(count):
    listed = [question] * count
    fact = [('e01', 'likes', 'e02')] * count
    model.predict(listed, top=3)
    model.predict(listed, top=16)  # This uses the program of top=3.
    model.predict(listed, top=3, new_only=True)
    model.rank(fact)
    model.score(fact, side='head')
    model.embed(fact)
    model.embed(fact, layer=0)

  # `rank` makes two queries from each fact, so 3 facts fit into one batch of 8.
  call_all(3)
  first = model.encoder.traces
  # The programs: `top_k` with and without candidates, `rank`, and one `encode`
  # for each of the two layers.
  assert first == 5
  for count in (1, 2, 4):
    call_all(count)
  assert model.encoder.traces == first
  call_all(9)
  second = model.encoder.traces
  # Nine questions need a larger batch, so all programs are compiled again.
  assert second == 2 * first
  for count in (10, 17, 32):
    call_all(count)
  assert model.encoder.traces == second


@pytest.mark.parametrize('where', ['predict', 'restricted', 'rank', 'score'])
def test_parameters_that_are_not_numbers(where):
  model = small.table_model()
  broken = copy.deepcopy(model.encoder.tables)
  # This is a score of e07 for questions with the head e00.
  broken[0][0, 7] = np.nan
  model = model_lib.Model(model.encoder, broken, model.data, 1)
  calls = {
    'predict': lambda head: model.predict((head, 'likes', '?')),
    'restricted': lambda head: model.predict(
      (head, 'likes', '?'), candidates=['e01']
    ),
    'rank': lambda head: model.rank((head, 'likes', 'e01'), side='tail'),
    'score': lambda head: model.score((head, 'likes', 'e01')),
  }
  calls[where]('e01')  # The scores of this question are finite.
  with pytest.raises(FloatingPointError, match='not finite'):
    calls[where]('e00')


def all_results() -> dict:
  """Returns results of small and large batches, as values for JSON."""
  model = small.table_model()
  pieces = model_lib.Model(
    model.encoder,
    parallel.replicate(model.encoder.tables),
    model.data,
    model.max_path_length,
    batch_size=16,
  )
  listed = small.every_question()
  words = model.data.vocabulary
  facts = [
    (words.entities[h], words.relations[r], words.entities[t])
    for h, r, t in model.data.test.tolist()
  ]
  return {
    'one': [a.label for a in model.predict(listed[0], top=V)],
    'several': [
      [a.label for a in answers] for answers in pieces.predict(listed, top=3)
    ],
    'new': [
      [a.label for a in answers]
      for answers in model.predict(listed, top=3, new_only=True)
    ],
    'ranks': [[r.rank, r.candidates, r.known_in] for r in model.rank(facts)],
    'scores': model.score(facts, side='both').round(3).tolist(),
    'states': model.embed(facts, layer=1).vectors.tolist(),
  }


def test_eight_devices_give_the_same_answers(tmp_path):
  path = tmp_path / 'results.json'
  small.run_script(__file__, path, devices=8)
  written = json.loads(path.read_text())
  assert written.pop('devices') == 8
  assert written == all_results()


if __name__ == '__main__':
  pathlib.Path(sys.argv[1]).write_text(
    json.dumps({'devices': parallel.num_devices(), **all_results()})
  )
