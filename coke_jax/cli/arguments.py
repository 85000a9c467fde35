"""From what was typed to flags: order, saved settings, errors that help."""

import contextlib
import os
import pathlib
import re
import signal
import sys
import textwrap
from collections.abc import Iterator

from absl import flags

from coke_jax import config as config_lib
from coke_jax.cli import flags as flags_lib
from coke_jax.data import vocabulary
from coke_jax.storage import workdir

_OVERRIDE = re.compile(r'--?config\.([^=]+)')
_CONFIG_FILE = re.compile(r'--?config(=|$)')
_WORKDIR = re.compile(r'--?workdir(?:=(.*))?$')
_SAVED = pathlib.Path(__file__).with_name('saved_config.py')


def prepare(argv: list[str]) -> list[str]:
  """Puts --config before its overrides; without it, takes the work folder's.

  Args:
    argv: the program and its arguments, as typed.

  Returns:
    The same, in an order that the config flag understands.
  """
  program, *arguments = argv
  config: list[str] = []
  rest: list[str] = []
  saved = None
  while arguments:
    argument = _with_underscores(arguments.pop(0))
    if _CONFIG_FILE.match(argument):
      if '=' not in argument and arguments:
        argument = f'--config={arguments.pop(0)}'
      config = [argument]
      continue
    rest.append(argument)
    if match := _WORKDIR.match(argument):
      saved = match[1] or (arguments[0] if arguments else '')
  if not config and saved and workdir.Workdir(saved).exists:
    config = [f'--config={_SAVED}:{saved}']
  return [program, *config, *rest]


def parse_flags(argv: list[str]) -> list[str]:
  """Parses the flags; a wrong one ends the program with a hint."""
  unknown = [
    message for argument in argv if (message := _unknown_field(argument))
  ]
  unknown += [message for word in argv if (message := _no_file(word))]
  if unknown:
    sys.exit(fail('\n'.join(unknown)))
  try:
    return flags.FLAGS(argv)
  except flags.Error as error:
    text = str(error)
    if 'config' in text and not any(map(_CONFIG_FILE.match, argv)):
      text += '\nexpected --config=<file>, or --workdir of an earlier run'
    sys.exit(fail(f'{text}\nPass --help to see the flags.'))
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    sys.exit(fail(f'a value of --config does not fit: {error}'))
  except workdir.WorkdirError as error:  # settings of an earlier run
    sys.exit(fail(str(error)))


def wants_help(argv: list[str]) -> bool:
  """Whether --help, or one of its short forms, was typed."""
  return any(re.fullmatch('-h|--?help(short|full)?', word) for word in argv[1:])


def help_text(introduction: str) -> str:
  """The flags, then the fields of a config with their comments."""
  lines = [introduction.strip(), '', 'Flags:']
  for name in ('config', 'workdir', 'mode', *flags_lib.NAMES):
    flag = flags.FLAGS[name]
    default = f' (default: {flag.default})' if flag.default else ''
    lines.append(
      textwrap.fill(
        f'{flag.help}{default}',
        initial_indent=f'  --{name.replace("_", "-")}: ',
        subsequent_indent='      ',
      )
    )
  lines += [
    '',
    'Fields of a config, with the defaults that configs start from:',
  ]
  for field, default, comment in config_lib.describe():
    lines.append(f'  --config.{field}={default}')
    lines.append(textwrap.indent(textwrap.fill(comment, 74), '      '))
  return '\n'.join(lines)


@contextlib.contextmanager
def quiet_without_reader() -> Iterator[None]:
  """Ends the program without a word when nobody reads its output, as `| head`.

  The exit status is that of a program which SIGPIPE has ended.
  """
  try:
    yield
    sys.stdout.flush()
  except BrokenPipeError:
    # What Python still holds for standard output must go somewhere at the end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(128 + signal.SIGPIPE)


def default_workdir(config_file: str) -> str:
  """runs/<name of the config file>."""
  return os.path.join('runs', pathlib.Path(config_file).stem)


def fail(message: str) -> int:
  """Prints an error and returns the exit status for it."""
  print(f'error: {message}', file=sys.stderr)
  return 1


def _with_underscores(argument: str) -> str:
  """--new-only as --new_only, the name that flags have."""
  match = re.match('(--?(?:no)?)([a-z]+(?:-[a-z]+)+)(=.*)?$', argument, re.S)
  if not match or match[2].replace('-', '_') not in flags_lib.NAMES:
    return argument
  return match[1] + match[2].replace('-', '_') + (match[3] or '')


def _no_file(argument: str) -> str | None:
  """What is wrong with --config=<file> or --config=<file>:<argument>."""
  match = re.match(r'--?config=([^:]+)', argument)
  if not match or os.path.isfile(match[1]):
    return None
  kind = 'a folder' if os.path.isdir(match[1]) else 'no such file'
  return f'--config={match[1]}: {kind}: expected a file with get_config()'


def _unknown_field(argument: str) -> str | None:
  match = _OVERRIDE.match(argument)
  if not match:
    return None
  known = config_lib.flatten(config_lib.default_config())
  field = match[1]
  if field in known:
    return None
  by_leaf = {name.rsplit('.', 1)[-1]: name for name in known}
  near = vocabulary.closest(field, known, 2) or [
    by_leaf[leaf]
    for leaf in vocabulary.closest(field.rsplit('.', 1)[-1], by_leaf, 2)
  ]
  hint = f': did you mean {" or ".join(near)}?' if near else ''
  return f'--config.{field}: no such field{hint}'
