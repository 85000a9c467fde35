"""Tests the scripts that measure speed."""

import dataclasses
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import small

from coke_jax import parallel, tasks
from coke_jax.data import batches as batches_lib
from coke_jax.data import benchmarks as published
from coke_jax.data import graph as graph_lib
from coke_jax.evaluate import path_queries
from coke_jax.model import encoder, parameters
from coke_jax.model import loss as loss_lib
from coke_jax.training import optimizer, train_state, train_step
from coke_jax.training import setup as setup_lib
from experiments.benchmarks import (
  benchmark,
  data_sets,
  flops,
  load_server,
  new_process,
  plan,
  processes,
  profile_step,
  report,
  stopwatch,
)
from experiments.paper import document

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXPERIMENTS = ROOT / 'experiments'
SIZES = {
  'num_layers': 2,
  'hidden_size': 16,
  'num_heads': 2,
  'feed_forward_size': 24,
}


def run_script(*flags):
  return subprocess.run(
    [sys.executable, '-m', 'experiments.benchmarks.benchmark', *flags],
    cwd=ROOT,
    capture_output=True,
    text=True,
    check=False,
  )


def has_torch():
  return importlib.util.find_spec('torch') is not None


def tiny_setting(**changes):
  setting = plan.Setting(
    'training', dataset=plan.TINY, random=True, num_layers=2, batch_size=32
  )
  return dataclasses.replace(setting, **changes)


def tiny_task(paths):
  """Returns a config and a task: paths of up to 2 relations, or triples."""
  setting = tiny_setting()
  config = data_sets.make_config(setting)
  if not paths:
    return config, data_sets.make_task(setting, config)
  config.data.max_path_length = 2
  return config, path_queries.PathQueries(small.random_paths(2), 2)


def test_everything_is_measured(tmp_path):
  done = run_script('--smoke', f'--out={tmp_path}')
  assert done.returncode == 0, done.stdout + done.stderr
  (path,) = tmp_path.glob('*.json')
  results = json.loads(path.read_text(encoding='utf-8'))
  train, evaluate = results['groups']
  measured = {
    member['label']: member
    for member in train['members']
    if 'summary' in member
  }
  torch = {'torch-float32'} if has_torch() else set()
  assert measured.keys() == torch | {'coke-query-bfloat16'}
  for name, member in measured.items():
    summary = member['summary']
    assert len(member['rounds']) == 2
    assert summary['timed_steps'] == 2 * sum(
      member['prepared']['steps'].values()
    )
    assert member['prepared']['epoch']['batches'].keys() == {'3'}
    assert summary['instances_per_second'] >= summary['queries_per_second'] > 0
    assert summary['gflops'] > 0
    assert summary['peak_memory_mebibytes'] > 0
    assert (summary['times_torch_float32'] is None) == (not has_torch())
    assert member['prepared']['epoch']['instances'] == 600
    assert f'| {name} |' in done.stdout
  query = measured['coke-query-bfloat16']['prepared']
  assert query['epoch']['queries'] < 600
  assert query['compile_seconds'] > 0
  assert set(train['large_product_gflops']) == {'float32', 'bfloat16'}
  (member,) = evaluate['members']
  assert member['prepared']['queries'] == 40
  assert member['summary']['share_outside_products'] < 1
  assert 'jax' in results['machine']['versions']
  assert path.with_suffix('.md').read_text(encoding='utf-8') in done.stdout


def test_smoke_needs_an_output_folder(capsys):
  with pytest.raises(SystemExit, match='2'):
    benchmark.main(['--smoke'])
  assert '--smoke needs --out' in capsys.readouterr().err


def test_a_failure_is_recorded_and_the_rest_goes_on(capsys):
  missing, good = processes.measure(
    [
      tiny_setting(label='bad', kind='matrices', threads=10_000),
      tiny_setting(label='good', kind='matrices'),
    ],
    rounds=1,
  )
  assert missing['error'].startswith('bad: ValueError: threads is 10000')
  assert 'error' not in good
  assert good['rounds'][0]['gflops']['float32'] > 0
  record = {'section': 's', 'title': 't', 'members': [missing, good]}
  report.summarize(record)
  assert 'summary' not in missing
  assert 'bad: ValueError' in capsys.readouterr().out


