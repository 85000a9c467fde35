"""The texts of --help, --helpfull and --version."""

import re
import textwrap

from absl import flags as absl_flags

from coke_jax import config as config_lib
from coke_jax import version
from coke_jax.cli import commands, flags, subcommands

_WIDTH = 80
_FULL = re.compile('--?helpfull')
_HELP = re.compile('-h|--?help(short)?')
_VERSION = re.compile('--?version')


def requested(argv: list[str], introduction: str) -> str | None:
  """Returns the text that a command line requests, or None.

  With a command, --help requests the help of this command. Otherwise, --help
  requests the list of all commands. --helpfull requests all flags and config
  fields. --version requests the version.

  Args:
    argv: the program and its arguments, after `subcommands.expand`.
    introduction: the first paragraphs of the texts about all commands.
  """
  arguments = argv[1:]
  if any(map(_FULL.fullmatch, arguments)):
    return _full(introduction)
  if any(map(_HELP.fullmatch, arguments)):
    mode = subcommands.mode(argv)
    if mode in commands.COMMANDS:
      return of_command(mode)
    return _overview(introduction)
  if any(map(_VERSION.fullmatch, arguments)):
    return f'coke_jax {version.__version__}'
  return None


def of_command(mode: str) -> str:
  """Returns the help of a command: usage, purpose, examples and flags."""
  command = commands.COMMANDS[mode]
  usage, same = f'coke {mode}', ''
  if command.positional:
    name = command.positional.upper()
    usage += f' [{name}]'
    same = f'{name} is the same as --{command.positional}={name}.'
  lines = [f'Usage: {usage} [--flag=value ...]', '']
  lines += [_indented(f'{command.help} {same}', 0, 0), '', 'Examples:']
  lines += [_indented(example, 2, 4, ' \\') for example in command.examples]
  shared = [_shared_flag(name) for name in command.common]
  if command.common == ('workdir',):
    shared = [_flag('--workdir', 'Folder of a trained model.')]
  own = [
    _flag(flag.typed, flag.help_for(mode), flag.default_for(mode), flag.choices)
    for flag in flags.TABLE
    if mode in flag.modes
  ]
  lines += ['', 'Flags:', *shared, *own]
  if 'config' in command.common:
    text = (
      'Sets a config field, as in --config.train.num_epochs=50. "coke '
      '--helpfull" lists the fields.'
    )
    lines.append(_flag('--config.<group>.<field>', text))
  return '\n'.join(lines)


def _overview(introduction: str) -> str:
  """Returns the introduction and the list of commands."""
  width = max(map(len, commands.COMMANDS)) + 3
  lines = [introduction.strip(), '', 'Commands:']
  lines += [
    _indented(f'{mode:{width - 2}} {command.summary}', 2, width + 1)
    for mode, command in commands.COMMANDS.items()
  ]
  lines += [
    '',
    _indented(
      '"coke <command> --help" shows the flags of a command, "coke --helpfull" '
      'shows all flags and config fields, and "coke --version" shows the '
      'version.',
      0,
      0,
    ),
  ]
  return '\n'.join(lines)


def _full(introduction: str) -> str:
  """Returns the introduction, all flags and all config fields."""
  lines = [introduction.strip(), '', 'Flags:']
  lines += [_shared_flag(name) for name in ('config', 'workdir', 'mode')]
  for flag in flags.TABLE:
    text = absl_flags.FLAGS[flag.name].help
    lines.append(_flag(flag.typed, text, flag.default, flag.choices))
  lines += [
    '',
    'Config fields with their defaults; a config file and flags can change '
    'them:',
  ]
  for field, value, comment in config_lib.describe():
    lines += [f'  --config.{field}={value}', _indented(comment, 6, 6)]
  return '\n'.join(lines)


def _shared_flag(name: str) -> str:
  """Returns the entry of --config, --workdir or --mode."""
  flag = absl_flags.FLAGS[name]
  return _flag(f'--{name}', flag.help, flag.default)


def _flag(
  typed: str, text: str, default: object = None, choices: tuple[str, ...] = ()
) -> str:
  """Returns the entry of a flag. Further lines of its text are indented."""
  first, *more = text.splitlines()
  if choices:
    *others, last = choices
    first = f'{", ".join(others)} or {last}. {first}'
  if default and default != flags.STANDARD:
    first += f' Default: {default}.'
  lines = [_indented(f'{typed}: {first}', 2, 6)]
  return '\n'.join(lines + [_indented(line, 6, 8) for line in more])


def _indented(text: str, first: int, rest: int, line_end: str = '') -> str:
  """Wraps a text.

  Args:
    text: the text.
    first: the indent of the first line, in spaces.
    rest: the indent of all other lines, in spaces.
    line_end: the text at the end of all lines except the last. Default: empty.
  """
  lines = textwrap.wrap(
    text,
    _WIDTH - len(line_end),
    initial_indent=' ' * first,
    subsequent_indent=' ' * rest,
    break_on_hyphens=False,
    break_long_words=False,
  )
  return f'{line_end}\n'.join(lines)
