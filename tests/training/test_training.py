"""Tests steps, losses, resuming, validation and stopping."""

import dataclasses
import itertools
import json

import jax
import numpy as np
import optax
import pytest
import small

from coke_jax import parallel, tasks
from coke_jax.data import batches
from coke_jax.data import queries as queries_lib
from coke_jax.model import loss, parameters
from coke_jax.storage import workdir
from coke_jax.training import loop, progress_log, train_state, train_step
from coke_jax.training import setup as setup_lib

DESCENT = optax.sgd(1.0)


def random_graph(lines=40):
  return small.random_graph(
    seed=0, sizes=(lines, 6, 6), entities=12, relations=3, repeats=False
  )


def small_config(**train):
  """Returns a config whose compiled step most tests share."""
  return small.config(
    train={'batch_size': 8, 'log_every_steps': 2, 'steps_per_call': 4, **train}
  )


def make_trainer(folder, config, graph=None):
  place = workdir.Workdir(folder)
  data = graph or random_graph()
  if not place.exists:
    small.create_workdir(folder, config, data)
  setup = setup_lib.Setup(config, tasks.make_task(config, data))
  return loop.Trainer(setup, place)


def leaves(tree):
  return [np.asarray(leaf) for leaf in jax.tree.leaves(tree)]


def assert_same(a, b):
  for left, right in zip(leaves(a), leaves(b), strict=True):
    np.testing.assert_array_equal(left, right)


def test_the_same_seed_gives_the_same_parameters(tmp_path):
  first = make_trainer(tmp_path / 'a', small_config()).run()
  second = make_trainer(tmp_path / 'b', small_config()).run()
  other = make_trainer(tmp_path / 'c', small_config(seed=1)).run()
  assert_same(first, second)
  assert any(
    (a != b).any()
    for a, b in zip(leaves(first.params), leaves(other.params), strict=True)
  )


class StoppedError(Exception):
  pass


@pytest.mark.parametrize('rows', ['instance', 'query'])
def test_a_resumed_training_equals_the_undisturbed_one(
  tmp_path, monkeypatch, rows
):
  """Training stops at step 8, and continues from the checkpoint of step 6."""
  config = small_config(rows=rows, checkpoint_every_minutes=1e-9)
  assert config.model.dropout > 0
  whole = make_trainer(tmp_path / 'whole', config).run()

  seen = 0
  original = progress_log.TrainingLog.add_steps

  def interrupt(self, metrics, instances):
    nonlocal seen
    seen += 1
    if seen == 4:
      raise StoppedError
    original(self, metrics, instances)

  monkeypatch.setattr(progress_log.TrainingLog, 'add_steps', interrupt)
  with pytest.raises(StoppedError):
    make_trainer(tmp_path / 'parts', config).run()
  monkeypatch.undo()
  parts = workdir.Workdir(tmp_path / 'parts')
  with parts.checkpoints(writing=False) as checkpoints:
    assert checkpoints.steps()[0] == 6
  resumed = make_trainer(tmp_path / 'parts', config)
  assert_same(whole, resumed.run())

  def lines(folder):
    text = (tmp_path / folder / 'metrics.jsonl').read_text()
    read = [json.loads(line) for line in text.splitlines()]
    for line in read:
      line.pop('instances_per_second', None)
    return read

  assert lines('whole') == lines('parts')
  finished = make_trainer(tmp_path / 'parts', config)
  assert_same(whole, finished.run())  # All steps were done before.


@pytest.mark.parametrize('rows', ['instance', 'query'])
def test_steps_do_not_depend_on_how_they_are_spread_over_calls(rows):
  config = small_config(rows=rows)
  setup = setup_lib.Setup(config, tasks.make_task(config, random_graph()))
  epoch = list(setup.training_set.epoch(0))
  key = parameters.dropout_key(0)

  def train(sizes):
    state = parallel.replicate(setup.init_state())
    left, losses = list(epoch), []
    for size in itertools.chain(sizes, itertools.repeat(1)):
      if not left:
        break
      state, metrics = setup.train_step(state, left[:size], key)
      losses += metrics['loss'][: len(left[:size])].tolist()
      left = left[size:]
    return state, losses

  singly, expected = train([1] * len(epoch))
  assert int(singly.step) == len(epoch) > 4
  for sizes in ([4] * 3, [2, 1, 4, 4]):
    state, losses = train(sizes)
    assert_same(singly, state)
    assert losses == expected


