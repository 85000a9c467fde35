"""Inverse relations: their labels and their indices."""

import dataclasses

import numpy as np

from coke_jax.data import text_files
from coke_jax.data import vocabulary as vocabulary_lib


def invert(label: str, marker: str) -> str:
  """Adds the marker before a label, or removes it if the label has it."""
  plain = label.removeprefix(marker)
  return plain if plain != label else marker + label


def inverse_relations(
  vocabulary: vocabulary_lib.Vocabulary, marker: str
) -> np.ndarray:
  """Returns the index of each relation's inverse: int32 [R].

  The index is NO_RELATION if the vocabulary does not contain the inverse.
  """
  ids = vocabulary.relation_ids
  return np.array(
    [
      ids.get(invert(label, marker), vocabulary_lib.NO_RELATION)
      for label in vocabulary.relations
    ],
    dtype=np.int32,
  )


def with_inverses(
  vocabulary: vocabulary_lib.Vocabulary, marker: str
) -> tuple[vocabulary_lib.Vocabulary, np.ndarray]:
  """Adds an inverse for every relation of a vocabulary.

  Args:
    vocabulary: R relations without inverses.
    marker: the text before the label of an inverse relation.

  Returns:
    The vocabulary with 2 R relations in sorted order.
    int32 [R]: the index of each original relation in the new vocabulary.

  Raises:
    text_files.DataError: a relation label starts with the marker.
  """
  for label in vocabulary.relations:
    if label.startswith(marker):
      raise text_files.DataError(
        f'relation {label!r} starts with {marker!r}: expected another inverse '
        'marker, or no inverse relations'
      )
  inverted = [invert(label, marker) for label in vocabulary.relations]
  both = sorted([*vocabulary.relations, *inverted])
  extended = dataclasses.replace(vocabulary, relations=tuple(both))
  ids = extended.relation_ids
  forward = [ids[label] for label in vocabulary.relations]
  return extended, np.array(forward, dtype=np.int32)
