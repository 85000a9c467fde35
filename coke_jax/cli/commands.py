"""The commands that --mode selects.

To add a command, write a function in a module of this package and add an entry
to `COMMANDS`. For each flag that the function uses, add the mode to the flag's
entry in `flags.TABLE`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from coke_jax.cli import (
  data_commands,
  entity_commands,
  graph_commands,
  model_commands,
  train_command,
)


class Command(NamedTuple):
  """What a mode does.

  Attributes:
    function: called as `function(config, workdir, **flags)`. The arguments are
      the settings, the path of the work folder, and the values of the flags
      that the mode uses.
    help: the text for `--help`.
    needs_config: whether the settings must be given, by --config or by an
      existing --workdir. If not, the function is called with None as config
      and an empty work folder when they are missing. Default: True.
  """

  function: Callable[..., Any]
  help: str
  needs_config: bool = True


COMMANDS = {
  'train': Command(
    train_command.train,
    'Train in --workdir, or continue a training there. Then evaluate the best '
    'checkpoint on --split.',
    needs_config=False,
  ),
  'evaluate': Command(
    model_commands.evaluate,
    'Evaluate the best checkpoint of --workdir on --split.',
  ),
  'predict': Command(
    model_commands.predict,
    'Answer the questions of --input with the model of --workdir.',
  ),
  'discover': Command(
    graph_commands.discover,
    'Find the most plausible facts that are in no split.',
  ),
  'audit': Command(
    graph_commands.audit,
    'Find the known facts that the model considers least plausible.',
  ),
  'similar': Command(
    entity_commands.similar,
    'Find the entities whose embeddings are nearest to that of --entity.',
  ),
  'relations': Command(
    entity_commands.relations,
    'Predict the relations between the pairs of entities of --input.',
  ),
  'explain': Command(
    entity_commands.explain,
    'Find paths of known facts, and similar facts, that support the facts of '
    '--input.',
  ),
  'calibrate': Command(
    graph_commands.calibrate,
    'Fit probabilities that answers are correct to the valid split, and store '
    'them in --workdir.',
  ),
  'embed': Command(
    model_commands.embed,
    'Write the contextual embeddings of the sequences of --input to --output. '
    'With --static: write the static embeddings.',
  ),
  'export': Command(
    model_commands.export,
    'Write the model of --workdir to --output, as safetensors and JSON files.',
  ),
  'plot': Command(
    model_commands.plot,
    'Draw training curves, metrics and maps of embeddings, and write them to '
    '--output.',
  ),
  'prepare': Command(
    data_commands.prepare,
    'Read triples of any format from --input, divide them into train, valid '
    'and test in --output, and report what train gives away. Does not use '
    '--config and --workdir.',
    needs_config=False,
  ),
  'sample-paths': Command(
    data_commands.sample_paths,
    'Sample paths from a graph of triples and write them to files in '
    '--workdir.',
  ),
}


def mode_help() -> str:
  """Returns the help text of --mode, with one line per mode."""
  modes = [f'{mode}: {command.help}' for mode, command in COMMANDS.items()]
  return '\n'.join(['The command to run.', *modes])
