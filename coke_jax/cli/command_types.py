"""The description of a command."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Command(NamedTuple):
  """What a mode does.

  Attributes:
    function: called as `function(config, workdir, **flags)`. The arguments are
      the settings, the path of the work folder, and the values of the flags
      that the mode uses.
    help: the text for `--help`. Its first sentence is shown in the list of
      commands.
    examples: command lines for `--help`.
    needs_config: whether the settings must be given, by --config or by an
      existing --workdir. If not, the function is called with None as config
      and an empty work folder when they are missing. Default: True.
    positional: the flag whose value can be written directly after the command,
      without the name of the flag. Default: --workdir. Empty: none.
    common: which of --config and --workdir are useful for the command and are
      listed in its help. Default: --workdir.
  """

  function: Callable[..., Any]
  help: str
  examples: tuple[str, ...]
  needs_config: bool = True
  positional: str = 'workdir'
  common: tuple[str, ...] = ('workdir',)

  @property
  def summary(self) -> str:
    """The first sentence of the help text."""
    return self.help.partition('. ')[0].removesuffix('.') + '.'
