"""Entities and relations in words, for the legends of pictures.

Every name belongs to one label: where a short form would fit two labels, both
get a longer one, in the end the label itself.
"""

import collections
import dataclasses
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence

from coke_jax.data import text_files
from coke_jax.data import vocabulary as vocabulary_lib

_INVERSE_MARKER = '**'  # of path files, see data.paths.PathFormat


@dataclasses.dataclass(frozen=True)
class Names:
  """What to call the entities and relations of a vocabulary.

  Attributes:
    entities: label -> name.
    relations: label -> name.
  """

  entities: dict[str, str]
  relations: dict[str, str]


def make_names(
  vocabulary: vocabulary_lib.Vocabulary, given: Mapping[str, str]
) -> Names:
  """Names of all labels, all different among entities and among relations.

  Args:
    vocabulary: the labels.
    given: label -> name, for as many labels as there are names; the rest are
      named by their labels.
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
  """Label -> name, from a file with `label TAB name` on each line.

  Args:
    path: plain, or compressed as its suffix says: .gz, .bz2 or .xz.

  Raises:
    text_files.DataError: a line has another form, or a label has two names.
  """
  names: dict[str, str] = {}
  for number, line in text_files.read_lines(pathlib.Path(path).expanduser()):
    fields = line.split('\t')
    if len(fields) != 2 or not all(fields):
      raise text_files.DataError(
        f'{path}:{number}: {text_files.show_line(line)}: expected a label, a '
        f'tab and a name, got {text_files.count_fields(fields)} fields'
      )
    label, name = fields
    if names.setdefault(label, name) != name:
      raise text_files.DataError(
        f'{path}:{number}: {label!r} is {name!r} here and {names[label]!r} '
        'further up: expected one name for each label'
      )
  return names


def _relation_forms(label: str) -> tuple[str, ...]:
  """Readable forms of a relation, the shortest first.

  A Freebase relation is `/domain/type/property`, or two of these with a dot
  between them when it leads through an unnamed node:

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
  """Label -> the first of its forms that no other label wants."""
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
