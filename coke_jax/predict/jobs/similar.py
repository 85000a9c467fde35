"""Finds the entities whose embeddings are nearest to an entity's embedding."""

import dataclasses

import numpy as np

from coke_jax.predict import predictor, records
from coke_jax.predict.jobs import facts as facts_lib


@dataclasses.dataclass(frozen=True)
class Neighbor:
  """An entity with a similar embedding.

  Attributes:
    label: the label of the entity.
    rank: the position in the list of neighbors, counted from 1.
    similarity: the cosine of the two embeddings, -1 to 1.
  """

  label: str
  rank: int
  similarity: float


def nearest(
  vectors: np.ndarray,
  entity: int,
  labels: tuple[str, ...],
  top: int,
  candidates: np.ndarray | None = None,
) -> records.Records[Neighbor]:
  """Finds the nearest entities by cosine.

  Args:
    vectors: float32 [V, D], one embedding for each entity.
    entity: the id of the entity, which is not returned.
    labels: the labels of all V entities.
    top: the maximum number of entities.
    candidates: integers [M], distinct ids to choose from. Default: all.

  Returns:
    The nearest entities, best first. Equal similarities are ordered by id.
  """
  length = np.linalg.norm(vectors, axis=1)
  unit = vectors / np.maximum(length, np.finfo(np.float32).tiny)[:, None]
  cosine = unit @ unit[entity]
  others = np.arange(len(vectors)) if candidates is None else candidates
  others = np.sort(others[others != entity])
  best = others[np.argsort(-cosine[others], kind='stable')[:top]]
  return records.Records(
    (
      Neighbor(labels[one], rank, float(cosine[one]))
      for rank, one in enumerate(best.tolist(), start=1)
    ),
    Neighbor,
  )


def contextual(
  predictor: predictor.Predictor, relation: int, side: str, layer: int
) -> np.ndarray:
  """Computes the contextual embedding of every entity under a relation.

  Args:
    predictor: predicts with the model.
    relation: the relation index.
    side: the side of the entity, `head` or `tail`. The entity on the other side
      is masked.
    layer: the number of blocks to apply.

  Returns:
    float32 [V, D], the hidden states at MASK.

  Raises:
    errors.NonFiniteError: a hidden state is NaN or infinite.
  """
  vocabulary = predictor.data.vocabulary
  entities = np.arange(vocabulary.num_entities)
  queries = facts_lib.to_queries(
    np.full(len(entities), relation),
    entities,
    'tail' if side == 'head' else 'head',
    vocabulary,
    predictor.width,
  )
  position = int(queries.mask_position[0])
  return np.concatenate(
    [
      states[:, position]
      for _, states in predictor.encode(queries.tokens, layer)
    ]
  )