def member(label, seconds, **setting):
  epoch = {
    'instances': 1000,
    'queries': 500,
    'batches': {'3': 8, '4': 2},
    'flops': 2 * 10**12,
  }
  return {
    'label': label,
    'setting': dataclasses.asdict(
      plan.Setting('training', label, **plan.VARIANTS[label])
    ),
    'prepared': {
      'compile_seconds': 3.0,
      'steps': {'3': 4, '4': 1},
      'epoch': epoch,
    },
    # Half of each epoch is spent on sequences of length 4.
    'rounds': [
      {'step_seconds': {'3': one / 8, '4': one / 2}} for one in seconds
    ],
    'finished': {'memory': 2**30, 'device_memory': None},
  }


def test_numbers_of_a_table():
  matrices = {
    'label': 'coke_jax matrices',
    'setting': dataclasses.asdict(plan.Setting('matrices')),
    'rounds': [{'gflops': {'float32': rate}} for rate in (800, 1000, 1200)],
  }
  group = {
    'section': 'Training',
    'title': 'L=1',
    'members': [
      member('torch-float32', (4, 2, 3)),
      member('coke-instance-float32', (2, 1, 1)),
      member('coke-query-float32', (1, 0.25, 0.5)),
      {**member('coke-query-bfloat16', (1,)), 'error': 'out of memory'},
      matrices,
    ],
  }
  report.summarize(group)
  assert group['large_product_gflops'] == {'float32': 1000}
  torch, ours, query, failed, _ = group['members']
  assert torch['summary']['times_torch_float32'] == 1
  assert torch['summary']['times_instance_mode'] is None
  # In the three rounds, `torch` takes 2, 2 and 3 times as long as `ours`, and
  # `ours` takes 2, 4 and 2 times as long as `query`. The summary contains the
  # medians.
  assert ours['summary']['times_torch_float32'] == 2
  assert query['summary']['times_instance_mode'] == 2
  assert 'summary' not in failed
  summary = ours['summary']
  assert summary['milliseconds_per_step'] == pytest.approx(200)
  assert summary['instances_per_second'] == pytest.approx(500)
  assert summary['queries_per_second'] == pytest.approx(250)
  assert summary['epochs_per_hour'] == pytest.approx(1800)
  assert summary['gflops'] == pytest.approx(1000)
  assert summary['share_of_large_products'] == pytest.approx(1)
  assert summary['peak_memory_mebibytes'] == 1024
  assert summary['spread'] == pytest.approx(1)
  results = {
    'machine': {'device': 'd', 'processor': 'p', 'versions': {}},
    'rounds': 3,
    'groups': [group],
  }
  text = report.render(results)
  assert 'large products 1,000 GFLOP/s in float32' in text
  # `torch` takes 4, 8 and 6 times as long as `query`. The median is 6.
  assert '| 6.00 | 2.00 |' in text
  assert 'failed: out of memory' in text


@pytest.mark.parametrize('name', ['1-x-cpu', '1-x-cpu-avx2-only'])
def test_the_kept_tables_are_those_of_the_kept_measurements(name):
  path = document.RESULTS / 'benchmarks' / f'{name}.json'
  results = json.loads(path.read_text(encoding='utf-8'))
  for group in results['groups']:
    report.summarize(group)
  assert report.render(results) == path.with_suffix('.md').read_text()


