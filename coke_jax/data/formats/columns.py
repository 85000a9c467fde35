"""Finds the columns of head, relation, tail and weight by name or position."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from coke_jax.data import text_files, vocabulary
from coke_jax.data.formats import options as options_lib

# Column names of head, relation and tail that are found without an option, in
# lower case.
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
_SHOWN_CHARACTERS = 60  # of each field in an error message
_OPTION = (
  'the columns of head, relation and tail with --columns (in Python columns)'
)


class Selection(NamedTuple):
  """The columns to read.

  Attributes:
    positions: the positions of head, relation, tail and, if there is one, the
      weight, counted from 0.
    ignored: the names of all other columns.
  """

  positions: tuple[int, ...]
  ignored: tuple[str, ...]


def is_header(fields: Sequence[str], options: options_lib.Options) -> bool:
  """Returns whether the first row of a file names its columns."""
  if options.header != 'auto':
    return options.header == 'yes'
  if options.columns or options.weight:
    named = filter(None, (*options.columns, options.weight))
    if not all(map(_is_position, named)):
      return True
  return _family(fields) is not None


def by_name(
  names: Sequence[str], options: options_lib.Options, place: str
) -> Selection:
  """Finds the columns in a row of names.

  Args:
    names: the name of each column.
    options: the options. If `columns` is empty, the names must include those of
      an entry of FAMILIES, or there must be exactly three columns besides the
      weight.
    place: the place of the names, for error messages.

  Raises:
    text_files.DataError: a column does not exist or is ambiguous.
  """
  names = [str(name) for name in names]
  weight = [_find(options.weight, names, place)] if options.weight else []
  triple = [_find(column, names, place) for column in options.columns]
  if not triple:
    triple = _family(names) or [
      position for position in range(len(names)) if position not in weight
    ]
    if len(triple) != 3:
      raise text_files.DataError(
        f'{place}: the columns are {", ".join(map(repr, names))}: expected '
        f'columns named head, relation and tail, or {_OPTION}, such as '
        f'--columns={",".join(names[:3])}'
      )
  return _selection([*triple, *weight], names)


def by_position(
  fields: Sequence[Any], options: options_lib.Options, place: str
) -> Selection:
  """Finds the columns of a file in which the columns have no names.

  Args:
    fields: the first row.
    options: the options. If `columns` is empty, there must be exactly three
      columns besides the weight.
    place: the place of the first row, for error messages.

  Raises:
    text_files.DataError: there are not enough columns, or a column is given by
      name.
  """
  names = [str(number) for number in range(1, len(fields) + 1)]
  if not options.columns and len(names) - bool(options.weight) != 3:
    shown = ', '.join(repr(field)[:_SHOWN_CHARACTERS] for field in fields)
    raise text_files.DataError(
      f'{place}: the first row has {len(names)} columns: {shown}: expected '
      f'{3 + bool(options.weight)}, or {_OPTION}, such as --columns=1,2,3, or '
      'three of these fields if they are the names of the columns'
    )
  for column in filter(None, (*options.columns, options.weight)):
    if column not in names:
      raise text_files.DataError(
        f'{place}: there is no column {column!r}: expected a position from 1 '
        f'to {len(fields)}, or the name of a column and a first line with names'
      )
  return by_name(names, options, place)


def _selection(positions: list[int], names: Sequence[str]) -> Selection:
  return Selection(
    tuple(positions),
    tuple(
      name for place, name in enumerate(names) if place not in set(positions)
    ),
  )


def _is_position(column: str) -> bool:
  return column.isascii() and column.isdecimal()


def _family(names: Sequence[str]) -> list[int] | None:
  """Returns the positions of the usual names of head, relation and tail."""
  lower = [str(name).strip().lower() for name in names]
  for family in FAMILIES:
    if all(lower.count(name) == 1 for name in family):
      return [lower.index(name) for name in family]
  return None


def _find(column: str, names: Sequence[str], place: str) -> int:
  """Returns the position of a column given by name or by position."""
  found = [position for position, name in enumerate(names) if name == column]
  if len(found) == 1:
    return found[0]
  if not found and _is_position(column) and 1 <= int(column) <= len(names):
    return int(column) - 1
  near = vocabulary.closest(column, names, 1)
  hint = f': did you mean {near[0]!r}?' if near and not found else ''
  raise text_files.DataError(
    f'{place}: {"no" if not found else "more than one"} column {column!r}'
    f'{hint}: expected one of {", ".join(map(repr, names))}'
  )
