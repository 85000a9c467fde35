"""Tests the command line: order of flags, saved settings, error messages.

Importing JAX takes seconds. So a single process imports the program, and runs
each command line in a fork.
"""

import inspect
import json
import os
import pathlib
import shlex
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import small
from absl import flags as absl_flags
from ml_collections import config_flags

import coke_jax
from coke_jax import config as config_lib
from coke_jax.cli import arguments as arguments_lib
from coke_jax.cli import commands, flags

ROOT = pathlib.Path(__file__).resolve().parents[2]
UMLS = str(ROOT / 'configs' / 'umls.py')

# Runs command lines in forks. The arguments are a JSON file of command lines
# and the file for the outcomes. The script `coke` calls `entry_point`, too.
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
      # The first arguments can be redirections, such as `2>/dev/full`.
      while arguments and '>' in arguments[0][:2]:
        number, target = arguments.pop(0).split('>')
        name = 'stderr' if number else 'stdout'
        if target == 'ascii':
          sys.stdout = open(1, 'w', encoding='ascii', closefd=False)
        elif target == '&-':
          os.close(int(number or 1))
          setattr(sys, name, None)
        else:
          os.dup2(os.open(target, os.O_WRONLY), int(number or 1))
      sys.argv = ['coke', *arguments]
      status = 0
      try:
        main.entry_point()
      except SystemExit as error:
        status = error.code or 0
      except BaseException:
        traceback.print_exc()
        status = 99
      for stream in filter(None, (sys.stdout, sys.stderr)):
        stream.flush()
      os._exit(status if isinstance(status, int) else 1)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = []
    for stream in (out, err):
      stream.seek(0)
      texts.append(stream.read().decode())
    outcomes[name] = [status, *texts]