def test_the_plan():
  machine = {'platform': 'cpu', 'cores': 4, 'versions': {'torch': '2'}}
  parser = benchmark.make_parser()
  groups = benchmark.make_groups(parser.parse_args([]), machine)
  training_ = [group for group in groups if 'Training' in group.section]
  assert [group.title for group in training_] == [
    'L=12, batch 512, 2 threads',
    'L=3, batch 512, 2 threads',
  ]
  for group in training_:
    labels = [setting.label for setting in group.settings]
    assert labels == [*plan.VARIANTS, 'torch matrices', 'coke_jax matrices']
  evaluated = [s for g in groups for s in g.settings if s.kind == 'evaluation']
  assert [s.num_layers for s in evaluated] == [12, 3]
  assert {s.threads for s in evaluated} == {2}
  given = parser.parse_args(['--batch-sizes=512,2048', '--threads=1,2'])
  groups = benchmark.make_groups(given, machine)
  assert len(groups) == 2 * 2 * 2 + 2
  # On a GPU, the number of threads is not limited. Without PyTorch, only
  # coke_jax is measured.
  given = parser.parse_args(['--parts=training'])
  groups = benchmark.make_groups(
    given, {'platform': 'gpu', 'cores': 16, 'versions': {}}
  )
  settings = [setting for group in groups for setting in group.settings]
  assert {setting.threads for setting in settings} == {0}
  assert {setting.framework for setting in settings} == {'coke_jax'}


def test_variants_of_pytorch_need_pytorch():
  given = benchmark.make_parser().parse_args(['--variants=torch-float32'])
  with pytest.raises(SystemExit, match='PyTorch is not installed'):
    benchmark.make_groups(given, {'versions': {}})


@pytest.mark.parametrize('name', data_sets.COUNTS)
def test_random_data_have_the_published_counts(name):
  counts = data_sets.COUNTS[name]
  data = data_sets.random_graph(counts)
  published.check_counts(  # This checks nothing for the tiny data set.
    name,
    entities=data.vocabulary.num_entities,
    relations=data.vocabulary.num_relations,
    **{split: len(data.split(split)) for split in graph_lib.SPLITS},
  )
  assert counts.lines == tuple(map(len, (data.train, data.valid, data.test)))
  assert list(data.vocabulary.entities) == sorted(data.vocabulary.entities)


def products(jaxpr):
  """Counts the operations of all matrix products in a program."""
  total = 0
  for equation in jaxpr.eqns:
    vectors = any(operand.aval.ndim < 2 for operand in equation.invars)
    if equation.primitive.name == 'dot_general' and not vectors:
      (contracting, _), _ = equation.params['dimension_numbers']
      shape = equation.invars[0].aval.shape
      summed = np.prod([shape[axis] for axis in contracting])
      total += 2 * int(summed * equation.outvars[0].aval.size)
    for value in equation.params.values():
      inner = getattr(value, 'jaxpr', value)
      if hasattr(inner, 'eqns'):
        total += products(inner)
  return total


@pytest.mark.parametrize('length', [3, 5])
def test_operations_are_those_of_the_program(length):
  rows, entities = 4, 50
  coke = encoder.CoKE(
    num_entities=entities,
    num_tokens=60,
    pad_id=59,
    max_length=5,
    dropout=0.1,
    **SIZES,
  )
  tokens = jnp.zeros((rows, length), jnp.int32)
  position = jnp.zeros(rows, jnp.int32)
  params = jax.eval_shape(coke.init, jax.random.key(0), tokens, position)

  def forward(params):
    return coke.apply(params, tokens, position).sum()

  shape = flops.Shape(
    entities,
    SIZES['num_layers'],
    SIZES['hidden_size'],
    SIZES['feed_forward_size'],
  )
  program = jax.make_jaxpr(forward)(params)
  assert products(program.jaxpr) == rows * shape.forward(length)
  program = jax.make_jaxpr(jax.grad(forward))(params)
  assert products(program.jaxpr) == rows * shape.training(length)


