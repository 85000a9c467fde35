"""The vocabulary: the labels of entities and relations, and the token ids.

Entities have the first token ids. Relations, MASK and PAD follow in this order.
So the embeddings of the entities are the first rows of the table of all
embeddings. The output layer uses these rows as its weights. Ids are assigned to
labels in sorted order. Therefore the ids do not depend on the order of the
lines in the files.
"""

import dataclasses
import difflib
import functools
from collections.abc import Iterable

import numpy as np

from coke_jax.data import text_files

# Pads the relations of short paths on the right. Also means "no inverse".
NO_RELATION = -1

_MAX_COMPARED = 100_000  # maximum number of labels that `closest` compares


@dataclasses.dataclass(frozen=True)
class Vocabulary:
  """The labels of a graph, in the order of their ids.

  Attributes:
    entities: entity labels. The position of a label is the entity's id.
    relations: relation labels. The position of a label is the relation's
      *index*. The relation's *token id* is `num_entities` + index.
  """

  entities: tuple[str, ...]
  relations: tuple[str, ...]

  @property
  def num_entities(self) -> int:
    """V, the number of entities. Their token ids are 0 .. V - 1."""
    return len(self.entities)

  @property
  def num_relations(self) -> int:
    """R, the number of relations. Their token ids are V .. V + R - 1."""
    return len(self.relations)

  @property
  def mask_id(self) -> int:
    """The token id of MASK, which replaces the entity to predict."""
    return self.num_entities + self.num_relations

  @property
  def pad_id(self) -> int:
    """The token id of PAD, which fills short rows on the right."""
    return self.mask_id + 1

  @property
  def num_tokens(self) -> int:
    """The number of token ids, and of rows of the table of all embeddings."""
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
      hints: whether the error message lists the most similar labels. This is
        slow if the vocabulary is large. Default: True.

    Raises:
      KeyError: the label is unknown.
    """
    return _look_up(label, self.entity_ids, 'entity', hints)

  def relation_id(self, label: str, *, hints: bool = True) -> int:
    """Returns the index of a relation.

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
    The sorted labels.
    int32 [labels]: item i is the sorted position of the i-th label of `index`.
  """
  labels = list(index)
  order = sorted(range(len(labels)), key=labels.__getitem__)
  places = np.empty(len(labels), dtype=np.int32)
  places[order] = np.arange(len(labels), dtype=np.int32)
  return tuple(labels[i] for i in order), places


def closest(label: str, known: Iterable[str], count: int = 3) -> list[str]:
  """Returns the known labels most similar to `label`, best first.

  Ignores case. If there are more than 100,000 known labels, compares only the
  first 100,000 labels that have the same first two or last four characters.

  Args:
    label: the unknown label.
    known: the known labels.
    count: maximum number of labels to return. Default: 3.
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
