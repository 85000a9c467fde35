"""Readable names of entities and relations for the legends of pictures.

If two labels have the same short form, both labels get a longer form. If no
form is unique, the name is the label itself.
"""

import collections
import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence

from coke_jax.data import paths, text_files, user_paths
from coke_jax.data import vocabulary as vocabulary_lib

_INVERSE_MARKER = paths.PathFormat.inverse_marker


@dataclasses.dataclass(frozen=True)
class Names:
  """The names of the entities and relations of a vocabulary.

  Attributes:
    entities: a dict from the label of each entity to its name.
    relations: a dict from the label of each relation to its name.
  """

  entities: dict[str, str]
  relations: dict[str, str]


def make_names(
  vocabulary: vocabulary_lib.Vocabulary, given: Mapping[str, str]
) -> Names:
  """Gives every label a name.

  No two entities have the same name, and no two relations have the same name.

  Args:
    vocabulary: the labels.
    given: a dict from label to name, for some of the labels. The default name
      of an entity is its label. The default name of a relation is a readable
      form of its label.
  """
  return Names(
    entities=_distinct(
      vocabulary.entities,
      ((given.get(label, label),) for label in vocabulary.entities),
    ),
    relations=_distinct(
      vocabulary.relations,
      (
        (given[label],) if label in given else _relation_forms(label)
        for label in vocabulary.relations
      ),
    ),
  )


def read_names(path: str | os.PathLike[str]) -> dict[str, str]:
  """Reads a file with `label TAB name` on each line.

  Args:
    path: the file, plain or with the suffix .gz, .bz2 or .xz.

  Returns:
    A dict from label to name.

  Raises:
    text_files.DataError: the file or a line cannot be read, or a label has two
      names.
  """
  names: dict[str, str] = {}
  lines = text_files.read_lines(user_paths.expand(path), allow_mark=True)
  for number, line in lines:
    fields = line.split('\t')
    if len(fields) != 2 or not all(fields):
      raise text_files.DataError(
        f'{path}:{number}: {text_files.show_line(line)}: expected 2 non-empty '
        'fields (label, name), separated by a tab, got '
        f'{text_files.count_fields(fields)}'
      )
    label, name = fields
    if names.setdefault(label, name) != name:
      raise text_files.DataError(
        f'{path}:{number}: {label!r} is named {name!r} here and '
        f'{names[label]!r} before: expected one name for each label'
      )
  return names


def _relation_forms(label: str) -> tuple[str, ...]:
  """Returns readable forms of a relation, the shortest first.

  A Freebase relation is written `/domain/type/property`. Two such relations are
  joined by a dot if there is an unnamed node between them. Examples:

      /film/film/directed_by
        film: directed by
      /award/award_winner/awards_won./award/award_honor/honored_for
        award winner: awards won, honored for
  """
  inverse = label.startswith(_INVERSE_MARKER)
  bare = label.removeprefix(_INVERSE_MARKER)
  parts = [part.strip('/').split('/') for part in bare.split('./')]
  if bare.startswith('/') and all(len(part) == 3 for part in parts):
    steps = ', '.join(part[2] for part in parts)
    domain, kind, _ = parts[0]
    forms = [f'{kind}: {steps}', f'{domain}, {kind}: {steps}']
  else:
    forms = [bare]
  suffix = ' (inverse)' if inverse else ''
  return tuple(' '.join(form.split('_')).strip() + suffix for form in forms)


def _distinct(
  labels: Sequence[str], forms: Iterable[Sequence[str]]
) -> dict[str, str]:
  """Returns the name of each label: the first of its forms that is unique."""
  wanted = {
    label: [*some, f'{some[0]} ({label})', label]
    for label, some in zip(labels, forms, strict=True)
  }
  names: dict[str, str] = {}
  taken: set[str] = set()
  while wanted:
    counts = collections.Counter(some[0] for some in wanted.values())
    unique = {
      label
      for label, some in wanted.items()
      if len(some) == 1 or (counts[some[0]] == 1 and some[0] not in taken)
    }
    for label in unique:
      names[label] = wanted.pop(label)[0]
    taken.update(counts)
    wanted = {label: some[1:] for label, some in wanted.items()}
  return names
