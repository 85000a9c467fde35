"""Finds the columns of head, relation, tail and weight by name or position."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from coke_jax.data import text_files, vocabulary
from coke_jax.data.formats import options as options_lib

# Usual names of the columns of head, relation and tail, in lower case. Columns
# with these names are found without an option.
FAMILIES = tuple(
  (head, relation, tail)
  for head, tail in (
    ('head', 'tail'),
    ('subject', 'object'),
    ('source', 'target'),
    ('from', 'to'),
    ('start', 'end'),
    ('h', 't'),
    ('s', 'o'),
    ('entity', 'value'),  # NELL
    ('item', 'value'),  # Wikidata
    ('node1', 'node2'),  # KGTK
    (':start_id', ':end_id'),  # Neo4j
  )
  for relation in (
    *('relation', 'predicate', 'property', 'rel', 'r', 'p', 'type', 'label'),
    *(':type', 'metaedge'),
  )
)
# A field in an error message is shortened to this length.
_SHOWN_CHARACTERS = 60


class Selection(NamedTuple):
  """The columns to read.

  Attributes:
    positions: the positions of head, relation and tail, counted from 0. If
      there is a weight, its position is the fourth.
    ignored: the names of all other columns.
    assumed: the names of the columns of head, relation and tail, if these
      columns were chosen only by their order. Otherwise empty.
  """

  positions: tuple[int, ...]
  ignored: tuple[str, ...]
  assumed: tuple[str, ...] = ()


def is_header(fields: Sequence[str], options: options_lib.Options) -> bool:
  """Returns whether the first row of a file contains the column names."""
  if options.header != 'auto':
    return options.header == 'yes'
  if options.columns or options.weight:
    named = filter(None, (*options.columns, options.weight))
    if not all(map(_is_position, named)):
      return True
  return usual(fields) is not None


def usual(names: Sequence[str]) -> list[int] | None:
  """Finds the columns with the usual names of head, relation and tail.

  Args:
    names: the name of each column.

  Returns:
    The positions of head, relation and tail. None unless the three names of
    some entry of FAMILIES occur exactly once in `names`.
  """
  lower = [str(name).strip().lower() for name in names]
  for family in FAMILIES:
    if all(lower.count(name) == 1 for name in family):
      return [lower.index(name) for name in family]
  return None


def by_name(
  names: Sequence[str], options: options_lib.Options, place: str
) -> Selection:
  """Finds the columns in a row of names.

  Args:
    names: the name of each column.
    options: the options. If `columns` is empty, the names must include those of
      an entry of FAMILIES, or there must be exactly three columns besides the
      weight. If all given columns are numbers, they are positions. But if each
      number is also a name, they are names.
    place: the place of the names, for error messages.

  Raises:
    text_files.DataError: a column does not exist, is ambiguous or is given
      twice, once by name and once by position.
  """
  names = [str(name) for name in names]
  given = [*options.columns, *filter(None, [options.weight])]
  by_number = all(map(_is_position, given)) and not set(given) <= set(names)
  known = list(map(str, range(1, len(names) + 1))) if by_number else names
  found = [_find(column, known, place) for column in given]
  if len(set(found)) < len(found):
    raise text_files.DataError(
      f'{place}: {", ".join(map(repr, given))} contain a column twice, by name '
      f'and by position: expected {len(given)} different columns of '
      f'{", ".join(map(repr, names))}'
    )
  triple = found[: len(options.columns)]
  weight = found[len(options.columns) :]
  family = usual(names)
  if not triple:
    triple = family or [
      position for position in range(len(names)) if position not in weight
    ]
    if len(triple) != 3:
      typed = names
      if len(set(names)) < len(names):  # A repeated name is ambiguous.
        typed = [str(number) for number in range(1, len(names) + 1)]
      raise text_files.DataError(
        f'{place}: the columns are {", ".join(map(repr, names))}: expected '
        'columns named head, relation and tail'
        f'{_choice([typed[position] for position in triple])}'
      )
  assumed = () if options.columns or family else triple
  return _selection([*triple, *weight], names)._replace(
    assumed=tuple(names[position] for position in assumed)
  )


def by_position(
  fields: Sequence[Any],
  options: options_lib.Options,
  place: str,
  *,
  may_be_header: bool = False,
) -> Selection:
  """Finds the columns by position, if the columns have no names.

  Args:
    fields: the first row.
    options: the options. If `columns` is empty, there must be exactly three
      columns besides the weight.
    place: the place of the first row, for error messages.
    may_be_header: whether the first row may contain the column names. Then an
      error message suggests these names. Default: False.

  Raises:
    text_files.DataError: there are too few or too many columns, or a column is
      given by name.
  """
  names = [str(number) for number in range(1, len(fields) + 1)]
  if not options.columns and len(names) - bool(options.weight) != 3:
    shown = ', '.join(repr(field)[:_SHOWN_CHARACTERS] for field in fields)
    expected = '4, including the weight' if options.weight else '3'
    hint = _choice([name for name in names if name != options.weight])
    if hint and may_be_header:
      hint += '. If this row contains the column names, use three of them'
    raise text_files.DataError(
      f'{place}: the first row has {len(names)} columns: {shown}: expected '
      f'{expected}{hint}'
    )
  for column in filter(None, (*options.columns, options.weight)):
    if column not in names:
      raise text_files.DataError(
        f'{place}: there is no column {column!r}: expected a position from 1 '
        f'to {len(fields)}, because the columns have no names'
      )
  return by_name(names, options, place)._replace(assumed=())


def _choice(columns: Sequence[str]) -> str:
  """Returns a sentence about the option that chooses columns, or ''.

  Args:
    columns: the names or positions of all columns except that of the weight.
  """
  chosen = list(columns[:3])
  if len(chosen) < 3:
    return ''
  return (
    '. To choose the columns of head, relation and tail, use for example coke '
    f'prepare with --columns={",".join(chosen)} (in Python: columns={chosen})'
  )


def _selection(positions: list[int], names: Sequence[str]) -> Selection:
  return Selection(
    tuple(positions),
    tuple(
      name for place, name in enumerate(names) if place not in set(positions)
    ),
  )


def _is_position(column: str) -> bool:
  return column.isascii() and column.isdecimal()


def _find(column: str, names: Sequence[str], place: str) -> int:
  """Returns the position of a column given by name or by position."""
  found = [position for position, name in enumerate(names) if name == column]
  if len(found) == 1:
    return found[0]
  if not found and _is_position(column) and 1 <= int(column) <= len(names):
    return int(column) - 1
  if found:
    raise text_files.DataError(
      f'{place}: more than one column {column!r}: expected positions from 1 to '
      f'{len(names)}, because the names are {", ".join(map(repr, names))}'
    )
  near = vocabulary.closest(column, names, 1)
  hint = f': did you mean {near[0]!r}?' if near else ''
  raise text_files.DataError(
    f'{place}: no column {column!r}{hint}: expected one of '
    f'{", ".join(map(repr, names))}'
  )