def to_torch(params, torch):
  """Returns the parameters under the names of the PyTorch model."""
  state = {
    'elements.weight': params['element_embedding'],
    'positions.weight': params['position_embedding'],
    'entity_bias': params['entity_bias'],
  }

  def put(name, values):
    """Adds the values of a dense layer or of a layer norm to `state`."""
    if 'kernel' in values:
      state[f'{name}.weight'] = values['kernel'].T
    else:
      state[f'{name}.weight'] = values['scale']
    state[f'{name}.bias'] = values['bias']

  for name in ('embedding_norm', 'prediction_dense', 'prediction_norm'):
    put(name, params[name])
  for number in range(SIZES['num_layers']):
    block, theirs = params[f'blocks_{number}'], f'encoder.layers.{number}'
    projection = block['attention']['query_key_value']
    state[f'{theirs}.self_attn.in_proj_weight'] = projection['kernel'].T
    state[f'{theirs}.self_attn.in_proj_bias'] = projection['bias']
    put(f'{theirs}.self_attn.out_proj', block['attention']['output'])
    put(f'{theirs}.linear1', block['hidden'])
    put(f'{theirs}.linear2', block['output'])
    put(f'{theirs}.norm1', block['attention_norm'])
    put(f'{theirs}.norm2', block['feed_forward_norm'])
  return {name: torch.from_numpy(np.array(a)) for name, a in state.items()}


@pytest.fixture
def both():
  """Returns a config, a CoKE, its parameters, and a PyTorch training.

  The PyTorch model has the same parameters.
  """
  torch = pytest.importorskip('torch')
  from experiments.benchmarks import torch_steps

  config, task = tiny_task(paths=True)
  config.model.update({**SIZES, 'dropout': 0.0})
  config.train.target_mass = 0.3
  config.train.num_epochs = 2
  config.train.learning_rate = 1e-2
  theirs = torch_steps.Steps(config, task)
  coke = tasks.build_model(config, task.data.vocabulary, task.max_length)
  generator = np.random.default_rng(1)
  params = jax.tree.map(  # Biases are not 0, and scales are not 1.
    lambda leaf: generator.normal(0.1, 0.2, leaf.shape).astype(np.float32),
    jax.eval_shape(lambda: parameters.init_params(coke, 0)),
  )
  theirs.model.load_state_dict(to_torch(params, torch))
  # Without optimizations, JAX compiles faster.
  jax.config.update('jax_disable_most_optimizations', True)
  yield config, coke, params, theirs
  jax.config.update('jax_disable_most_optimizations', False)


def test_both_models_are_equal(both):
  config, coke, params, theirs = both
  torch = pytest.importorskip('torch')
  from experiments.benchmarks import torch_model

  for batch in theirs.training_set.epoch(0):
    if (batch['answers'] == batches_lib.PAD_ANSWER).any():
      break  # This batch has padding rows, which have no weight.
  rows = int((batch['answers'][:, 0] >= 0).sum())
  tokens, position = batch['tokens'], batch['mask_position']
  ours = jax.jit(coke.apply)({'params': params}, tokens, position)[:rows]
  with torch.no_grad():
    logits = theirs.model(torch.from_numpy(tokens), torch.from_numpy(position))
    answers = torch.from_numpy(batch['answers'][:, 0].astype('int64'))
    mean = torch_model.loss(logits, answers, config.train.target_mass)
  np.testing.assert_allclose(ours, logits[:rows], atol=1e-4)
  expected = loss_lib.smoothed_cross_entropy(
    ours, batch['answers'][:rows], config.train.target_mass
  )
  assert float(mean) == pytest.approx(float(expected.mean()), abs=1e-4)


def test_both_trainings_are_equal(both):
  """Compares the losses of eight steps."""
  config, coke, params, theirs = both
  transformation, _ = setup_lib.build_optimizer(
    config, round(2 * theirs.training_set.steps_per_epoch)
  )
  step = train_step.make_train_step(
    coke, transformation, target_mass=config.train.target_mass
  )
  state = parallel.replicate(
    train_state.TrainState(
      step=jnp.zeros((), jnp.int32),
      params=params,
      optimizer_state=transformation.init(params),
    )
  )
  losses = []
  batch = next(theirs.training_set.epoch(0))
  for _ in range(8):
    state, metrics = step(state, [batch], parameters.dropout_key(0))
    theirs.run([batch])
    losses.append((metrics['loss'].item(), theirs.last_loss.item()))
  ours, torch_losses = np.array(losses).T
  np.testing.assert_allclose(ours, torch_losses, rtol=1e-4)
  assert ours[-1] < ours[0] - 0.05


