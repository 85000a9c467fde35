"""What is typed: order, overrides, saved settings, and errors that help.

Starting Python with JAX takes seconds, so one process imports the program and
runs every command line in a fork of itself.
"""

import json
import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

from coke_jax import command_line, workdir
from coke_jax import config as config_lib
from coke_jax.data import graph, vocabulary

ROOT = pathlib.Path(__file__).resolve().parents[1]
UMLS = str(ROOT / 'configs' / 'umls.py')

# argv: where to read command lines and where to write what came of them. The
# console script `coke` calls the same function.
_RUNNER = """
import json, os, sys, tempfile, traceback
from coke_jax import main

outcomes = {}
for name, arguments in json.load(open(sys.argv[1])).items():
  with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
    child = os.fork()
    if not child:
      os.dup2(out.fileno(), 1)
      os.dup2(err.fileno(), 2)
      sys.argv = ['coke', *arguments]
      status = 0
      try:
        main.entry_point()
      except SystemExit as error:
        status = error.code or 0
      except BaseException:
        traceback.print_exc()
        status = 99
      sys.stdout.flush()
      sys.stderr.flush()
      os._exit(status if isinstance(status, int) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for stream in (out, err):
      stream.seek(0)
      texts.append(stream.read().decode())
    outcomes[name] = [status, *texts]
json.dump(outcomes, open(sys.argv[2], 'w'))
"""

# name: arguments; {folder} is a temporary folder, see `outcomes`.
CASES = {
  'config last': ['--config.train.batch_size=0', f'--config={UMLS}'],
  'config last, apart': ['--config.train.batch_size=0', '--config', UMLS],
  'one dash': ['-config.train.batch_size=0', f'-config={UMLS}'],
  'value apart': [f'--config={UMLS}', '--config.train.batch_size', '0'],
  'several wrong values': [
    f'--config={UMLS}',
    '--config.model.dropout=1.5',
    '--config.train.rows=both',
    '--config.model.num_heads=3',
  ],
  'unknown field': [f'--config={UMLS}', '--config.train.nun_epochs=3'],
  'unknown group': [f'--config={UMLS}', '--config.dropout=0.1'],
  'two unknown fields': [
    f'--config={UMLS}',
    '--config.model.num_layer=3',
    '--config.train.learn_rate=0.1',
  ],
  'group': [f'--config={UMLS}', '--config.train=3'],
  'word for int': [f'--config={UMLS}', '--config.model.num_layers=many'],
  'fraction for int': [f'--config={UMLS}', '--config.train.batch_size=2.5'],
  'word for float': [f'--config={UMLS}', '--config.train.learning_rate=fast'],
  'word for bool': [f'--config={UMLS}', '--config.model.remat=maybe'],
  'nothing': [],
  'missing config': ['--config={folder}/nowhere.py'],
  'missing config, override': [
    '--config={folder}/nowhere.py',
    '--config.train.seed=3',
  ],
  'folder as config': ['--config={folder}'],
  'not a config': [f'--config={__file__}'],
  'config fails': ['--config={folder}/fails.py'],
  'unknown flag': [f'--config={UMLS}', '--wrkdir=x'],
  'unknown mode': [f'--config={UMLS}', '--mode=trian'],
  'unexpected argument': [f'--config={UMLS}', 'train'],
  'unknown data set': [f'--config={UMLS}', '--config.data.name=UMSL'],
  'missing data folder': [f'--config={UMLS}', '--config.data.dir=/no/where'],
  'evaluate nothing': ['--mode=evaluate', '--workdir={folder}/empty'],
  'evaluate nothing, config': [
    '--mode=evaluate',
    '--workdir={folder}/empty',
    f'--config={UMLS}',
  ],
  'evaluate untrained': ['--mode=evaluate', '--workdir={folder}/run'],
  'evaluate untrained, apart': ['--mode=evaluate', '--workdir', '{folder}/run'],
  'colon': ['--mode=evaluate', '--workdir={folder}/a:b c'],
  'runtime override': [
    '--mode=evaluate',
    '--workdir={folder}/run',
    '--config.evaluate.batch_size=64',
  ],
  'other settings': [
    '--mode=evaluate',
    '--workdir={folder}/run',
    '--config.train.seed=9',
  ],
  'other config': [
    '--mode=evaluate',
    '--workdir={folder}/run',
    f'--config={UMLS}',
  ],
  'damaged run': ['--mode=evaluate', '--workdir={folder}/damaged'],
  'help': ['--help'],
}


