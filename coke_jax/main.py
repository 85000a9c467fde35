r"""CoKE: train a model of a knowledge graph, measure it, ask it, draw it.

  python -m coke_jax.main --config=configs/countries.py
  python -m coke_jax.main --config=configs/fb15k237.py --workdir=runs/mine \
    --config.train.num_epochs=50 --config.model.num_layers=6
  python -m coke_jax.main --mode=evaluate --workdir=runs/mine --split=valid
  python -m coke_jax.main --mode=predict --workdir=runs/mine --input=asked.tsv

Every field of a config can be set with --config.<group>.<field>=<value>; the
fields are explained in coke_jax/config.py. Training again in the same work
folder continues there.
"""

import sys
from collections.abc import Sequence

import ml_collections
from absl import app, flags
from absl import logging as absl_logging
from ml_collections import config_flags

from coke_jax import errors
from coke_jax.cli import arguments, commands
from coke_jax.cli import flags as flags_lib
from coke_jax.storage import workdir
from coke_jax.training import interruption

FLAGS = flags.FLAGS

CONFIG = config_flags.DEFINE_config_file(
  'config',
  None,
  'A file with get_config(), such as those in configs/. '
  'Not needed when --workdir holds a run: its own settings are used.',
)


WORKDIR = flags.DEFINE_string(
  'workdir',
  '',
  'The folder of the run: settings, checkpoints, metrics.jsonl, results.json. '
  'Default: runs/<name of the config file>.',
)


MODE = flags.DEFINE_enum(
  'mode',
  'train',
  list(commands.MODES),
  'train: train (or continue), then rank the test split with the best '
  'checkpoint. evaluate: rank a split with the best checkpoint of --workdir. '
  'predict: answer the questions of --input. embed: write the embeddings of '
  'the sequences of --input. export: write the model to --output, as '
  'safetensors and JSON. plot: draw training curves, ranks and maps into '
  '--output. sample-paths: write paths sampled from a graph of '
  'triples, as files, into --workdir.',
)


flags_lib.define_options()


def main(argv: Sequence[str]) -> int | None:
  """Runs what the flags ask for; errors of the user's end without traceback."""
  if len(argv) > 1:
    raise app.UsageError(f'unexpected arguments: {" ".join(argv[1:])}')
  if not FLAGS['verbosity'].present:  # the libraries below log every step
    absl_logging.set_verbosity(absl_logging.WARNING)
  if wrong := flags_lib.not_of_mode(MODE.value):
    return arguments.fail(wrong)
  try:
    config: ml_collections.ConfigDict | None = CONFIG.value
  except workdir.WorkdirError as error:  # settings of an earlier run
    return arguments.fail(str(error))
  if config is None:
    return arguments.fail(
      f'{WORKDIR.value}: no config.json: expected a folder that training '
      'wrote, or --config=<file>'
      if WORKDIR.value
      else 'expected --config=<file>, or --workdir=<folder of an earlier run>'
    )
  folder = WORKDIR.value or arguments.default_workdir(
    config_flags.get_config_filename(FLAGS['config'])
  )
  try:
    with interruption.Watch() as watch, watch.at_once():
      commands.MODES[MODE.value](config, folder, flags_lib.options())
  except BrokenPipeError:
    raise  # see `entry_point`
  except (errors.CokeError, OSError) as error:
    return arguments.fail(str(error))
  except interruption.Interruption as stop:
    print(stop, file=sys.stderr)
    interruption.leave(stop.exit_status)
  return None


def entry_point() -> None:
  """The console script `coke`."""
  # In place, because the config flag looks for its overrides there.
  sys.argv[:] = arguments.prepare(sys.argv)
  with arguments.quiet_without_reader():
    if arguments.wants_help(sys.argv):
      print(arguments.help_text(__doc__))
      return
    app.run(main, flags_parser=arguments.parse_flags)


if __name__ == '__main__':
  entry_point()
