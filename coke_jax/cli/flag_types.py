"""The description of a command-line flag."""

import dataclasses
from collections.abc import Mapping


@dataclasses.dataclass(frozen=True)
class Flag:
  """A command-line flag, and the modes that use it.

  A mode is the name of a command.

  Attributes:
    name: the flag's name, written with underscores. The functions in
      `commands.COMMANDS` receive the flag as a keyword argument of this name.
      On the command line, dashes may be used instead of underscores.
    modes: the modes that use the flag. In other modes, the flag raises an
      error.
    default: the default value. The flag has the type of this value.
    help: the text for `--help` that is true for all modes. It may be empty.
    choices: the allowed values. Default: any value of the type.
    notes: further texts for `--help`. The key of a text is a tuple of the modes
      for which the text is true.
    defaults: the default values of some modes. All other modes use `default`.
    is_path: whether the value can be the path of a file or folder.
  """

  name: str
  modes: tuple[str, ...]
  default: str | int | float | bool
  help: str
  choices: tuple[str, ...] = ()
  notes: Mapping[tuple[str, ...], str] = dataclasses.field(default_factory=dict)
  defaults: Mapping[str, str] = dataclasses.field(default_factory=dict)
  is_path: bool = False

  @property
  def typed(self) -> str:
    """The flag as written on the command line, such as `--new-only`."""
    return f'--{self.name.replace("_", "-")}'

  @property
  def full_help(self) -> str:
    """The help text with the notes of all modes."""
    notes = [
      f'{", ".join(modes)}: {text}' for modes, text in self.notes.items()
    ]
    notes += [
      f'Default of {mode}: {value}.' for mode, value in self.defaults.items()
    ]
    return ' '.join(filter(None, [self.help, *notes]))

  def default_for(self, mode: str) -> str | int | float | bool:
    """Returns the default value for one mode."""
    return self.defaults.get(mode, self.default)

  def help_for(self, mode: str) -> str:
    """Returns the help text for one mode."""
    notes = [text for modes, text in self.notes.items() if mode in modes]
    return ' '.join(filter(None, [self.help, *notes]))
