r"""Trains, evaluates and queries CoKE, a model of knowledge graphs.

Train on a small graph that ships with coke_jax, into runs/countries:
  coke train --config=countries

Train on your own triples for ten minutes, into runs/facts:
  coke train facts.csv --minutes=10

Train with other settings (the same command continues an interrupted run):
  coke train --config=fb15k237 --workdir=runs/mine \
    --config.train.num_epochs=50 --config.model.num_layers=6

Use the trained model:
  coke evaluate runs/mine --split=valid
  coke predict runs/mine --input=questions.tsv

The command can also be the value of --mode, as in coke --mode=evaluate. If the
script `coke` is not installed, use `python -m coke_jax.main`.
"""

import sys
from collections.abc import Sequence

from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

from coke_jax import config as config_lib
from coke_jax import errors, hosts
from coke_jax.cli import arguments, commands, help_text, streams, subcommands
from coke_jax.cli import flags as flags_lib
from coke_jax.training import interruption

FLAGS = flags.FLAGS

CONFIG = config_flags.DEFINE_config_file(
  'config',
  None,
  'Name of a built-in config, or a Python file with a function get_config(). '
  'Default: the settings of the run in --workdir.',
)
WORKDIR = flags.DEFINE_string(
  'workdir',
  '',
  'Work folder of the run: settings, checkpoints, metrics.jsonl and '
  'results.json. Default: runs/<name of the config or of --data>.',
)
MODE = flags.DEFINE_enum(
  'mode', 'train', list(commands.COMMANDS), commands.mode_help()
)
flags_lib.define()


def main(argv: Sequence[str]) -> int | None:
  """Runs the command of --mode.

  An error that the user can cause is printed without a traceback.
  """
  command = commands.COMMANDS[MODE.value]
  if len(argv) > 1:
    text = subcommands.unexpected(argv[1:], MODE.value, command)
    return arguments.fail(text)
  if not FLAGS['verbosity'].present:  # Orbax logs every checkpoint.
    absl_logging.set_verbosity(absl_logging.WARNING)
  try:
    keywords = flags_lib.values(MODE.value)
    config, workdir = CONFIG.value, WORKDIR.value
    if config is None and command.needs_config:
      expected = 'config' in command.common
      raise config_lib.ConfigError(
        arguments.missing_config(workdir, '--config=<name or file>' * expected)
      )
    if config is not None and not workdir and not keywords.get('data'):
      workdir = arguments.default_workdir(
        config_flags.get_config_filename(FLAGS['config'])
      )
    with interruption.Watch() as watch, watch.at_once():
      command.function(config, workdir, **keywords)
  except BrokenPipeError:
    raise  # Handled in `entry_point`.
  except (errors.CokeError, OSError) as error:
    status = arguments.fail(str(error))
    if hosts.num_processes() > 1:  # JAX would wait for lost processes.
      interruption.leave(status)
    return status
  except interruption.Interruption as stop:
    print(stop, file=sys.stderr)
    interruption.leave(stop.exit_status)
  return None


def entry_point() -> None:
  """Runs the console script `coke`."""
  # Change sys.argv in place, because the config flag reads overrides from it.
  streams.prepare()
  with arguments.flushed_output():
    try:
      typed = subcommands.expand(sys.argv, commands.COMMANDS)
    except flags_lib.FlagError as error:
      sys.exit(arguments.fail(str(error)))
    sys.argv[:] = arguments.prepare(typed)
    # Without arguments, `coke` prints its help, too.
    asked = sys.argv if sys.argv[1:] else [*sys.argv, '--help']
    text = help_text.requested(asked, __doc__)
    if text is not None:
      print(text)
      return
    app.run(main, flags_parser=arguments.parse_flags)


if __name__ == '__main__':
  entry_point()
