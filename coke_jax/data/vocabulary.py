"""The vocabulary: labels and token ids, [entities | relations | MASK, PAD].

Entities come first, so that the output layer is a slice of the element
embedding. Labels are sorted, so that the same files always give the same ids.
"""

import dataclasses
import difflib
import functools
from collections.abc import Iterable

import numpy as np

from coke_jax.data import text_files

NO_RELATION = -1  # pads the relations of paths, on the right

_MAX_COMPARED = 100_000  # labels compared in the search for the closest ones


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """The labels of a graph, in the order of their ids.

  Attributes:
    entities: entity labels; the id of an entity is its index here.
    relations: relation labels; the *index* of a relation is its index here, and
      its *token id* is `num_entities` + index.
  """

  entities: tuple[str, ...]
  relations: tuple[str, ...]

  @property
  def num_entities(self) -> int:
    """V; entities have the token ids 0 .. V - 1."""
    return len(self.entities)

  @property
  def num_relations(self) -> int:
    """R; relations have the token ids V .. V + R - 1."""
    return len(self.relations)

  @property
  def mask_id(self) -> int:
    """The token id of MASK, in place of the entity to predict."""
    return self.num_entities + self.num_relations

  @property
  def pad_id(self) -> int:
    """The token id of PAD, which pads rows on the right."""
    return self.mask_id + 1

  @property
  def num_tokens(self) -> int:
    """The number of token ids: the rows of the element embedding."""
    return self.pad_id + 1

  @property
  def token_labels(self) -> tuple[str, ...]:
    """The label of each token id, with `[MASK]` and `[PAD]` at the end."""
    return (*self.entities, *self.relations, '[MASK]', '[PAD]')

  @functools.cached_property
  def entity_ids(self) -> dict[str, int]:
    """A dictionary from entity label to id."""
    return {label: index for index, label in enumerate(self.entities)}

  @functools.cached_property
  def relation_ids(self) -> dict[str, int]:
    """A dictionary from relation label to relation index."""
    return {label: index for index, label in enumerate(self.relations)}

  def entity_id(self, label: str, *, hints: bool = True) -> int:
    """Returns the id of an entity.

    Args:
      label: the entity label.
      hints: whether the error names the closest known labels, which takes time
        if the vocabulary is large. Default: True.

    Raises:
      KeyError: the label is unknown.
    """
    return _look_up(label, self.entity_ids, 'entity', hints)

  def relation_id(self, label: str, *, hints: bool = True) -> int:
    """Returns the index of a relation among the relations.

    Args:
      label: the relation label.
      hints: as in `entity_id`.

    Raises:
      KeyError: the label is unknown.
    """
    return _look_up(label, self.relation_ids, 'relation', hints)


def sort_labels(
  index: text_files.LabelIndex,
) -> tuple[tuple[str, ...], np.ndarray]:
  """Sorts labels by code point.

  Args:
    index: the labels in the order of first appearance.

  Returns:
    The sorted labels, and int32 [labels]: the sorted position of each label, in
    the order of first appearance.
  """
  labels = list(index)
  order = sorted(range(len(labels)), key=labels.__getitem__)
  places = np.empty(len(labels), dtype=np.int32)
  places[order] = np.arange(len(labels), dtype=np.int32)
  return tuple(labels[i] for i in order), places


def closest(label: str, known: Iterable[str], count: int = 3) -> list[str]:
  """Returns the known labels most similar to `label`, best first.

  Case is ignored. Of more than 100,000 labels, only those with the same first
  two or last four characters are compared.

  Args:
    label: the unknown label.
    known: the known labels.
    count: the most labels to return. Default: 3.
  """
  wanted = label.lower()
  lowered: dict[str, str] = {}
  for name in known:
    lowered.setdefault(name.lower(), name)
  compared = list(lowered)
  if len(compared) > _MAX_COMPARED:
    compared = [
      name
      for name in compared
      if name[:2] == wanted[:2] or name[-4:] == wanted[-4:]
    ][:_MAX_COMPARED]
  matches = difflib.get_close_matches(wanted, compared, n=count)
  return [lowered[match] for match in matches]


def _look_up(label: str, ids: dict[str, int], kind: str, hints: bool) -> int:
  if label in ids:
    return ids[label]
  near = closest(label, ids) if hints else []
  hint = f': did you mean {" or ".join(map(repr, near))}?' if near else ''
  raise KeyError(f'unknown {kind} {text_files.show_line(label)}{hint}')