class Outcome(NamedTuple):
  status: int
  out: str
  err: str


def small_run(folder: pathlib.Path) -> None:
  """A work folder as it is before the first checkpoint."""
  triples = np.array([[0, 0, 1], [1, 0, 2]], dtype=np.int32)
  words = vocabulary.Vocabulary(('a', 'b', 'c'), ('r',))
  config = config_lib.default_config()
  config.data.name = 'mine'
  config.model.update(
    {'num_layers': 1, 'hidden_size': 8, 'num_heads': 2, 'feed_forward_size': 8}
  )
  folder.mkdir()
  workdir.Workdir(folder).create(
    config, graph.KnowledgeGraph('mine', words, triples, triples, triples)
  )


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  made = tmp_path_factory.mktemp('command_line')
  small_run(made / 'run')
  small_run(made / 'a:b c')
  small_run(made / 'damaged')
  (made / 'damaged' / 'config.json').write_text('{"train": ')
  (made / 'empty').mkdir()
  (made / 'fails.py').write_text('def get_config():\n  return {}["key"]\n')
  return made


@pytest.fixture(scope='module')
def outcomes(folder):
  """What came of each of CASES, by name."""
  cases = {
    name: [argument.replace('{folder}', str(folder)) for argument in arguments]
    for name, arguments in CASES.items()
  }
  (folder / 'cases.json').write_text(json.dumps(cases))
  environment = {**os.environ, 'XDG_CACHE_HOME': str(folder / 'cache')}
  environment.pop('COKE_DATA_DIR', None)
  subprocess.run(
    [
      sys.executable,
      '-c',
      _RUNNER,
      str(folder / 'cases.json'),
      str(folder / 'outcomes.json'),
    ],
    check=True,
    cwd=folder,
    env=environment,
    timeout=300,
  )
  written = json.loads((folder / 'outcomes.json').read_text())
  return {name: Outcome(*outcome) for name, outcome in written.items()}


# ------------------------------------------------------- every kind of mistake


@pytest.mark.parametrize('name', sorted(set(CASES) - {'help'}))
def test_a_mistake_ends_with_a_message_and_no_traceback(outcomes, name):
  outcome = outcomes[name]
  assert outcome.status == 1
  assert 'Traceback' not in outcome.err
  assert outcome.err.strip()


@pytest.mark.parametrize(
  ('name', 'parts'),
  [
    ('config last', ['config.train.batch_size is 0', 'at least 1']),
    ('config last, apart', ['config.train.batch_size is 0']),
    ('one dash', ['config.train.batch_size is 0']),
    ('value apart', ['config.train.batch_size is 0']),
    (
      'several wrong values',
      [
        'config.model.dropout is 1.5',
        "config.train.rows is 'both'",
        "'instance', 'query'",
        'config.model.num_heads is 3',
        '256',
      ],
    ),
    ('unknown field', ['--config.train.nun_epochs', 'train.num_epochs']),
    ('unknown group', ['--config.dropout', 'did you mean', 'model.dropout']),
    ('two unknown fields', ['model.num_layers', 'train.learning_rate']),
    ('group', ['--config.train']),
    ('word for int', ['config.model.num_layers', 'many', 'int']),
    ('fraction for int', ['config.train.batch_size', '2.5', 'int']),
    ('word for float', ['config.train.learning_rate', 'fast', 'float']),
    ('word for bool', ['config.model.remat', 'maybe', 'bool']),
    ('nothing', ['--config']),
    ('missing config', ['nowhere.py', 'no such file']),
    ('missing config, override', ['nowhere.py', 'no such file']),
    ('folder as config', ['{folder}']),
    ('not a config', ['get_config']),
    ('config fails', ['key']),
    ('unknown flag', ['wrkdir', 'workdir']),
    ('unknown mode', ['trian', 'train', 'evaluate']),
    ('unknown data set', ["'UMSL'", 'did you mean UMLS', 'data.dir']),
    ('missing data folder', ['/no/where']),
    ('evaluate nothing', ['{folder}/empty', 'config.json']),
    ('evaluate nothing, config', ['{folder}/empty', 'no config.json']),
    ('evaluate untrained', ['{folder}/run', 'no checkpoint yet']),
    ('evaluate untrained, apart', ['{folder}/run', 'no checkpoint yet']),
    ('colon', ['{folder}/a:b c', 'no checkpoint yet']),
    ('runtime override', ['no checkpoint yet']),
    ('other settings', ['train.seed: 0 there, 9 given']),
    ('other config', ["data.name: 'mine' there, 'UMLS' given"]),
    ('damaged run', ['config.json', 'cannot be read']),
  ],
)
def test_what_the_message_says(outcomes, folder, name, parts):
  for part in parts:
    assert part.replace('{folder}', str(folder)) in outcomes[name].err