def test_a_few_triples_are_learned_exactly(tmp_path):
  # Each pair of head and relation has one tail. Each pair of relation and tail
  # has one head.
  train = np.array([[i, i % 3, (i + 1) % 9] for i in range(9)], np.int32)
  graph = dataclasses.replace(random_graph(), train=train, valid=train)
  config = small_config(
    num_epochs=200, learning_rate=3e-3, target_mass=1.0, log_every_steps=100
  )
  config.model.hidden_size = 64
  config.model.feed_forward_size = 128
  config.train.validate_every_epochs = 0
  config.model.dropout = 0.0
  make_trainer(tmp_path, config, graph).run()
  lines = (tmp_path / 'metrics.jsonl').read_text().splitlines()
  last = json.loads(lines[-1])
  assert last['kind'] == 'valid'
  assert last['both']['mrr'] == 1.0


def epoch_gradient(config, graph, params):
  """Returns the summed gradient of an epoch, and the training set."""
  config.model.dropout = 0.0
  coke = tasks.build_model(config, graph.vocabulary)
  training_set = setup_lib.build_training_set(
    config,
    queries_lib.from_triples(graph.train, graph.vocabulary),
    graph.vocabulary,
  )

  def batch_loss(params, batch):
    logits = coke.apply(
      {'params': params}, batch['tokens'], batch['mask_position'], train=True
    )
    return loss.smoothed_cross_entropy(
      logits, batch['answers'], config.train.target_mass
    ).sum()

  compiled = jax.jit(jax.grad(batch_loss))
  total = None
  for batch in training_set.epoch(0):
    gradient = compiled(params, batch)
    total = (
      gradient
      if total is None
      else jax.tree.map(lambda a, b: a + b, total, gradient)
    )
  return total, training_set


def test_query_rows_have_the_gradient_of_instance_rows():
  graph = random_graph(lines=120)
  instance = small_config()
  query = small_config(rows='query', max_answers_per_row=3)
  coke = tasks.build_model(instance, graph.vocabulary)
  params = parameters.init_params(coke, 0)
  params = jax.tree.map(lambda leaf: leaf * 10, params)
  expected, instances = epoch_gradient(instance, graph, params)
  got, queries = epoch_gradient(query, graph, params)
  assert len(queries.queries) < len(instances.queries) == 240
  assert queries.answers_per_row == 3
  assert queries.num_instances == instances.num_instances
  jax.tree.map(
    lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4),
    expected,
    got,
  )


def one_step(batch, config, graph, answers_per_row=1.0):
  """Returns the change of the parameters in one step, and the metrics."""
  coke = tasks.build_model(config, graph.vocabulary)
  state = parallel.replicate(train_state.init_state(coke, DESCENT, 0))
  before = leaves(state.params)
  step = train_step.make_train_step(
    coke,
    DESCENT,
    target_mass=config.train.target_mass,
    answers_per_row=answers_per_row,
  )
  state, metrics = step(state, [batch], parameters.dropout_key(0))
  after = leaves(state.params)
  return [b - a for a, b in zip(before, after, strict=True)], metrics


def test_the_gradient_is_a_sum_over_answers():
  graph, config = random_graph(), small_config()
  config.model.update(dropout=0.0, num_layers=0)
  vocabulary = graph.vocabulary
  batch = {
    'tokens': np.array(
      [[vocabulary.mask_id, 12, 3], [2, 14, vocabulary.mask_id]],
      np.int32,
    ),
    'mask_position': np.array([0, 2], np.int32),
    'answers': np.array([[4, 1], [5, batches.PAD_ANSWER]], np.int32),
  }
  parts = []
  for row in (0, 1):
    alone = {name: array[row : row + 1] for name, array in batch.items()}
    parts.append(one_step(alone, config, graph))
  got, metrics = one_step(batch, config, graph, answers_per_row=1.5)
  (first, _), (second, _) = parts
  for a, b, both in zip(first, second, got, strict=True):
    np.testing.assert_allclose(both, (a + b) / 3, rtol=1e-4, atol=1e-6)
  # These losses are means over the answers of a row.
  losses = [float(metric['loss'][0]) for _, metric in parts]
  expected = (2 * losses[0] + losses[1]) / 3
  assert float(metrics['loss'][0]) == pytest.approx(expected, rel=1e-5)


