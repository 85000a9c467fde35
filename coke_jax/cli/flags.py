"""The command-line flags of the commands, in one table.

`--config`, `--workdir` and `--mode` apply to every command and are defined in
`coke_jax.main`.
"""

from typing import Any

from absl import flags

from coke_jax import errors
from coke_jax.cli import flag_types, preparation_flags

STANDARD = '-'  # the file name of standard input and standard output
END = -1  # the value of --layer for the last layer


class FlagError(errors.CokeError, ValueError):
  """A flag was given that the selected mode does not use."""


Flag = flag_types.Flag

TABLE = (
  Flag(
    'split',
    ('train', 'evaluate', 'calibrate'),
    'test',
    'Split to evaluate with the best checkpoint. calibrate: split for the '
    'table of reliability, valid or test.',
    ('train', 'valid', 'test'),
  ),
  Flag(
    'data',
    ('train',),
    '',
    'Triples to train on, instead of the files of config.data: a file or '
    'folder that --mode=prepare accepts, or the name of a data set. A single '
    'file is split into train, valid and test. Without --config, the settings '
    'are chosen by the number of entities.',
  ),
  Flag(
    'minutes',
    ('train',),
    0.0,
    'Time for a new run, in minutes. The number of epochs and of models that '
    'are trained side by side is chosen for this time: the steps are timed '
    'first. 0: the settings of --config are used.',
  ),
  Flag(
    'input',
    ('predict', 'relations', 'explain', 'embed', 'prepare'),
    STANDARD,
    'File with one question per line, such as "France TAB borders TAB ?" or '
    '"? TAB borders TAB Spain". relations: lines such as "Kenya TAB ? TAB '
    'Africa". explain: triples. embed: lines may also be triples or paths '
    'without "?". prepare: a file of triples, a folder with files for train, '
    'valid and test, or the name of a data set. The file may be compressed '
    '(.gz, .bz2, .xz). -: standard input, except for prepare.',
  ),
  Flag(
    'delimiter',
    ('predict', 'relations', 'explain', 'embed'),
    r'\t',
    r'Text between two columns of --input, with \t for a tab. It does not '
    'depend on the files of the training data.',
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
      'prepare',
    ),
    STANDARD,
    'File or folder to write. predict, discover, audit, similar, relations, '
    'explain: a file, or - for standard output. calibrate: a folder for the '
    'reliability diagram. '
    "embed: an .npz file, or a folder for TensorBoard's projector. export: a "
    'new folder. plot: a folder. prepare: a new folder for train.txt, '
    'valid.txt and test.txt; without it, nothing is written.',
  ),
  Flag(
    'format',
    ('predict', 'discover', 'audit', 'similar', 'relations', 'explain'),
    'tsv',
    'tsv: one line per answer. jsonl: one JSON object per line, for a question '
    '(predict) or for an answer.',
    ('tsv', 'jsonl'),
  ),
  Flag(
    'top',
    ('predict', 'discover', 'audit', 'similar', 'relations', 'explain'),
    10,
    'Maximum number of answers per question. discover, audit: maximum number '
    'of facts. explain: maximum number of paths per fact.',
  ),
  Flag(
    'per_head',
    ('discover',),
    0,
    'Maximum number of new facts with the same head. 0: no limit.',
  ),
  Flag(
    'any_type',
    ('discover',),
    False,
    'Also try heads and tails that occur in no known fact with the relation, '
    'on the same side.',
  ),
  Flag(
    'splits',
    ('discover', 'audit'),
    'train,valid,test',
    'Splits, separated by commas. discover: their facts count as known, and '
    'those of train. audit: their facts are audited.',
  ),
  Flag(
    'new_only',
    ('predict', 'relations'),
    False,
    'Leave out known answers: those that complete a fact of the train, valid '
    'or test split.',
  ),
  Flag(
    'exclude_own',
    ('predict',),
    False,
    'Leave out the entity that the question contains.',
  ),
  Flag(
    'type_matching',
    ('predict', 'similar'),
    False,
    'Only give entities that occur in some known fact on the side of "?", with '
    'the relation next to "?". similar: only entities that occur with '
    '--relation on --side.',
  ),
  Flag(
    'side',
    ('similar',),
    'head',
    'Side of the entities in a sequence with --relation.',
    ('head', 'tail'),
  ),
  Flag(
    'on_bad_line',
    ('predict', 'relations', 'explain', 'embed', 'prepare'),
    'stop',
    'Action for an input line that is not valid. stop: end with an '
    'error. skip: report the line (prepare: count it) and continue with the '
    'next.',
    ('stop', 'skip'),
  ),
  Flag(
    'layer',
    ('embed',),
    END,
    'Write the hidden states after this many Transformer blocks. 0: the input '
    'embeddings. -1: the output of the last block.',
  ),
  Flag(
    'static',
    ('embed',),
    False,
    'Write the static embeddings of all entities and relations, which are the '
    'input of the Transformer. Does not read --input.',
  ),
  Flag(
    'entity',
    ('similar', 'plot'),
    '',
    'similar: the entity to compare with. plot: also draw a map of the '
    'contextual embeddings of this entity. The map has one point for each '
    'training triple that contains the entity.',
  ),
  Flag(
    'relation',
    ('discover', 'audit', 'similar', 'plot'),
    '',
    'discover, audit: only use the facts of this relation, or of several '
    'relations separated by commas. similar: compare contextual embeddings in '
    'sequences with this relation. plot: also draw a map of the contextual '
    'embeddings of this relation, or of two relations separated by a comma. '
    'The map has one point for each training triple with one of these '
    'relations.',
  ),
  Flag(
    'names',
    ('plot',),
    '',
    'File with "label TAB name" on each line. The names replace the labels in '
    'legends.',
  ),
  *preparation_flags.TABLE,
)

NAMES = tuple(flag.name for flag in TABLE)


def unescape(text: str) -> str:
  r"""Replaces \t by a tab, which is difficult to type in most shells."""
  return text.replace(r'\t', '\t')


def define() -> None:
  """Defines every flag of `TABLE`."""
  for flag in TABLE:
    text = f'{flag.help} Used by: {", ".join(flag.modes)}.'
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

  Raises:
    FlagError: a flag was given that the mode does not use.
  """
  unused = [
    f'{flag.typed} cannot be used with --mode={mode}: expected '
    f'--mode={" or ".join(flag.modes)}'
    for flag in TABLE
    if flags.FLAGS[flag.name].present and mode not in flag.modes
  ]
  if unused:
    raise FlagError('\n'.join(unused))
  return {
    flag.name: flags.FLAGS[flag.name].value
    for flag in TABLE
    if mode in flag.modes
  }
