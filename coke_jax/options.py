"""What a mode is told on the command line, besides settings and work folder."""

import dataclasses
from typing import Any

FORMATS = ('tsv', 'jsonl')
ON_BAD_LINE = ('stop', 'skip')
STANDARD = '-'  # standard input or output, as a file name


def _option(default: Any, text: str, choices: tuple[str, ...] = ()) -> Any:
  return dataclasses.field(
    default=default, metadata={'help': text, 'choices': choices}
  )


@dataclasses.dataclass(frozen=True)
class Options:
  """Flags of the same names; what each does is said beside its default."""

  split: str = _option('test', 'What --mode=evaluate ranks.', ('valid', 'test'))
  input: str = _option(
    STANDARD,
    'predict, embed: a file with a question or a sequence a line, such as '
    '"France TAB borders TAB ?"; - is standard input.',
  )
  output: str = _option(
    STANDARD,
    'predict: the file of answers; - is standard output. embed: an .npz file, '
    "or a folder for TensorBoard's projector. export, plot: a folder.",
  )
  format: str = _option(
    'tsv',
    'predict: tsv, a line an answer; or jsonl, a JSON object a question.',
    FORMATS,
  )
  top: int = _option(10, 'predict: answers a question gets, at most.')
  new_only: bool = _option(
    False, 'predict: leave out answers that train, valid or test know already.'
  )
  exclude_own: bool = _option(
    False, 'predict: leave out the entity that the question names.'
  )
  type_matching: bool = _option(
    False,
    'predict: only entities that stand in the same place of the same relation '
    'in some fact.',
  )
  on_bad_line: str = _option(
    'stop',
    'predict, embed: whether a line that cannot be asked ends the program or '
    'is reported, left out and counted.',
    ON_BAD_LINE,
  )
  layer: int = _option(
    -1, 'embed: after how many blocks; 0 is the input, -1 the end.'
  )
  static: bool = _option(
    False,
    'embed: the embeddings of all entities and relations themselves, without '
    'any --input.',
  )

  entity: str = _option(
    '', 'plot: draw a map of this entity in all its training triples.'
  )
  relation: str = _option(
    '',
    'plot: likewise of this relation, or of two, with a comma between them.',
  )
  names: str = _option(
    '', 'plot: a file with "label TAB name" on each line, for legends.'
  )


DEFAULTS = Options()
