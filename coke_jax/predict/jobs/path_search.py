"""Finds the paths of up to three facts between two entities."""

import dataclasses
import itertools

import numpy as np

from coke_jax.data import grouping
from coke_jax.predict.jobs import facts as facts_lib

# Limits for one pair of entities. Paths through entities with few facts are
# found first.
MAX_EDGES = 1_000_000  # edges of all neighbors of one entity of the pair
MAX_PATHS = 1_000


@dataclasses.dataclass(frozen=True)
class Edge:
  """A fact that is followed from head to tail or from tail to head.

  Attributes:
    source: the entity at the start.
    relation: the relation of the fact.
    target: the entity at the end.
    backwards: whether the fact is followed from its tail to its head.
  """

  source: int
  relation: int
  target: int
  backwards: bool

  @property
  def triple(self) -> tuple[int, int, int]:
    """The ids of the fact's head, relation and tail."""
    ends = (self.source, self.target)
    head, tail = ends[::-1] if self.backwards else ends
    return head, self.relation, tail


Path = tuple[Edge, ...]


class Graph:
  """The facts of a graph, as edges in both directions.

  Attributes:
    num_entities: V.
    start: int64 [V + 1]. The edges `start[e]:start[e + 1]` start at entity e.
      They are ordered by target.
    target: int32 [2 T], the entity at the end of each edge.
    relation: int32 [2 T], the relation of each edge.
    backwards: bool [2 T], whether the edge is followed from tail to head.
  """

  def __init__(self, facts: facts_lib.Facts, num_entities: int):
    head, relation, tail = facts.triples.T
    source = np.concatenate([head, tail])
    target = np.concatenate([tail, head])
    relation = np.concatenate([relation, relation])
    backwards = np.repeat([False, True], len(head))
    order = np.lexsort((backwards, relation, target, source))
    self.num_entities = num_entities
    self.target, self.relation = target[order], relation[order]
    self.backwards = backwards[order]
    counts = np.bincount(source, minlength=num_entities)
    self.start = grouping.indptr_of(counts)

  def degree(self, entities: np.ndarray) -> np.ndarray:
    """Returns the number of edges of each entity: int64 [N]."""
    return self.start[entities + 1] - self.start[entities]

  def neighbors(self, entity: int) -> np.ndarray:
    """Returns the distinct targets of an entity's edges: int32 [M], sorted."""
    return np.unique(self.target[self.start[entity] : self.start[entity + 1]])

  def edges(self, source: int, target: int) -> list[Edge]:
    """Returns the edges from `source` to `target`."""
    low, high = self.start[source], self.start[source + 1]
    first, last = low + np.searchsorted(
      self.target[low:high], [target, target + 1]
    )
    return [
      Edge(source, int(self.relation[at]), target, bool(self.backwards[at]))
      for at in range(first, last)
    ]

  def links(self, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Returns the distinct pairs (source, target) that an edge links.

    Args:
      sources: integers [N], distinct entities.
      targets: bool [V], whether each entity is a possible target.

    Returns:
      int64 [M, 2], sorted.
    """
    counts = self.degree(sources)
    edges = grouping.ranges(self.start[sources], counts)
    hit = targets[self.target[edges]]
    keys = np.repeat(sources, counts)[hit].astype(np.int64) * self.num_entities
    distinct = np.unique(keys + self.target[edges[hit]])
    return np.stack(np.divmod(distinct, self.num_entities), axis=1)


def find(
  graph: Graph, head: int, tail: int, fact: tuple[int, int, int]
) -> tuple[list[Path], bool]:
  """Finds paths of up to three facts between two entities.

  No entity occurs twice in a path.

  Args:
    graph: the graph.
    head: the entity at the start.
    tail: the entity at the end.
    fact: the fact that no path may contain.

  Returns:
    The paths, shortest first.
    Whether all paths were found. False if a limit was reached.
  """
  if head == tail:
    return [], True
  paths: list[Path] = []
  middles, all_of_them = _middles(graph, head, tail)
  for entities in middles:
    stops = [head, *entities, tail]
    routes: list[Path] = [()]
    for source, target in itertools.pairwise(stops):
      step = [e for e in graph.edges(source, target) if e.triple != fact]
      routes = [(*route, edge) for route in routes for edge in step]
    paths += routes
    if len(paths) > MAX_PATHS:
      return paths[:MAX_PATHS], False
  return paths, all_of_them


def _middles(
  graph: Graph, head: int, tail: int
) -> tuple[list[tuple[int, ...]], bool]:
  """Finds the entities between head and tail on paths of up to three edges.

  Returns:
    Tuples of zero, one or two entities, shortest first. Tuples of equal length
    are ordered by the number of edges of their entities.
    Whether all tuples were found. False if a limit was reached.
  """
  ends = np.array([head, tail])
  after = np.setdiff1d(graph.neighbors(head), ends)
  before = np.setdiff1d(graph.neighbors(tail), ends)
  shared = np.intersect1d(after, before)
  shared = shared[np.argsort(graph.degree(shared), kind='stable')]
  found: list[tuple[int, ...]] = [(), *((one,) for one in shared.tolist())]
  # Start from the end whose neighbors have fewer edges.
  swapped = graph.degree(before).sum() < graph.degree(after).sum()
  near, far = (before, after) if swapped else (after, before)
  near = near[np.argsort(graph.degree(near), kind='stable')]
  used = near[np.cumsum(graph.degree(near)) <= MAX_EDGES]
  wanted = np.zeros(graph.num_entities, dtype=bool)
  wanted[far] = True
  pairs = graph.links(used, wanted)
  pairs = pairs[pairs[:, 0] != pairs[:, 1]]
  if swapped:
    pairs = pairs[:, ::-1]
  size = graph.degree(pairs[:, 0]) + graph.degree(pairs[:, 1])
  pairs = pairs[np.argsort(size, kind='stable')]
  # Nearly every pair is on a path, so 2 * MAX_PATHS pairs are enough to find
  # MAX_PATHS paths.
  complete = len(used) == len(near) and len(pairs) <= 2 * MAX_PATHS
  found += [(first, last) for first, last in pairs[: 2 * MAX_PATHS].tolist()]
  return found, complete
