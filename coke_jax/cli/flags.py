"""The command-line flags of the commands, in one table.

`--config`, `--workdir` and `--mode` are not in this table. `coke_jax.main`
defines them.
"""

from typing import Any

from absl import flags

from coke_jax import errors
from coke_jax.cli import (
  flag_types,
  host_flags,
  model_flags,
  preparation_flags,
  serve_flags,
)
from coke_jax.data import user_paths

# This file name stands for standard input or standard output.
STANDARD = '-'


class FlagError(errors.CokeError, ValueError):
  """An unknown or second command, or a flag that the command does not use."""


Flag = flag_types.Flag

TABLE = (
  Flag(
    'split',
    ('train', 'evaluate', 'calibrate', 'report'),
    'test',
    '',
    ('train', 'valid', 'test'),
    notes={
      ('train', 'evaluate'): 'Split to evaluate with the best checkpoint.',
      ('calibrate',): 'Split for the table of reliability, valid or test.',
      ('report',): 'Split that is ranked for the tables of metrics. The '
      'report also contains the test metrics of results.json.',
    },
    defaults={'report': 'valid'},
  ),
  Flag(
    'data',
    ('train',),
    '',
    'Triples to train on, instead of the files of config.data: a file or '
    'folder that "coke prepare" accepts, or the name of a data set. A single '
    'file is split into train, valid and test. Without --config, the settings '
    'are chosen by the size of the graph and --minutes.',
    is_path=True,
  ),
  Flag(
    'minutes',
    ('train',),
    0.0,
    'Time for a new run, in minutes. The program times some training steps. '
    'Then it chooses the number of epochs and the number of models that fit '
    'this time. 0: the numbers in the settings are used.',
  ),
  Flag(
    'input',
    ('predict', 'relations', 'explain', 'embed', 'prepare'),
    STANDARD,
    'File to read, which may be compressed (.gz, .bz2, .xz).',
    notes={
      ('predict',): 'One question per line, such as "France TAB borders TAB ?" '
      'or "? TAB borders TAB Spain". The default "-" is standard input.',
      ('relations',): 'One question per line, such as "Kenya TAB ? TAB '
      'Africa". The default "-" is standard input.',
      ('explain',): 'One triple per line. The default "-" is standard input.',
      ('embed',): 'One sequence per line: a triple or a path, in which the '
      'head or the tail may be "?". The default "-" is standard input.',
      ('prepare',): 'It can also be a folder with files for train, valid and '
      'test, or the name of a data set. The default "-" is standard input, '
      'which needs --input-format.',
    },
    is_path=True,
  ),
  Flag(
    'delimiter',
    ('predict', 'relations', 'explain', 'embed'),
    r'\t',
    r'Text between two columns of --input, with \t for a tab. The training '
    'data may have another delimiter.',
  ),
  Flag(
    'output',
    (
      'predict',
      'discover',
      'audit',
      'similar',
      'relations',
      'explain',
      'calibrate',
      'embed',
      'export',
      'plot',
      'report',
      'prepare',
    ),
    STANDARD,
    '',
    notes={
      (
        'predict',
        'discover',
        'audit',
        'similar',
        'relations',
        'explain',
      ): 'File to write. The default "-" is standard output.',
      ('calibrate',): 'Folder for the reliability diagram. By default, no '
      'diagram is drawn.',
      ('embed',): ".npz file, or folder for TensorBoard's projector.",
      ('export',): 'New folder for the files.',
      ('plot',): 'Folder for the pictures.',
      ('report',): 'HTML file to write.',
      ('prepare',): 'New folder for train.txt, valid.txt and test.txt. '
      'By default, no triples are written.',
    },
    is_path=True,
  ),
  Flag(
    'format',
    ('predict', 'discover', 'audit', 'similar', 'relations', 'explain'),
    'tsv',
    'tsv: one line per answer, below a header.',
    ('tsv', 'jsonl'),
    notes={
      ('predict',): 'jsonl: one JSON object per question.',
      (
        'discover',
        'audit',
        'similar',
        'relations',
        'explain',
      ): 'jsonl: one JSON object per answer.',
    },
  ),
  Flag(
    'top',
    ('predict', 'discover', 'audit', 'similar', 'relations', 'explain'),
    10,
    '',
    notes={
      ('predict', 'relations'): 'Maximum number of answers per question.',
      ('discover', 'audit'): 'Maximum number of facts.',
      ('similar',): 'Maximum number of entities.',
      ('explain',): 'Maximum number of paths per fact.',
    },
  ),
  Flag(
    'on_bad_line',
    ('predict', 'relations', 'explain', 'embed', 'prepare'),
    'stop',
    'Action for an input line that is not valid. stop: end with an error.',
    ('stop', 'skip'),
    notes={
      (
        'predict',
        'relations',
        'explain',
        'embed',
      ): 'skip: report the line and continue with the next.',
      ('prepare',): 'skip: count the line and continue with the next.',
    },
  ),
  Flag(
    'show',
    ('configs',),
    '',
    'Name of a built-in config. Its file is printed, so that a changed copy '
    'can be used as --config=FILE.',
  ),
  Flag(
    'shell',
    ('completion',),
    'bash',
    'Shell for which the script is printed. bash: source <(coke completion '
    'bash). zsh: source <(coke completion zsh). fish: coke completion fish | '
    'source.',
    ('bash', 'zsh', 'fish'),
  ),
  *host_flags.TABLE,
  *model_flags.TABLE,
  *preparation_flags.TABLE,
  *serve_flags.TABLE,
)

NAMES = tuple(flag.name for flag in TABLE)


def unescape(text: str) -> str:
  r"""Replaces \t by a tab, which is difficult to type in most shells."""
  return text.replace(r'\t', '\t')


def define() -> None:
  """Defines every flag of `TABLE`."""
  for flag in TABLE:
    text = f'{flag.full_help} Used by: {", ".join(flag.modes)}.'
    default: Any = flag.default
    if flag.choices:
      flags.DEFINE_enum(flag.name, default, flag.choices, text)
    elif isinstance(default, bool):
      flags.DEFINE_boolean(flag.name, default, text)
    elif isinstance(default, int):
      flags.DEFINE_integer(flag.name, default, text)
    elif isinstance(default, float):
      flags.DEFINE_float(flag.name, default, text)
    else:
      flags.DEFINE_string(flag.name, default, text)


def values(mode: str) -> dict[str, Any]:
  """Returns the name and value of each flag that a mode uses.

  At the start of a path, `~` is replaced by the home folder.

  Raises:
    FlagError: the command line has a flag that the mode does not use.
    errors.PathError: a path starts with `~`, and the home folder is unknown.
  """
  unused = [
    f'{flag.typed} cannot be used with {mode}: expected '
    f'{" or ".join(flag.modes)}'
    for flag in TABLE
    if flags.FLAGS[flag.name].present and mode not in flag.modes
  ]
  if unused:
    raise FlagError('\n'.join(unused))
  found = {}
  for flag in TABLE:
    if mode in flag.modes:
      given = flags.FLAGS[flag.name]
      value: Any = given.value if given.present else flag.default_for(mode)
      if flag.is_path and value.startswith('~'):
        value = str(user_paths.expand(value))
      found[flag.name] = value
  return found
