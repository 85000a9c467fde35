"""The commands that --mode selects.

To add a command, write its function in a module of this package, add an entry
to `COMMANDS`, and add the mode to the flags it uses in `flags.TABLE`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from coke_jax.cli import data_commands, model_commands
from coke_jax.training import run


class Command(NamedTuple):
  """What a mode does.

  Attributes:
    function: called as `function(config, workdir, **flags)`, with the settings,
      the path of the work folder, and the flags that the mode uses.
    help: the text for `--help`.
  """

  function: Callable[..., Any]
  help: str


COMMANDS = {
  'train': Command(
    run.train_and_evaluate,
    'Train in --workdir, or continue there, then rank --split with the best '
    'checkpoint.',
  ),
  'evaluate': Command(
    model_commands.evaluate,
    'Rank --split with the best checkpoint of --workdir.',
  ),
  'predict': Command(
    model_commands.predict,
    'Answer the questions of --input with the model of --workdir.',
  ),
  'embed': Command(
    model_commands.embed,
    'Write the contextual embeddings of the sequences of --input, or with '
    '--static the static embeddings, to --output.',
  ),
  'export': Command(
    model_commands.export,
    'Write the model of --workdir to --output, as safetensors and JSON files.',
  ),
  'plot': Command(
    model_commands.plot,
    'Draw training curves, ranks and maps of embeddings into --output.',
  ),
  'sample-paths': Command(
    data_commands.sample_paths,
    'Sample paths from a graph of triples and write them as files to '
    '--workdir.',
  ),
}


def mode_help() -> str:
  """Returns the help text of --mode, with one line per mode."""
  modes = [f'{mode}: {command.help}' for mode, command in COMMANDS.items()]
  return '\n'.join(['What to do.', *modes])