def test_the_schedules_are_equal():
  pytest.importorskip('torch')
  from experiments.benchmarks import torch_steps

  for num_steps, warmup in ((20, 0.1), (20, 0.0), (7, 0.5)):
    ours = optimizer.learning_rate_schedule(0.5, num_steps, warmup)
    theirs = torch_steps.warmup_and_decay(num_steps, warmup)
    for step in range(num_steps + 1):
      assert 0.5 * theirs(step) == pytest.approx(float(ours(step)), abs=1e-6)


def test_operations_of_the_pytorch_model_are_those_of_the_program(both):
  torch = pytest.importorskip('torch')
  from torch.utils import flop_counter

  _, _, _, theirs = both
  batch = next(theirs.training_set.epoch(0))
  rows, length = batch['tokens'].shape
  shape = flops.Shape(
    theirs.model.num_entities,
    SIZES['num_layers'],
    SIZES['hidden_size'],
    SIZES['feed_forward_size'],
    whole_last_block=True,
  )
  # The counter includes attention only if plain products compute it.
  plain = torch.nn.attention.SDPBackend.MATH
  with (
    torch.nn.attention.sdpa_kernel(plain),
    flop_counter.FlopCounterMode(display=False) as counter,
  ):
    theirs.run([batch])
  assert counter.get_total_flops() == rows * shape.training(length)


def test_environment_of_a_process():
  setting = tiny_setting(framework='torch', threads=2, dataset='FB15k-237')
  variables = processes.environment(setting)
  assert variables['NPROC'] == variables['OMP_NUM_THREADS'] == '2'
  assert variables['JAX_ENABLE_COMPILATION_CACHE'] == 'false'


def test_a_new_process_has_its_own_environment():
  assert new_process.call(os.getenv, 'COKE_TEST', COKE_TEST='1') == '1'
  assert 'COKE_TEST' not in os.environ
  with pytest.raises(ValueError, match='invalid literal'):
    new_process.call(int, 'x')


def test_each_length_is_timed_by_itself():
  config, task = tiny_task(paths=True)
  whole = setup_lib.build_training_set(
    config, task.training_queries(), task.data.vocabulary
  )
  parts = stopwatch.by_length(whole)
  assert parts.keys() == {3, 4}
  assert sum(len(part.queries) for part in parts.values()) == len(whole.queries)
  batches = sum(part.steps_per_epoch for part in parts.values())
  assert batches == whole.steps_per_epoch
  for length, part in parts.items():
    assert {b['tokens'].shape for b in part.epoch(0)} == {(32, length)}
  config, task = tiny_task(paths=False)
  whole = setup_lib.build_training_set(
    config, task.training_queries(), task.data.vocabulary
  )
  assert stopwatch.by_length(whole) == {3: whole}


class FakeStepper:
  """Simulates steps of 1 second, and a compilation of 100 s for each length."""

  steps_per_call = 8
  whole_last_block = False

  def __init__(self, training_set, clock):
    self.training_set = training_set
    self.compiled = set()
    self.clock = clock

  def run(self, batches):
    for batch in batches:
      length = batch['tokens'].shape[1]
      self.clock[0] += 1 if length in self.compiled else 101
      self.compiled.add(length)


