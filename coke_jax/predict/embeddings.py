"""Contextual and static embeddings of a model.

`embedding_files` describes the file formats.
"""

import dataclasses
import os
import pathlib

import numpy as np

from coke_jax.predict import embedding_files


@dataclasses.dataclass(frozen=True, eq=False)
class Contextual:
  """Contextual embeddings: hidden states of N sequences.

  Attributes:
    vectors: float32 [N, K, D], zero at PAD.
    tokens: int32 [N, K] token ids, indices of `labels`.
    labels: the label of each token id; the last two are MASK and PAD.
    layer: the number of blocks applied; 0 is the input of the first block.
  """

  vectors: np.ndarray
  tokens: np.ndarray
  labels: tuple[str, ...]
  layer: int

  def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the embeddings to disk, completely or not at all.

    Args:
      path: an .npz file if the name ends in `.npz`, else a folder for
        TensorBoard's projector.

    Returns:
      The path.

    Raises:
      OSError: the file or folder cannot be written.
      embedding_files.EmbeddingError: a label cannot be written to an .npz file.
    """
    batches = [(self.tokens, self.vectors)]
    return embedding_files.write_contextual(
      path, batches, self.labels, self.layer
    )


@dataclasses.dataclass(frozen=True, eq=False)
class Static:
  """Static embeddings: the embedding tables of V entities and R relations.

  Attributes:
    vectors: float32 [V + R, D].
    labels: V + R labels, entities first, then relations.
    num_entities: V.
  """

  vectors: np.ndarray
  labels: tuple[str, ...]
  num_entities: int

  @property
  def entities(self) -> np.ndarray:
    """The vectors of the entities, float32 [V, D]."""
    return self.vectors[: self.num_entities]

  @property
  def relations(self) -> np.ndarray:
    """The vectors of the relations, float32 [R, D]."""
    return self.vectors[self.num_entities :]

  def save(self, path: str | os.PathLike[str]) -> pathlib.Path:
    """Writes the embeddings to disk, completely or not at all.

    Args:
      path: an .npz file if the name ends in `.npz`, else a folder for
        TensorBoard's projector.

    Returns:
      The path.

    Raises:
      OSError: the file or folder cannot be written.
      embedding_files.EmbeddingError: a label cannot be written to an .npz file.
    """
    return embedding_files.write_static(
      path, self.vectors, self.labels, self.num_entities
    )
