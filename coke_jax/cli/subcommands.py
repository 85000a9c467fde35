"""Turns `coke predict runs/x` into the flags --mode and --workdir."""

import re
from collections.abc import Mapping, Sequence

from coke_jax.cli import command_types, flags
from coke_jax.data import vocabulary

HELP = 'help'
_MODE = re.compile(r'--?mode(?:=(.*))?$')


def expand(
  argv: list[str], commands: Mapping[str, command_types.Command]
) -> list[str]:
  """Replaces a command at the start of a command line by flags.

  An argument directly after the command becomes the value of the flag
  `Command.positional`. `coke help predict` is the same as
  `coke predict --help`.

  Args:
    argv: the program and its arguments, as typed.
    commands: the commands by name.

  Returns:
    The program and its arguments. A command line without a command is returned
    unchanged.

  Raises:
    flags.FlagError: there is no such command, or --mode is also given.
  """
  program, *arguments = argv
  if not arguments or arguments[0].startswith('-'):
    return argv
  word, *rest = arguments
  if word == HELP:
    if rest and not rest[0].startswith('-'):
      return expand([program, rest[0], '--help'], commands)
    return [program, '--help', *rest]
  if word not in commands:
    near = vocabulary.closest(word, commands, 2)
    hint = (
      f'did you mean {" or ".join(near)}?' if near else 'expected a command'
    )
    raise flags.FlagError(
      f'{word}: no such command: {hint}\nPass --help to see the commands.'
    )
  if any(map(_MODE.match, rest)):
    raise flags.FlagError(f'--mode cannot be used with the command {word}')
  expanded = [program, f'--mode={word}']
  flag = commands[word].positional
  # A single dash is standard input.
  if flag and rest and (rest[0] == '-' or not rest[0].startswith('-')):
    expanded.append(f'--{flag}={rest.pop(0)}')
  return [*expanded, *rest]


def unexpected(
  arguments: Sequence[str], mode: str, command: command_types.Command
) -> str:
  """Returns the error message for arguments that are not flags.

  Args:
    arguments: the arguments.
    mode: the name of the command.
    command: the command.
  """
  message = f'unexpected arguments: {" ".join(arguments)}'
  if not command.positional:
    return message
  name = command.positional
  return (
    f'{message}: expected --{name}={name.upper()}, or {name.upper()} directly '
    f'after the command, as in coke {mode} {name.upper()}'
  )


def mode(argv: list[str]) -> str | None:
  """Returns the value of --mode in a command line, or None."""
  found = None
  for argument, following in zip(argv, [*argv[1:], ''], strict=True):
    if match := _MODE.match(argument):
      found = following if match[1] is None else match[1]
  return found