def test_the_unexpected_argument_is_named(outcomes):
  outcome = outcomes['unexpected argument']
  assert 'unexpected arguments: train' in outcome.out + outcome.err


def test_a_mistake_leaves_no_folder(outcomes, folder):
  assert outcomes
  names = {path.name for path in folder.iterdir()}
  assert 'runs' not in names
  assert not list((folder / 'empty').iterdir())


def test_the_console_script_lists_the_flags(outcomes):
  outcome = outcomes['help']
  assert 'Traceback' not in outcome.err
  for flag in ('--config', '--workdir', '--mode', '--split'):
    assert f'{flag}:' in outcome.out + outcome.err


def run_module(folder: pathlib.Path, *arguments: str) -> Outcome:
  """A command line in a process of its own, which ends as Python ends."""
  done = subprocess.run(
    [sys.executable, '-m', 'coke_jax.main', *arguments],
    cwd=folder,
    capture_output=True,
    text=True,
    timeout=120,
    check=False,
  )
  return Outcome(done.returncode, done.stdout, done.stderr)


def test_the_module_lists_the_flags(tmp_path):
  outcome = run_module(tmp_path, '--help')
  text = outcome.out + outcome.err
  assert 'Traceback' not in text
  for flag in ('--config', '--workdir', '--mode', '--split'):
    assert f'{flag}:' in text
  assert '--config.train.num_epochs' in text  # an example of an override


def test_an_early_end_is_quiet(folder):
  """No thread of a library complains that the program is over."""
  outcome = run_module(folder, '--mode=evaluate', f'--workdir={folder / "run"}')
  assert outcome.status == 1
  assert 'no checkpoint yet' in outcome.err
  assert 'Traceback' not in outcome.err


# --------------------------------------------------------------------- order


@pytest.mark.parametrize(
  ('typed', 'prepared'),
  [
    ([], []),
    (['--mode=train'], ['--mode=train']),
    (
      ['--config.train.seed=1', '--config=a.py', '--mode=train'],
      ['--config=a.py', '--config.train.seed=1', '--mode=train'],
    ),
    (
      ['--config.train.seed', '1', '--config', 'a.py'],
      ['--config=a.py', '--config.train.seed', '1'],
    ),
    (['--config=a.py', '--config=b.py'], ['--config=b.py']),
    (['--config'], ['--config']),
    # No work folder there yet: nothing to take settings from.
    (['--workdir={new}'], ['--workdir={new}']),
    (['--workdir', '{new}'], ['--workdir', '{new}']),
    (['--workdir'], ['--workdir']),
    # An earlier run, unless there is a --config.
    (['--workdir={run}'], ['--config={saved}:{run}', '--workdir={run}']),
    (
      ['--config.train.seed=1', '--workdir', '{run}'],
      ['--config={saved}:{run}', '--config.train.seed=1', '--workdir', '{run}'],
    ),
    (
      ['--workdir={run}', '--config=a.py'],
      ['--config=a.py', '--workdir={run}'],
    ),
  ],
)
def test_prepare(folder, typed, prepared):
  saved = pathlib.Path(command_line.__file__).with_name('saved_config.py')
  names = {
    '{new}': str(folder / 'new'),
    '{run}': str(folder / 'run'),
    '{saved}': str(saved),
  }

  def filled(arguments: list[str]) -> list[str]:
    for name, value in names.items():
      arguments = [argument.replace(name, value) for argument in arguments]
    return arguments

  given = ['coke', *filled(typed)]
  before = list(given)
  assert command_line.prepare(given) == ['coke', *filled(prepared)]
  assert given == before


def test_default_workdir():
  assert command_line.default_workdir('configs/umls.py') == 'runs/umls'
  assert command_line.default_workdir('/a/b.c/fb15k237.py') == 'runs/fb15k237'