def test_a_short_batch_is_averaged_over_its_real_rows():
  graph, config = random_graph(), small_config()
  config.model.dropout = 0.0
  tokens = np.array([[13, 12, 3], [2, 14, 15]], np.int32)
  tokens[tokens == 13] = graph.vocabulary.mask_id
  full = {
    'tokens': tokens,
    'mask_position': np.array([0, 2], np.int32),
    'answers': np.array([[4], [5]], np.int32),
  }
  pad = graph.vocabulary.pad_id
  padded = {
    'tokens': np.concatenate([tokens, np.full((6, 3), pad, np.int32)]),
    'mask_position': np.array([0, 2] + [0] * 6, np.int32),
    'answers': np.array([[4], [5]] + [[batches.PAD_ANSWER]] * 6, np.int32),
  }
  expected, metrics = one_step(full, config, graph)
  got, padded_metrics = one_step(padded, config, graph)
  for a, b in zip(expected, got, strict=True):
    np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
  np.testing.assert_allclose(metrics['loss'], padded_metrics['loss'], rtol=1e-5)


def test_early_stopping(tmp_path, monkeypatch):
  config = small_config(validate_every_epochs=0.5, early_stopping_validations=2)
  worker = make_trainer(tmp_path, config)
  # The metric never improves.
  monkeypatch.setattr(worker.setup.task, 'choosing_metric', lambda _: 0.5)
  worker.run()
  assert worker.progress.finished
  assert worker.progress.step == 15 < worker.setup.num_steps
  assert worker.progress.best_step == 5


def test_fractions_of_epochs(tmp_path):
  shorter = make_trainer(tmp_path / 'shorter', small_config(num_epochs=1.44))
  assert shorter.setup.steps_per_epoch == 10
  assert shorter.setup.num_steps == 14
  worker = make_trainer(tmp_path, small_config(validate_every_epochs=0.84))
  worker.run()
  assert worker.progress.step == 30
  lines = (tmp_path / 'metrics.jsonl').read_text().splitlines()
  steps = [
    line['step'] for line in map(json.loads, lines) if line['kind'] == 'valid'
  ]
  assert steps == [8, 16, 24, 30]


def test_an_empty_valid_split_keeps_the_last_checkpoint(tmp_path):
  empty = np.zeros((0, 3), np.int32)
  graph = dataclasses.replace(random_graph(), valid=empty)
  config = small_config()
  worker = make_trainer(tmp_path, config, graph)
  state = worker.run()
  params, step = worker.workdir.best_params(
    parameters.param_shapes(worker.setup.model)
  )
  assert step == worker.setup.num_steps
  assert_same(state.params, params)


def test_a_batch_that_devices_cannot_share_is_refused(monkeypatch):
  monkeypatch.setattr(parallel, 'num_devices', lambda: 8)
  graph = random_graph()
  queries = queries_lib.from_triples(graph.train, graph.vocabulary)
  with pytest.raises(ValueError, match=r'100 rows.*8 devices.*96 or 104'):
    setup_lib.build_training_set(
      small_config(batch_size=100), queries, graph.vocabulary
    )


def test_tensorboard_events(tmp_path):
  worker = make_trainer(tmp_path, small_config(tensorboard=True))
  worker.run()
  assert list((tmp_path / 'tensorboard').glob('events.*'))


@pytest.mark.parametrize(
  ('decay', 'after'),
  [('linear', [0.4, 0.3, 0.2, 0.1, 0.0]), ('none', [0.4] * 5)],
)
def test_the_learning_rate_rises_and_then_falls_or_stays(decay, after):
  config = small_config(learning_rate=0.4, learning_rate_decay=decay)
  config.train.warmup_fraction = 0.5
  _, schedule = setup_lib.build_optimizer(config, 8)
  rates = [float(schedule(step)) for step in range(9)]
  np.testing.assert_allclose(rates, [0.1, 0.2, 0.3, 0.4, *after], atol=1e-7)
