"""Labels to ids and back: [entities | relations | MASK, PAD].

Entities come first, so that the output layer is a slice of the element
embedding. Labels are sorted, so that the same files always give the same ids.
"""

import dataclasses
import difflib
import functools
from collections.abc import Iterable

import numpy as np

from coke_jax.data import text_files

NO_RELATION = -1  # fills a path's relations to the width of the longest path

_MOST_COMPARED = 100_000  # labels, when the closest ones are looked for


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """The labels of a graph, in the order of their ids.

  Attributes:
    entities: entity labels; the id of an entity is its place here.
    relations: relation labels; the *index* of a relation is its place here and
      its *token id* is `num_entities` more.
  """

  entities: tuple[str, ...]
  relations: tuple[str, ...]

  @property
  def num_entities(self) -> int:
    """Entities have the token ids 0 .. num_entities - 1."""
    return len(self.entities)

  @property
  def num_relations(self) -> int:
    """Relations have the token ids that follow the entities'."""
    return len(self.relations)

  @property
  def mask_id(self) -> int:
    """The token that stands for the entity to be predicted."""
    return self.num_entities + self.num_relations

  @property
  def pad_id(self) -> int:
    """The token that fills a row to its fixed width, on the right."""
    return self.mask_id + 1

  @property
  def num_tokens(self) -> int:
    """Rows of the element embedding."""
    return self.pad_id + 1

  @property
  def token_labels(self) -> tuple[str, ...]:
    """The label of each token id; MASK and PAD in brackets."""
    return (*self.entities, *self.relations, '[MASK]', '[PAD]')

  @functools.cached_property
  def entity_ids(self) -> dict[str, int]:
    """Entity label -> id."""
    return {label: index for index, label in enumerate(self.entities)}

  @functools.cached_property
  def relation_ids(self) -> dict[str, int]:
    """Relation label -> index among the relations."""
    return {label: index for index, label in enumerate(self.relations)}

  def entity_id(self, label: str, *, hints: bool = True) -> int:
    """The id of an entity.

    Raises:
      KeyError: an unknown label, with the closest known ones if `hints`.
    """
    return _look_up(label, self.entity_ids, 'entity', hints)

  def relation_id(self, label: str, *, hints: bool = True) -> int:
    """The index of a relation among the relations.

    Raises:
      KeyError: an unknown label, with the closest known ones if `hints`.
    """
    return _look_up(label, self.relation_ids, 'relation', hints)


def sort_labels(
  index: text_files.LabelIndex,
) -> tuple[tuple[str, ...], np.ndarray]:
  """Sorts the labels met while reading.

  Returns:
    The labels in sorted order, and int32 [labels]: the sorted place of each
    label by its order of first appearance.
  """
  labels = list(index)
  order = sorted(range(len(labels)), key=labels.__getitem__)
  places = np.empty(len(labels), dtype=np.int32)
  places[order] = np.arange(len(labels), dtype=np.int32)
  return tuple(labels[i] for i in order), places


def closest(label: str, known: Iterable[str], count: int = 3) -> list[str]:
  """The known labels that look most like `label`, best first.

  Among very many, only those that begin and end alike are looked at.
  """
  wanted = label.lower()
  lowered: dict[str, str] = {}
  for name in known:
    lowered.setdefault(name.lower(), name)
  compared = list(lowered)
  if len(compared) > _MOST_COMPARED:
    compared = [
      name
      for name in compared
      if name[:2] == wanted[:2] or name[-4:] == wanted[-4:]
    ][:_MOST_COMPARED]
  matches = difflib.get_close_matches(wanted, compared, n=count)
  return [lowered[match] for match in matches]


def _look_up(label: str, ids: dict[str, int], kind: str, hints: bool) -> int:
  if label in ids:
    return ids[label]
  near = closest(label, ids) if hints else []
  hint = f': did you mean {" or ".join(map(repr, near))}?' if near else ''
  raise KeyError(f'unknown {kind} {text_files.show_line(label)}{hint}')
