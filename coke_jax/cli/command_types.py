"""The description of a command."""

from collections.abc import Callable
from typing import Any, NamedTuple


class Command(NamedTuple):
  """The function and the help of a command.

  Attributes:
    function: called as `function(config, workdir, **flags)`. The arguments are
      the settings, the path of the work folder, and the values of the flags
      that the command uses.
    help: the text for `--help`. Its first sentence is shown in the list of
      commands.
    examples: command lines for `--help`.
    needs_config: whether --config or an existing --workdir must provide the
      settings. If false, `config` can be None and `workdir` can be empty.
      Default: True.
    positional: the flag that a word directly after the command sets. Default:
      `workdir`, so that `coke predict runs/x` sets --workdir. Empty if there is
      no such flag.
    common: which of the flags --config and --workdir are listed in the help.
      Default: --workdir.
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
