"""The description of a command-line flag."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Flag:
  """A command-line flag and the modes that use it.

  Attributes:
    name: the flag's name, written with underscores. The functions in
      `commands.COMMANDS` receive the flag as a keyword argument of this name.
      On the command line, dashes may be used instead of underscores.
    modes: the modes that use the flag. In any other mode, the flag raises an
      error.
    default: the default value. The flag has the type of this value.
    help: the text for `--help`.
    choices: the allowed values. Default: any value of the type.
  """

  name: str
  modes: tuple[str, ...]
  default: str | int | float | bool
  help: str
  choices: tuple[str, ...] = ()

  @property
  def typed(self) -> str:
    """The flag as written on the command line, such as `--new-only`."""
    return f'--{self.name.replace("_", "-")}'
