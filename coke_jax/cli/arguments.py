"""Parses the command line, and adds hints to error messages."""

import contextlib
import os
import pathlib
import re
import signal
import sys
from collections.abc import Iterator

import ml_collections
from absl import flags
from ml_collections import config_flags

from coke_jax import builtin_configs, errors
from coke_jax import config as config_lib
from coke_jax.cli import flags as flags_lib
from coke_jax.data import atomic_files, vocabulary
from coke_jax.storage import workdir as workdir_lib

_OVERRIDE = re.compile(r'--?config\.([^=]+)')
_CONFIG_FILE = re.compile(r'--?config(=|$)')
_WORKDIR = re.compile(r'--?workdir(?:=(.*))?', re.DOTALL)
_DELIMITER = re.compile(
  r'(--?config\.data\.(?:relation_)?delimiter)(?:=(.*))?', re.DOTALL
)
# Maps the start of Python's message about a value to the expected type.
_TYPES = {
  "('Non-boolean argument": 'True or False',
  'invalid literal for int()': 'a whole number',
  'could not convert string to float': 'a number',
}
_WRONG_VALUE = re.compile(
  f'flag --([^=]+)=(.*): ((?:{"|".join(map(re.escape, _TYPES))}).*)', re.DOTALL
)
_SAVED = pathlib.Path(__file__).with_name('saved_config.py')


