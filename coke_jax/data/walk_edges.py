"""Random walks along the edges of a graph."""

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib


class WalkEdges:
  """Edges sorted by head and relation, from which steps of walks are drawn."""

  def __init__(self, adjacency: adjacency_lib.Adjacency) -> None:
    """Sorts the edges.

    Args:
      adjacency: the graph. Each relation must have an inverse. Otherwise a walk
        could reach an entity without outgoing edges.

    Raises:
      ValueError: the graph has no edge, or some entity has an incoming but no
        outgoing edge.
    """
    edges = adjacency.edges
    if not len(edges):
      raise ValueError('the graph has no edge: expected at least one')
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    new = np.ones(len(edges), dtype=bool)
    new[1:] = (edges[1:, :2] != edges[:-1, :2]).any(axis=1)
    first = np.flatnonzero(new)  # the first edge of each (head, relation) pair
    pairs = np.bincount(edges[first, 0], minlength=adjacency.num_entities)
    self._tail = edges[:, 2]
    self._pair_relation = edges[first, 1]
    self._pair_start = np.append(first, len(edges))
    self._entity_start = np.concatenate([[0], np.cumsum(pairs)])
    self._starts = np.flatnonzero(pairs).astype(np.int32)
    if (pairs[self._tail] == 0).any():
      raise ValueError(
        'some entities have incoming but no outgoing edges: expected an '
        'inverse of every relation'
      )

  def walk(
    self, lengths: np.ndarray, generator: np.random.Generator, *, longest: int
  ) -> paths_lib.PathSet:
    """Samples one random walk of each length.

    All random choices are uniform. A walk starts at an entity that has an edge.
    Each step first draws one of the distinct relations of the current entity,
    including inverse relations, then one of the tails of this entity and
    relation. So a relation with many tails is as likely as a relation with one
    tail. A walk may return to an entity.

    Args:
      lengths: integers [N], the number of relations of each walk, at most
        `longest`.
      generator: the random number generator.
      longest: the number of relation columns of the result.

    Returns:
      N paths.
    """
    source = generator.choice(self._starts, size=len(lengths))
    shape = (len(lengths), longest)
    relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
    here = source.copy()
    for step in range(longest):
      walking = np.flatnonzero(lengths > step)
      relation, here[walking] = self._step(here[walking], generator)
      relations[walking, step] = relation
    return paths_lib.PathSet(source, relations, here)

  def _step(
    self, here: np.ndarray, generator: np.random.Generator
  ) -> tuple[np.ndarray, np.ndarray]:
    """Draws the next relation and the next entity of each walk: int32 [N]."""
    pair = generator.integers(
      self._entity_start[here], self._entity_start[here + 1]
    )
    edge = generator.integers(
      self._pair_start[pair], self._pair_start[pair + 1]
    )
    return self._pair_relation[pair], self._tail[edge]
