"""Tests commands such as `coke predict`, their help, and shell completion."""

import shlex
import shutil
import subprocess

import pytest
from absl import flags as absl_flags

from coke_jax import builtin_configs, main
from coke_jax import config as config_lib
from coke_jax.cli import (
  arguments,
  commands,
  completion,
  flags,
  help_text,
  subcommands,
)

COMMANDS = commands.COMMANDS


def expand(*typed):
  return subcommands.expand(['coke', *typed], COMMANDS)[1:]


@pytest.mark.parametrize(
  ('typed', 'expanded'),
  [
    ('', ''),
    ('--mode=predict', '--mode=predict'),
    ('--workdir=x predict', '--workdir=x predict'),
    ('predict --top=3', '--mode=predict --top=3'),
    ('predict runs/x --top=3', '--mode=predict --workdir=runs/x --top=3'),
    ('train facts.csv', '--mode=train --data=facts.csv'),
    ('prepare a.nt --output=b', '--mode=prepare --input=a.nt --output=b'),
    ('prepare - --output=b', '--mode=prepare --input=- --output=b'),
    ('predict runs/x runs/y', '--mode=predict --workdir=runs/x runs/y'),
    ('sample-paths x', '--mode=sample-paths x'),
    ('completion zsh', '--mode=completion --shell=zsh'),
    ('help', '--help'),
    ('help predict', '--mode=predict --help'),
  ],
)
def test_a_command_is_replaced_by_flags(typed, expanded):
  assert expand(*typed.split()) == expanded.split()


def test_the_home_folder_is_expanded_in_paths(monkeypatch):
  monkeypatch.setenv('HOME', '/home/me')
  values = absl_flags.FlagValues()
  monkeypatch.setattr(flags.flags, 'FLAGS', values)
  for flag in flags.TABLE:
    if 'plot' in flag.modes:
      absl_flags.DEFINE_string(
        flag.name, str(flag.default), '', flag_values=values
      )
    else:
      absl_flags.DEFINE_string(flag.name, None, '', flag_values=values)
  values(['coke', '--output=~/pictures', '--names=a/~', '--entity=~x'])
  found = flags.values('plot')
  assert found['output'] == '/home/me/pictures'
  assert found['names'] == 'a/~'
  assert found['entity'] == '~x'  # A label is no path.


@pytest.mark.parametrize(
  'typed', ['trian', 'predict -mode train', 'help predikt']
)
def test_wrong_commands_are_errors(typed):
  with pytest.raises(flags.FlagError):
    expand(*typed.split())


@pytest.mark.parametrize('mode', COMMANDS)
def test_the_help_of_a_command(mode):
  text = help_text.requested(['coke', f'--mode={mode}', '--help'], '')
  assert all(len(line) <= 80 for line in text.splitlines())
  for flag in flags.TABLE:
    assert (f'\n  {flag.typed}: ' in text) == (mode in flag.modes)
    if mode in flag.modes:
      assert flag.help_for(mode)


@pytest.mark.parametrize(
  ('mode', 'example'),
  [(mode, one) for mode in COMMANDS for one in COMMANDS[mode].examples],
)
def test_the_flags_of_an_example_exist(mode, example):
  for character in '|<>()':  # These characters separate words in a shell.
    example = example.replace(character, f' {character} ')
  words = shlex.split(example)
  words = words[words.index('coke') + 1 :]
  ends = [index for index, word in enumerate(words) if word in ('>', ')')]
  expanded = expand(*words[: min(ends, default=None)])
  assert expanded[0] == f'--mode={mode}'
  fields = config_lib.flatten(config_lib.default_config())
  for typed in expanded[1:]:
    name, _, value = typed.partition('=')
    if name == '--config':
      assert value in builtin_configs.names()
    elif name.startswith('--config.'):
      assert name.removeprefix('--config.') in fields
    elif name != '--workdir':
      (flag,) = [flag for flag in flags.TABLE if flag.typed == name]
      assert mode in flag.modes
      assert not flag.choices or value in flag.choices


def test_a_built_in_config_is_replaced_by_its_file():
  path = builtin_configs.path('umls')
  assert path is not None
  for typed, prepared in (
    ('--config=umls', f'--config={path}'),
    ('--config=umls:text', f'--config={path}:text'),
    ('--config=./umls', '--config=./umls'),
    ('--config=umls.py', '--config=umls.py'),
  ):
    assert arguments.prepare(['coke', typed]) == ['coke', prepared]
  assert arguments.default_workdir(str(path)) == 'runs/umls'


# ------------------------------------------------------------ shell completion

# Each entry has the words up to the cursor, and the completions of the last
# word. Bash separates --flag=value into three words.
COMPLETIONS = (
  ('pre', {'predict', 'prepare'}),
  ('predict --new', {'--new-only'}),
  ('predict --for', {'--format='}),
  ('predict --format = js', {'jsonl'}),
  ('predict --format =', {'tsv', 'jsonl'}),
  ('predict --format t', {'tsv'}),
  ('predict --minutes', set()),
  ('train --config = fb15k2', {'fb15k237', 'fb15k237_cpu'}),
  ('train --config.train.num', {'--config.train.num_epochs='}),
  ('configs wn', {'wn18', 'wn18rr', 'wn18rr_cpu'}),
  ('predict runs/', set()),
)


def needs(shell):
  path = shutil.which(shell)
  if path is None:
    pytest.skip(f'{shell} is not installed')
  return path


def test_bash_completes():
  lines = [completion.script('bash', COMMANDS)]
  for words, _ in COMPLETIONS:
    typed = ['coke', *words.split()]
    lines += [
      f'COMP_WORDS=({shlex.join(typed)}) COMP_CWORD={len(typed) - 1}',
      '_coke 2> /dev/null; echo "${COMPREPLY[@]}"',
    ]
  done = subprocess.run(
    [needs('bash'), '-c', '\n'.join(lines)],
    capture_output=True,
    text=True,
    check=True,
  )
  found = [set(line.split()) for line in done.stdout.splitlines()]
  assert found == [expected for _, expected in COMPLETIONS]
  assert not done.stderr


def test_fish_completes(tmp_path):
  (tmp_path / 'coke.fish').write_text(completion.script('fish', COMMANDS))
  for typed, expected in (
    ('coke sim', 'similar'),
    ('coke predict --form', '--format'),
    ('coke predict --format=j', '--format=jsonl'),
    ('coke train --config=fb15k237_', '--config=fb15k237_cpu'),
    ('coke train --config.train.num', '--config.train.num_epochs'),
    ('coke configs uml', 'umls'),
  ):
    done = subprocess.run(
      [needs('fish'), '-N', '-c', 'source coke.fish; complete -C $argv', typed],
      cwd=tmp_path,
      capture_output=True,
      text=True,
      check=True,
    )
    assert [line.split('\t')[0] for line in done.stdout.splitlines()] == [
      expected
    ]


@pytest.mark.parametrize('shell', ['bash', 'fish', 'zsh'])
def test_the_scripts_have_no_syntax_errors(shell, tmp_path):
  (tmp_path / 'script').write_text(completion.script(shell, COMMANDS))
  subprocess.run([needs(shell), '-n', tmp_path / 'script'], check=True)
  # Importing `main` defines --config and --workdir. The script has their help.
  assert main.FLAGS