def prepare(argv: list[str]) -> list[str]:
  r"""Rewrites the arguments as absl and `config_flags` require.

  `--config` is moved before its overrides. The name of a built-in config is
  replaced by the path of its file. Without `--config`, the settings of an
  existing `--workdir` are used. Dashes in flag names become underscores. In the
  flags for delimiters of data files, `\t` becomes a tab.

  Args:
    argv: the program and its arguments, after `subcommands.expand`.

  Returns:
    The program and its arguments for absl.
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
      config = [_with_path(argument)]
      continue
    if match := _DELIMITER.fullmatch(argument):
      value = match[2]
      if value is None and arguments:
        value = arguments.pop(0)
      if value is not None:
        argument = f'{match[1]}={flags_lib.unescape(value)}'
    rest.append(argument)
    if match := _WORKDIR.fullmatch(argument):
      saved = match[1]
      if saved is None and arguments:
        saved = arguments[0]
  # Ignore an invalid path here, because `missing_config` reports it.
  with contextlib.suppress(errors.PathError):
    if not config and saved and workdir_lib.Workdir(saved).exists:
      config = [f'--config={_SAVED}:{saved}']
  return [program, *config, *rest]


def parse_flags(argv: list[str]) -> list[str]:
  """Parses the flags.

  If a flag is not valid, prints an error with a hint and exits with status 1.

  Args:
    argv: the result of `prepare`.

  Returns:
    The program and the arguments that are not flags.
  """
  problems = [
    problem
    for find_problem in (_unknown_field, _missing_file)
    for argument in argv
    if (problem := find_problem(argument))
  ]
  if problems:
    sys.exit(fail('\n'.join(problems)))
  try:
    rest = flags.FLAGS(argv)
    _check_config()
    return rest
  except flags.Error as error:
    text = _wrong_value(str(error)) or str(error)
    if 'Traceback' in text:  # The config file raised an error.
      text = f'{_config_of(argv)}: cannot be read: {text.splitlines()[-1]}'
    if 'config' in text and not any(map(_CONFIG_FILE.match, argv)):
      text += (
        '\nexpected --config=<name or file>, or --workdir of an existing run. '
        '--config=own_graph suits graphs of up to ten thousand entities, and '
        '--config=own_large_graph suits larger graphs'
      )
    sys.exit(fail(f'{text}\nPass --help to see the flags.'))
  except errors.CokeError as error:  # Raised by a config file.
    sys.exit(fail(str(error)))
  except (AttributeError, KeyError, TypeError, ValueError) as error:
    sys.exit(fail(f'{_config_of(argv)}: a value is not valid: {error}'))
  except Exception as error:  # The file can raise any error.
    kind = type(error).__name__
    sys.exit(fail(f'{_config_of(argv)}: cannot be read: {kind}: {error}'))


def _wrong_value(text: str) -> str | None:
  """Returns an error message for the value of a flag with a wrong type.

  Args:
    text: absl's error message, which contains Python's error message.
  """
  match = _WRONG_VALUE.match(text)
  if not match:
    return None
  name, value, reason = match.groups()
  expected = next(text for start, text in _TYPES.items() if start in reason)
  if name in flags_lib.NAMES:
    name = name.replace('_', '-')
  return f'--{name}={value}: expected {expected}'


def _config_of(argv: list[str]) -> str:
  """Returns the argument that names the config file, for error messages."""
  return next(filter(_CONFIG_FILE.match, argv), '--config')


def _check_config() -> None:
  """Raises ConfigError if `get_config` of the config file returns no config."""
  flag = flags.FLAGS['config']
  if flag.present and not isinstance(flag.value, ml_collections.ConfigDict):
    raise config_lib.ConfigError(
      f'--config={config_flags.get_config_filename(flag)}: get_config() '
      f'returned {type(flag.value).__name__}: expected a ConfigDict of '
      'ml_collections'
    )


@contextlib.contextmanager
def flushed_output() -> Iterator[None]:
  """Flushes standard output at the end of a `with` block.

  If the output cannot be written, exits without a traceback. If the reader of
  the output has ended, as with `| head`, the exit status is 128 + SIGPIPE.
  Otherwise, prints an error and exits with status 1.
  """
  try:
    try:
      yield
    finally:
      if sys.stdout is not None:
        sys.stdout.flush()
  except (BrokenPipeError, atomic_files.WriteError) as error:
    # Python flushes standard output once more when it exits. This would raise
    # the same error, so replace the output by the null device.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if isinstance(error, BrokenPipeError):
      sys.exit(128 + signal.SIGPIPE)
    sys.exit(fail(str(error)))


def default_workdir(config_file: str) -> str:
  """Returns `runs/<name of the config file>`."""
  return os.path.join('runs', pathlib.Path(config_file).stem)


def missing_config(workdir: str, expected: str = '--config') -> str:
  """Returns the error message for a command line without settings.

  Args:
    workdir: the value of --workdir. It is empty, or a folder without a run.
    expected: the flags that provide settings without --workdir. Empty if there
      are no such flags.

  Raises:
    errors.PathError: `workdir` is not a valid path.
  """
  if workdir:
    _ = workdir_lib.Workdir(workdir).exists  # Raises PathError.
    message = (
      f'{workdir}: no config.json: expected a folder written by training'
    )
  else:
    message = 'expected --workdir=<folder of an existing run>'
  if not expected:
    return message
  return f'{message}, or {expected} ("coke configs" lists built-in configs)'


def fail(message: str) -> int:
  """Prints an error and returns the exit status 1."""
  print(f'error: {message}', file=sys.stderr)
  return 1


def _with_underscores(argument: str) -> str:
  """Turns --new-only into --new_only, the name that absl uses."""
  match = re.match('(--?(?:no)?)([a-z]+(?:-[a-z]+)+)(=.*)?$', argument, re.S)
  if not match or match[2].replace('-', '_') not in flags_lib.NAMES:
    return argument
  return match[1] + match[2].replace('-', '_') + (match[3] or '')


def _with_path(argument: str) -> str:
  """Replaces the name of a built-in config by the path of its file."""
  flag, _, value = argument.partition('=')
  name, colon, text = value.partition(':')
  path = builtin_configs.path(name)
  return argument if path is None else f'{flag}={path}{colon}{text}'


def _missing_file(argument: str) -> str | None:
  """Returns an error message if --config=<file> names no existing file."""
  match = re.match(r'--?config=([^:]+)', argument)
  if not match or os.path.isfile(match[1]):
    return None
  kind = 'a folder' if os.path.isdir(match[1]) else 'no such file'
  whole = argument.partition('=')[2]
  if whole != match[1] and os.path.isfile(whole):
    return (
      f'--config={whole}: the text after the colon is passed to get_config(): '
      'expected a file whose path has no colon'
    )
  near = builtin_configs.closest(match[1])
  hint = f' (did you mean --config={" or ".join(near)}?)' if near else ''
  return (
    f'--config={match[1]}: {kind}: expected a file with get_config(), or the '
    f'name of a built-in config{hint}\nThe command "coke configs" lists the '
    'built-in configs.'
  )


def _unknown_field(argument: str) -> str | None:
  """Returns an error message if --config.<field> names no existing field."""
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