json.dump(outcomes, open(sys.argv[2], 'w'))
"""

PREDICT = [
  '--mode=predict',
  '--workdir={model}',
  '--input={folder}/questions.tsv',
]
EMBED = ['--mode=embed', *PREDICT[1:]]
SKIP = '--on-bad-line=skip'

# Maps a name to the arguments of a command line with a mistake. `filled`
# replaces {folder} by a temporary folder and {model} by the path of an exported
# model.
MISTAKES = {
  'config last': ['--config.train.batch_size=0', f'--config={UMLS}'],
  'config last, space': ['--config.train.batch_size=0', '--config', UMLS],
  'one dash': ['-config.train.batch_size=0', f'-config={UMLS}'],
  'value after space': [f'--config={UMLS}', '--config.train.batch_size', '0'],
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
  'no config': ['train'],
  'missing config': ['--config={folder}/nowhere.py'],
  'missing config, override': [
    '--config={folder}/nowhere.py',
    '--config.train.seed=3',
  ],
  'folder as config': ['--config={folder}'],
  'not a config': ['--config={folder}/empty.py'],
  'config fails': ['--config={folder}/fails.py'],
  'config with a colon in its name': ['--config={folder}/co:lon.py'],
  'config without return': ['--config={folder}/nothing.py'],
  'config is a dictionary': ['--config={folder}/dictionary.py'],
  'config with a syntax error': ['--config={folder}/syntax.py'],
  'config that imports': ['--config={folder}/imports.py'],
  'infinite minutes': [f'--config={UMLS}', '--minutes=inf'],
  'two tokens': ['serve', '{model}', '--token-file={folder}/tokens'],
  'large port': ['serve', '{model}', '--port=70000'],
  'unknown flag': [f'--config={UMLS}', '--wrkdir=x'],
  'unknown mode': [f'--config={UMLS}', '--mode=trian'],
  'unexpected argument': [f'--config={UMLS}', 'train'],
  'unknown command': ['predcit', '{model}'],
  'command and mode': ['predict', '{model}', '--mode=train'],
  'argument after flags': ['predict', '--top=3', '{model}'],
  'unknown built-in config': ['train', '--config=fb15k-237'],
  'unknown config to show': ['configs', 'umsl'],
  'path of a config': ['train', '--config=configs/umls.py'],
  'built-in config': ['train', '--config=umls', '--config.train.batch_size=0'],
  'unknown data set': [f'--config={UMLS}', '--config.data.name=UMSL'],
  'missing data folder': [f'--config={UMLS}', '--config.data.dir=/no/where'],
  'evaluate an empty folder': ['--mode=evaluate', '--workdir={folder}/empty'],
  'evaluate an empty folder, config': [
    '--mode=evaluate',
    '--workdir={folder}/empty',
    f'--config={UMLS}',
  ],
  'evaluate untrained': ['--mode=evaluate', '--workdir={folder}/run'],
  'evaluate untrained, space': ['--mode=evaluate', '--workdir', '{folder}/run'],
  'workdir with a colon': ['--mode=evaluate', '--workdir={folder}/a:b c'],
  'workdir with a line end': ['--mode=evaluate', '--workdir={folder}/a\nb'],
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
  'predict in empty folder': ['--mode=predict', '--workdir={folder}/empty'],
  'predict untrained': ['--mode=predict', '--workdir={folder}/run'],
  'no such input': [*PREDICT[:2], '--input={folder}/nowhere.tsv'],
  'folder as input': [*PREDICT[:2], '--input={folder}'],
  'bad line': PREDICT,
  'bad UTF-8': [*PREDICT[:2], '--input={folder}/bytes.tsv', '--format=jsonl'],
  'top of 0': [*PREDICT, SKIP, '--top=0'],
  'word for top': [*PREDICT, '--top=many'],
  'unknown format': [*PREDICT, '--format=csv'],
  'unknown --on-bad-line': [*PREDICT, '--on-bad-line=ignore'],
  'misspelt option': [*PREDICT, '--new-onyl'],
  'option without value': [*PREDICT, '--top'],
  'folder as output': [*PREDICT, SKIP, '--output={folder}/empty'],
  'output nowhere': [*PREDICT, SKIP, '--output={folder}/no/where.tsv'],
  'embed, no output': EMBED,
  'embed, bad line': [*EMBED, '--output={folder}/states.npz'],
  'embed, no such layer': [
    *EMBED,
    SKIP,
    '--output={folder}/states',
    '--layer=99',
  ],
  'embed, output nowhere': [*EMBED, SKIP, '--output={folder}/no/where.npz'],
  'flags of other commands': [
    f'--config={UMLS}',
    '--new-only',
    '--layer=2',
    '--workdir={folder}/empty',
  ],
  'predict with --split': [*PREDICT, '--split=valid'],
  'export, no output': ['--mode=export', '--workdir={folder}/run'],
  'report, no output': ['report', '{model}'],
  'report, wrong split': ['report', '{model}', '--split=all'],
  'evaluate an export': ['--mode=evaluate', '--workdir={model}'],
  'export untrained': [
    '--mode=export',
    '--workdir={folder}/run',
    '--output={folder}/exported',
  ],
  'prepare, no input': ['--mode=prepare', '--output={folder}/prepared no'],
  'word for a share': ['prepare', '--test-share=a: b'],
  'prepare, bad column': [
    '--mode=prepare',
    '--input={folder}/questions.tsv',
    '--columns=1,2,4',
    '--output={folder}/prepared no',
  ],
}

# These command lines have paths and texts that cannot be used as file names.
MISTAKES |= {
  'workdir of no user': ['--mode=evaluate', '--workdir=~nobodyhere/x'],
  'workdir of no user, config': [
    f'--config={UMLS}',
    '--workdir=~nobodyhere/x',
    '--config.data.dir={folder}/graph',
  ],
  'long workdir': ['--mode=evaluate', f'--workdir={"x" * 1000}'],
  'data of no user': [f'--config={UMLS}', '--config.data.dir=~nobodyhere/x'],
  'cache of no user': [
    f'--config={UMLS}',
    '--config.compilation_cache_dir=~nobodyhere/x',
  ],
  'name that is not UTF-8': [f'--config={UMLS}', '--config.data.name=a\udcff'],
}

# A first argument such as `>&-` redirects a standard stream, as in a shell.
MISTAKES |= {
  'output closed': ['>&-', *PREDICT, SKIP],
  'output full': ['>/dev/full', *PREDICT, SKIP],
  'help, output full': ['>/dev/full', '--help'],
  'output to a full device': [*PREDICT, SKIP, '--output=/dev/full'],
}

# Maps a name to the arguments of a correct command line.
CORRECT = {
  'help': ['--help'],
  'no arguments': [],
  'helpfull': ['--helpfull'],
  'help of a command': ['help', 'prepare'],
  'version': ['--version'],
  'configs': ['configs'],
  'one config': ['configs', 'umls'],
  'command': [
    'predict',
    '{model}',
    *PREDICT[2:],
    SKIP,
    '--top=3',
    '--new-only',
  ],
  'tsv': [*PREDICT, SKIP, '--top=3', '--new-only'],
  'jsonl': [
    '--top=3',
    *PREDICT,
    SKIP,
    '--new_only',
    '--format=jsonl',
    '--output={folder}/answers.jsonl',
  ],
  'embed': [*EMBED, SKIP, '--output={folder}/good.npz', '--layer=0'],
  'embed, static': [*EMBED, '--output={folder}/static.npz', '--static'],
  'prepare': [
    '--mode=prepare',
    '--input={folder}/questions.tsv',
    '--header=no',
    '--output={folder}/prepared',
    '--test-share=0.4',
  ],
  'help, output closed': ['>&-', '--help'],
  'name with a letter outside ASCII': [
    '>ascii',
    '--mode=sample-paths',
    f'--config={UMLS}',
    '--config.data.kind=walks',
    '--config.data.max_path_length=2',
    '--config.data.dir={folder}/graph',
    '--config.data.name=Gräph',
    '--workdir={folder}/pathß',
  ],
  'tsv, errors closed': ['2>&-', *PREDICT, SKIP, '--top=3', '--new-only'],
  'tsv, errors full': ['2>/dev/full', *PREDICT, SKIP, '--top=3', '--new-only'],
}


class Outcome(NamedTuple):
  status: int
  out: str
  err: str


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Creates untrained work folders, input files and bad config files."""
  made = tmp_path_factory.mktemp('command_line')
  for name in ('run', 'a:b c', 'a\nb', 'damaged'):
    small.create_workdir(made / name, small.config(data={'name': 'mine'}))
  (made / 'damaged' / 'config.json').write_text('{"train": ')
  (made / 'empty').mkdir()
  small.write_splits(
    made / 'graph', train=[('a', 'r', 'b'), ('b', 's', 'c'), ('c', 'r', 'a')]
  )
  (made / 'questions.tsv').write_text(
    'France\tborders\t?\nFrance\tborder\t?\n?\tborders,currency\tEuro (EUR)\n'
  )
  (made / 'bytes.tsv').write_bytes(b'France\tborders\t?\nFr\xff\tborders\t?\n')
  (made / 'empty.py').write_text('')
  (made / 'tokens').write_text('a\nb\n')
  for name, text in (
    ('fails', 'return {}["key"]'),
    ('co:lon', 'return {}'),
    ('nothing', 'return None'),
    ('dictionary', 'return {}'),
    ('syntax', 'return ('),
    ('imports', 'import no_such_module'),
  ):
    (made / f'{name}.py').write_text(f'def get_config():\n  {text}\n')
  return made