def test_the_lengths_in_a_round_have_the_weights_of_an_epoch(monkeypatch):
  config, task = tiny_task(paths=True)
  whole = setup_lib.build_training_set(
    config, task.training_queries(), task.data.vocabulary
  )
  clock = [0.0]
  monkeypatch.setattr(stopwatch.time, 'perf_counter', lambda: clock[0])
  watch = stopwatch.Stopwatch(FakeStepper(whole, clock))
  assert watch.compile_seconds == 200
  assert watch.step_seconds == {3: 1, 4: 1}
  # The steps are rounded up to one call of 8 steps.
  assert watch.round_steps(seconds=5) == {3: 8, 4: 8}
  # 2 x 16 steps would take 32 s. Rounding up stops at 30 s.
  assert watch.round_steps(seconds=20) == {3: 15, 4: 15}
  assert watch.round_steps(seconds=5, least=69) == {3: 35, 4: 35}
  measured = watch.measure({3: 2, 4: 3})
  assert measured == {3: 1, 4: 1}
  assert watch.epoch_seconds(measured) == whole.steps_per_epoch


class FakeWorker:
  """Simulates a process. The label is the number of seconds of a step."""

  def __init__(self, setting):
    self._seconds = float(setting.label)

  def __enter__(self):
    return self

  def __exit__(self, *error):
    pass

  def tell(self, command):
    return {'step_seconds': {'3': self._seconds}}


def test_slow_trainings_have_one_round(monkeypatch):
  monkeypatch.setattr(processes, 'Worker', FakeWorker)
  settings = [tiny_setting(label=label) for label in ('0.1', '100')]
  fast, slow = processes.measure(settings, rounds=3)
  assert len(fast['rounds']) == 3
  assert len(slow['rounds']) == 1


def test_a_profile_adds_up_the_time_of_a_step():
  script = 'experiments.benchmarks.profile_step'
  flags = '--dataset=tiny --layers=1 --batch-size=32 --steps-per-call=2'
  done = subprocess.run(
    [sys.executable, '-m', script, *flags.split(), '--calls=1'],
    cwd=ROOT,
    env={**os.environ, 'JAX_DISABLE_MOST_OPTIMIZATIONS': 'true'},
    capture_output=True,
    text=True,
    check=False,
  )
  assert done.returncode == 0, done.stderr
  *lines, total, faults = done.stdout.splitlines()
  times = {line[:24].strip(): float(line[24:].split()[0]) for line in lines}
  assert list(times) == list(profile_step.PARTS)
  assert times['optimizer'] > 0
  assert float(total.split()[-2]) == pytest.approx(sum(times.values()), abs=1)
  assert faults.startswith('page faults')


@pytest.mark.parametrize(
  ('place', 'part'),
  [
    ('transpose(jvp(CoKE))/blocks_3/hidden/dot_general', 'products of blocks'),
    ('jvp(CoKE)/blocks_0/attention/Dropout_0/threefry2x32', 'dropout bits'),
    ('jvp(CoKE)/blocks_0/attention/bqah,bkah->bqka/dot_general', 'attention'),
    ('jvp(CoKE)/blocks_0/attention/output/dot_general', 'products of blocks'),
    ('jvp(CoKE)/CoKE.entity_logits/dot_general', 'products with entities'),
    # The gradient needs the transposed entity embeddings.
    (
      'transpose(jvp(CoKE))/CoKE.entity_logits/transpose',
      'products with entities',
    ),
    ('jvp(CoKE)/CoKE.entity_logits/add', 'logits and loss'),
    ('jvp(CoKE)/blocks_1/feed_forward_norm/rsqrt', 'layer norm'),
    ('mul', 'optimizer'),
  ],
)
def test_operations_are_assigned_to_parts_by_their_place(place, part):
  assert profile_step.part(place) == part


def test_a_server_is_measured_under_load(capfd):
  flags = ['--clients', '1', '4', '--seconds=0.2', '--rounds=1']
  assert load_server.main([*flags, '--questions=20']) == 0
  said = capfd.readouterr().out
  assert re.search(r'\| 4 clients \| \d+ \| [\d.]+ ms \| [\d.]+ ms \|', said)
  assert said.endswith(' 0 wrong answers\n')
