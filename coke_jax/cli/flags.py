"""What a mode is told on the command line, besides settings and work folder."""

import dataclasses
from typing import Any

from absl import flags

FORMATS = ('tsv', 'jsonl')
ON_BAD_LINE = ('stop', 'skip')
STANDARD = '-'  # standard input or output, as a file name


def _option(
  modes: str, default: Any, text: str, choices: tuple[str, ...] = ()
) -> Any:
  """A field; the modes that look at it are in `modes`, with ', ' between."""
  return dataclasses.field(
    default=default,
    metadata={
      'modes': tuple(modes.split(', ')),
      'help': f'{modes}: {text}',
      'choices': choices,
    },
  )


@dataclasses.dataclass(frozen=True)
class Options:
  """Flags of the same names; what each does is said beside its default."""

  split: str = _option(
    'train, evaluate',
    'test',
    'what is ranked with the best checkpoint.',
    ('valid', 'test'),
  )
  input: str = _option(
    'predict, embed',
    STANDARD,
    'a file with a question or a sequence a line, such as '
    '"France TAB borders TAB ?"; - is standard input.',
  )
  output: str = _option(
    'predict, embed, export, plot',
    STANDARD,
    'of predict, the file of answers; - is standard output. Of embed, an .npz '
    "file, or a folder for TensorBoard's projector. Of the others, a folder.",
  )
  format: str = _option(
    'predict',
    'tsv',
    'tsv, a line an answer; or jsonl, a JSON object a question.',
    FORMATS,
  )
  top: int = _option('predict', 10, 'answers a question gets, at most.')
  new_only: bool = _option(
    'predict',
    False,
    'leave out answers that train, valid or test know already.',
  )
  exclude_own: bool = _option(
    'predict', False, 'leave out the entity that the question names.'
  )
  type_matching: bool = _option(
    'predict',
    False,
    'only entities that stand in the same place of the same relation '
    'in some fact.',
  )
  on_bad_line: str = _option(
    'predict, embed',
    'stop',
    'whether a line that cannot be asked ends the program or '
    'is reported, left out and counted.',
    ON_BAD_LINE,
  )
  layer: int = _option(
    'embed', -1, 'after how many blocks; 0 is the input, -1 the end.'
  )
  static: bool = _option(
    'embed',
    False,
    'the embeddings of all entities and relations themselves, without '
    'any --input.',
  )

  entity: str = _option(
    'plot', '', 'draw a map of this entity in all its training triples.'
  )
  relation: str = _option(
    'plot',
    '',
    'likewise a map of this relation, or of two, with a comma between them.',
  )
  names: str = _option(
    'plot', '', 'a file with "label TAB name" on each line, for legends.'
  )


DEFAULTS = Options()

NAMES = tuple(field.name for field in dataclasses.fields(Options))


def define_options() -> None:
  """Makes a flag of each field of `flags.Options`."""
  for field in dataclasses.fields(Options):
    text, choices = field.metadata['help'], field.metadata['choices']
    default: Any = field.default
    if choices:
      flags.DEFINE_enum(field.name, default, choices, text)
    elif isinstance(default, bool):
      flags.DEFINE_boolean(field.name, default, text)
    elif isinstance(default, int):
      flags.DEFINE_integer(field.name, default, text)
    else:
      flags.DEFINE_string(field.name, default, text)


def options() -> Options:
  """The values of these flags."""
  values: dict[str, Any] = {name: flags.FLAGS[name].value for name in NAMES}
  return Options(**values)


def not_of_mode(mode: str) -> str | None:
  """What is wrong if a flag was given that a mode does not look at."""
  wrong = []
  for field in dataclasses.fields(Options):
    modes = field.metadata['modes']
    if flags.FLAGS[field.name].present and mode not in modes:
      wrong.append(
        f'--{field.name.replace("_", "-")} is not a flag of --mode={mode}: '
        f'expected with {" or ".join(modes)} only'
      )
  return '\n'.join(wrong) or None