def filled(text: str, folder: pathlib.Path) -> str:
  return text.replace('{folder}', str(folder)).replace(
    '{model}', str(coke_jax.EXAMPLE_MODEL)
  )


@pytest.fixture(scope='module')
def outcomes(folder):
  """Returns the exit status and output of each command line, by name."""
  cases = {
    name: [filled(argument, folder) for argument in arguments]
    for name, arguments in {**MISTAKES, **CORRECT}.items()
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


# --------------------------------------------------------------------- mistakes


@pytest.mark.parametrize('name', sorted(MISTAKES))
def test_a_mistake_ends_with_a_message_and_no_traceback(outcomes, name):
  outcome = outcomes[name]
  assert outcome.status == 1
  assert 'Traceback' not in outcome.err
  assert outcome.err.strip()


@pytest.mark.parametrize(
  ('name', 'parts'),
  [
    ('config last', ['config.train.batch_size is 0', 'at least 1']),
    ('config last, space', ['config.train.batch_size is 0']),
    ('one dash', ['config.train.batch_size is 0']),
    ('value after space', ['config.train.batch_size is 0']),
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
    (
      'word for int',
      ['--config.model.num_layers=many: expected a whole number\n'],
    ),
    (
      'fraction for int',
      ['--config.train.batch_size=2.5: expected a whole number\n'],
    ),
    (
      'word for float',
      ['--config.train.learning_rate=fast: expected a number\n'],
    ),
    ('word for bool', ['--config.model.remat=maybe: expected True or False\n']),
    ('no config', ['--config']),
    ('missing config', ['nowhere.py', 'no such file']),
    ('missing config, override', ['nowhere.py', 'no such file']),
    ('folder as config', ['{folder}']),
    ('not a config', ['get_config']),
    ('config fails', ['fails.py', 'key']),
    ('config with a colon in its name', ['co:lon.py', 'path has no colon']),
    ('config without return', ['nothing.py', 'NoneType', 'ConfigDict']),
    ('config is a dictionary', ['dictionary.py', 'dict', 'ConfigDict']),
    ('config with a syntax error', ['syntax.py', 'line 2']),
    ('config that imports', ['imports.py', 'no_such_module']),
    ('infinite minutes', ['minutes is inf']),
    ('two tokens', ['{folder}/tokens', 'one token']),
    ('large port', ['port is 70000', '65535']),
    ('unknown flag', ['wrkdir', 'workdir']),
    ('unknown mode', ['trian', 'train', 'evaluate']),
    ('unknown command', ['predcit', 'did you mean predict?', '--help']),
    ('command and mode', ['--mode', 'predict']),
    ('argument after flags', ['{model}', 'coke predict WORKDIR']),
    ('unknown built-in config', ['did you mean --config=fb15k237', 'configs']),
    ('unknown config to show', ['umsl', 'did you mean umls']),
    ('path of a config', ['no such file', 'did you mean --config=umls?']),
    ('built-in config', ['config.train.batch_size is 0']),
    ('unknown data set', ["'UMSL'", 'did you mean UMLS', 'data.dir']),
    ('missing data folder', ['/no/where']),
    ('evaluate an empty folder', ['{folder}/empty', 'config.json']),
    ('evaluate an empty folder, config', ['{folder}/empty', 'no config.json']),
    ('evaluate untrained', ['{folder}/run', 'no checkpoint yet']),
    ('evaluate untrained, space', ['{folder}/run', 'no checkpoint yet']),
    ('workdir with a colon', ['{folder}/a:b c', 'no checkpoint yet']),
    ('workdir with a line end', ['{folder}/a\nb', 'no checkpoint yet']),
    ('runtime override', ['no checkpoint yet']),
    ('other settings', ['train.seed is 9: expected 0']),
    ('other config', ["data.name is 'UMLS': expected 'mine'"]),
    ('damaged run', ['config.json', 'cannot be read']),
    ('predict in empty folder', ['{folder}/empty', 'no config.json']),
    ('predict untrained', ['{folder}/run', 'no checkpoint yet']),
    ('no such input', ['--input=', 'nowhere.tsv', 'an existing file']),
    ('folder as input', ['{folder}', 'cannot be opened']),
    ('bad line', ['questions.tsv:2: ', "'border'", "did you mean 'borders'"]),
    ('bad UTF-8', ['bytes.tsv:2: ', '0xff', 'not UTF-8']),
    ('top of 0', ['top is 0', 'at least 1']),
    ('word for top', ['--top=many: expected a whole number\n']),
    ('word for a share', ['--test-share=a: b: expected a number\n']),
    ('unknown format', ['csv', 'tsv', 'jsonl']),
    ('unknown --on-bad-line', ['ignore', 'stop', 'skip']),
    ('misspelt option', ['new-onyl', 'new_only']),
    ('option without value', ['top']),
    ('folder as output', ['{folder}/empty']),
    ('output nowhere', ['{folder}/no/where.tsv', 'cannot be written']),
    ('embed, no output', ['no --output', '.npz', 'projector']),
    ('embed, bad line', ['questions.tsv:2: ', "'border'"]),
    ('embed, no such layer', ['layer is 99', '0 (the input) to 3']),
    ('embed, output nowhere', ['{folder}/no/where.npz', 'cannot be written']),
    (
      'flags of other commands',
      [
        '--new-only cannot be used with train: expected predict',
        '--layer cannot be used with train: expected embed',
      ],
    ),
    ('predict with --split', ['--split', 'predict', 'train or evaluate']),
    ('export, no output', ['no --output', 'a new folder']),
    ('report, no output', ['no --output', 'an HTML file']),
    ('report, wrong split', ['--split', 'train|valid|test']),
    ('evaluate an export', ['{model}', 'exported model', 'work folder']),
    ('export untrained', ['{folder}/run', 'no checkpoint yet']),
    ('prepare, no input', ['no --input', 'a file of triples']),
    ('prepare, bad column', ['questions.tsv:1: ', "no column '4'", '1 to 3']),
    ('workdir of no user', ["'~nobodyhere/x': no such user"]),
    ('workdir of no user, config', ["'~nobodyhere/x': no such user"]),
    ('long workdir', ['xxx', 'too long']),
    ('data of no user', ["'~nobodyhere/x': no such user"]),
    ('cache of no user', ['config.compilation_cache_dir', '~nobodyhere/x']),
    ('name that is not UTF-8', ['config.data.name', r'a\udcff', 'UTF-8']),
    ('output closed', ['standard output is closed', '--output']),
    ('output full', ['standard output: cannot be written', 'space']),
    ('help, output full', ['standard output: cannot be written', 'space']),
    ('output to a full device', ['/dev/full: cannot be written', 'space']),
  ],
)
def test_error_messages(outcomes, folder, name, parts):
  for part in parts:
    assert filled(part, folder) in outcomes[name].err


def test_without_arguments_the_help_is_printed(outcomes):
  assert outcomes['no arguments'] == outcomes['help']


def test_the_unexpected_argument_is_named(outcomes):
  outcome = outcomes['unexpected argument']
  assert 'unexpected arguments: train' in outcome.out + outcome.err


def test_a_mistake_leaves_no_folder(outcomes, folder):
  assert outcomes
  names = {path.name for path in folder.iterdir()}
  assert 'runs' not in names
  assert not list((folder / 'empty').iterdir())
  for name in ('no', 'states', 'states.npz', 'exported', 'prepared no'):
    assert not (folder / name).exists()
  assert not [name for name in names if name.startswith('.')]


# -------------------------------------------------------- correct command lines


@pytest.mark.parametrize('name', sorted(CORRECT))
def test_a_correct_command_line_succeeds(outcomes, name):
  assert outcomes[name].status == 0, outcomes[name].err
  assert 'Traceback' not in outcomes[name].err


def test_answers_on_standard_output_are_a_table(outcomes):
  head, *rows = outcomes['tsv'].out.splitlines()
  names = 'line asked head relations tail rank score probability known_in'
  assert head.split('\t') == names.split()
  cells = [
    dict(zip(names.split(), row.split('\t'), strict=True)) for row in rows
  ]
  assert [(row['line'], row['asked'], row['rank']) for row in cells] == [
    *[('1', 'tail', str(rank)) for rank in (1, 2, 3)],
    *[('3', 'head', str(rank)) for rank in (1, 2, 3)],
  ]
  assert {row['head'] for row in cells[:3]} == {'France'}
  assert {row['tail'] for row in cells[3:]} == {'Euro (EUR)'}
  assert {row['relations'] for row in cells[3:]} == {'borders,currency'}
  # With --new-only, no answer is in a split.
  assert {row['known_in'] for row in cells} == {''}


@pytest.mark.parametrize('state', ['closed', 'full'])
def test_standard_error_is_not_needed(outcomes, state):
  outcome = outcomes[f'tsv, errors {state}']
  assert (outcome.status, outcome.out) == (0, outcomes['tsv'].out)


def test_characters_that_standard_output_cannot_encode_are_escaped(outcomes):
  outcome = outcomes['name with a letter outside ASCII']
  assert r'Gr\xe4ph: 3 entities' in outcome.out


def test_both_formats_hold_the_same_answers(outcomes, folder):
  rows = [row.split('\t') for row in outcomes['tsv'].out.splitlines()[1:]]
  found = [
    json.loads(line)
    for line in (folder / 'answers.jsonl').read_text().splitlines()
  ]
  assert outcomes['jsonl'].out == ''
  assert [answer['label'] for answer in found[0]['answers']] == [
    row[4] for row in rows[:3]
  ]
  assert [answer['label'] for answer in found[1]['answers']] == [
    row[2] for row in rows[3:]
  ]


def test_the_summary_on_standard_error(outcomes, folder):
  for name, done in (
    ('tsv', 'answered 2 questions'),
    ('embed', 'embedded 2 sequences'),
  ):
    assert f'{done}; skipped 1 bad line' in outcomes[name].err
    assert f'skipped {folder}/questions.tsv:2: ' in outcomes[name].err
  assert f'written to {folder}/answers.jsonl' in outcomes['jsonl'].err


def test_embeddings_are_written(outcomes, folder):
  assert outcomes
  with np.load(folder / 'good.npz', allow_pickle=False) as states:
    assert states['vectors'].shape[0] == 2
    assert states['layer'] == 0
  with np.load(folder / 'static.npz', allow_pickle=False) as static:
    assert len(static['labels']) == len(static['vectors'])


def test_triples_are_prepared(outcomes, folder):
  assert outcomes['prepare'].out.startswith(f'{folder}/questions.tsv: 3 rows')
  assert sorted(path.name for path in (folder / 'prepared').iterdir()) == [
    'report.json',
    'test.txt',
    'train.txt',
    'valid.txt',
  ]


def test_the_full_help_names_every_flag_and_mode(outcomes):
  for flag in flags.TABLE:
    assert f'  {flag.typed}: ' in outcomes['helpfull'].out
  for mode, command in commands.COMMANDS.items():
    assert f'      {mode}: {command.help[:40]}' in outcomes['helpfull'].out
    assert f'\n  {mode} ' in outcomes['help'].out


def test_the_help_of_a_command_names_its_flags(outcomes):
  text = outcomes['help of a command'].out
  assert '\n  coke prepare facts.csv --output=data/facts\n' in text
  for flag in flags.TABLE:
    assert (f'\n  {flag.typed}: ' in text) == ('prepare' in flag.modes)


def test_the_version_is_printed(outcomes):
  assert outcomes['version'].out == f'coke_jax {coke_jax.__version__}\n'


def test_built_in_configs_are_listed(outcomes):
  listed = outcomes['configs'].out.splitlines()
  files = sorted(path.stem for path in pathlib.Path(UMLS).parent.glob('*.py'))
  assert [line.split()[0] for line in listed] == files
  assert outcomes['one config'].out == pathlib.Path(UMLS).read_text()


def test_a_command_is_the_same_as_its_mode(outcomes):
  assert outcomes['command'].out == outcomes['tsv'].out


@pytest.mark.parametrize('mode', commands.COMMANDS)
def test_a_command_takes_exactly_the_flags_of_its_mode(mode):
  parameters = inspect.signature(commands.COMMANDS[mode].function).parameters
  config, workdir, *keywords = parameters.values()
  assert (config.name, workdir.name) == ('config', 'workdir')
  assert {keyword.name for keyword in keywords} == {
    flag.name for flag in flags.TABLE if mode in flag.modes
  }
  assert {keyword.kind for keyword in keywords} <= {
    inspect.Parameter.KEYWORD_ONLY
  }


def test_every_mode_of_a_flag_exists():
  for flag in flags.TABLE:
    assert set(flag.modes) <= set(commands.COMMANDS)


def test_a_closed_pipe_ends_the_program_quietly(tmp_path):
  """`head -n 1` closes the pipe. The status is 141, as for SIGPIPE."""
  input_file = tmp_path / 'questions.tsv'
  input_file.write_text('France\tborders\t?\n' * 2000)
  script = (
    '"$0" -m coke_jax.main --mode=predict --workdir="$1" --input="$2" '
    '--top=100 2> errors | head -n 1; echo "${PIPESTATUS[@]}"'
  )
  done = subprocess.run(
    ['bash', '-c', script, sys.executable, coke_jax.EXAMPLE_MODEL, input_file],
    cwd=tmp_path,
    capture_output=True,
    text=True,
    timeout=300,
    check=False,
  )
  head, statuses = done.stdout.splitlines()
  assert head.startswith('line\tasked')
  assert statuses == '141 0'
  errors = (tmp_path / 'errors').read_text()
  for word in ('Traceback', 'Error', 'error', 'Exception'):
    assert word not in errors


def test_the_console_script_lists_the_flags(outcomes):
  outcome = outcomes['helpfull']
  assert 'Traceback' not in outcome.err
  for flag in ('--config', '--workdir', '--mode', '--split'):
    assert f'{flag}:' in outcome.out + outcome.err


def run_module(folder: pathlib.Path, *arguments: str) -> Outcome:
  """Runs a command line in a new process."""
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
  outcome = run_module(tmp_path, '--helpfull')
  text = outcome.out + outcome.err
  assert 'Traceback' not in text
  for flag in ('--config', '--workdir', '--mode', '--split'):
    assert f'{flag}:' in text
  assert '--config.train.num_epochs' in text


def test_no_thread_reports_an_error_at_exit(folder):
  outcome = run_module(folder, '--mode=evaluate', f'--workdir={folder / "run"}')
  assert outcome.status == 1
  assert 'no checkpoint yet' in outcome.err
  assert 'Traceback' not in outcome.err


# ----------------------------------------------------------- order of the flags


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
    # Dashes inside the names of flags become underscores. Values and overrides
    # stay unchanged.
    (['--new-only'], ['--new_only']),
    (['-new-only'], ['-new_only']),
    (['--nonew-only'], ['--nonew_only']),
    (['--new-only=false'], ['--new_only=false']),
    (['--on-bad-line', 'skip'], ['--on_bad_line', 'skip']),
    (['--on_bad_line=skip'], ['--on_bad_line=skip']),
    (['--input=new-only'], ['--input=new-only']),
    (['--input', '-', '--top', '-1'], ['--input', '-', '--top', '-1']),
    # A tab in a delimiter may be typed as \t, as --help prints it.
    (
      ['--config=a.py', r'--config.data.delimiter=\t'],
      ['--config=a.py', '--config.data.delimiter=\t'],
    ),
    (
      ['--config=a.py', '--config.data.relation_delimiter', r'\t|'],
      ['--config=a.py', '--config.data.relation_delimiter=\t|'],
    ),
    (
      ['--config=a.py', r'--config.data.inverse_marker=\t'],
      ['--config=a.py', r'--config.data.inverse_marker=\t'],
    ),
    (['--config.data.delimiter'], ['--config.data.delimiter']),
    (['--some-thing=1'], ['--some-thing=1']),
    # {new} does not exist, so no settings are saved.
    (['--workdir={new}'], ['--workdir={new}']),
    (['--workdir', '{new}'], ['--workdir', '{new}']),
    (['--workdir'], ['--workdir']),
    # Without --config, the saved settings are used.
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
  saved = pathlib.Path(arguments_lib.__file__).with_name('saved_config.py')
  names = {
    '{new}': str(folder / 'new'),
    '{run}': str(folder / 'run'),
    '{saved}': str(saved),
  }

  def named(arguments: list[str]) -> list[str]:
    for name, value in names.items():
      arguments = [argument.replace(name, value) for argument in arguments]
    return arguments

  given = ['coke', *named(typed)]
  before = list(given)
  assert arguments_lib.prepare(given) == ['coke', *named(prepared)]
  assert given == before


@pytest.mark.filterwarnings('ignore:the load_module:DeprecationWarning')
def test_every_default_of_the_help_can_be_typed(tmp_path, monkeypatch):
  """Parses each default as --help prints it, with quotes for a shell."""
  config_file = tmp_path / 'other.py'
  config_file.write_text(
    'from coke_jax import config\n'
    'def get_config():\n'
    '  made = config.default_config()\n'
    "  made.data.delimiter = made.data.relation_delimiter = ';'\n"
    '  return made\n'
  )
  for field, default, _ in config_lib.describe():
    (typed,) = shlex.split(f'--config.{field}={default}')
    values = absl_flags.FlagValues()
    read = config_flags.DEFINE_config_file('config', flag_values=values)
    argv = arguments_lib.prepare(['coke', typed, f'--config={config_file}'])
    # The config flag reads `sys.argv`, too.
    monkeypatch.setattr('sys.argv', argv)
    values(argv)
    expected = config_lib.flatten(config_lib.default_config())[field]
    assert config_lib.flatten(read.value)[field] == expected, typed


def test_every_default_of_a_flag_can_be_typed():
  assert flags.unescape(r'a\tb') == 'a\tb'
  for flag in flags.TABLE:
    assert str(flag.default).isprintable()


def test_default_workdir():
  assert arguments_lib.default_workdir('configs/umls.py') == 'runs/umls'
  assert arguments_lib.default_workdir('/a/b.c/fb15k237.py') == 'runs/fb15k237'
