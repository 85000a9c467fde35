"""Sampling of path data from triples by random walks.

This is the procedure by which Guu, Miller and Liang (2015) made path data from
the triples of WordNet and Freebase.
"""

import numpy as np
import tqdm

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import deduction, graph, inverses
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

# Walks sampled together, between two updates of the progress bar. The sampled
# walks depend on it as they do on the seed, so a new value gives new data sets.
WALKS_PER_CHUNK = 1 << 18


def sample_path_data(
  triples: graph.KnowledgeGraph,
  *,
  seed: int,
  longest: int = 5,
  walks_per_train_triple: int = 20,
  walks_per_evaluation_triple: int = 4,
  inverse_marker: str = '**',
) -> paths_lib.PathData:
  """Makes path data from a graph: its triples, and random walks over them.

  Each split contains its own triples as paths of one relation. Train adds walks
  in the graph of its triples; valid and test add walks in the graph of train's
  and their own triples. The number of walks is a multiple of the number of
  triples, duplicates included. Afterwards duplicate paths are removed, also
  those of valid that are in train, and those of test that are in train or
  valid. The paths of a split are in random order.

  Args:
    triples: the graph; its relation labels have no inverse marker.
    seed: determines the walks and the order of the paths.
    longest: the number of relations of the longest walks, at least 2.
    walks_per_train_triple: walks for each triple of train. Default: 20, as in
      the paper's data.
    walks_per_evaluation_triple: walks for each triple of valid and test.
      Default: 4, as in the paper's data.
    inverse_marker: the text before the label of an inverse relation.

  Returns:
    Path data with `longest` relation columns. `deduction` says for each path of
    valid and test whether its target is reached in the graph of train's
    triples.

  Raises:
    text_files.DataError: a relation label starts with the inverse marker.
    ValueError: `longest` is below 2, or train is empty.
  """
  vocabulary, forward = inverses.with_inverses(
    triples.vocabulary, inverse_marker
  )
  inverse = inverses.inverse_relations(vocabulary, inverse_marker)
  generator = np.random.default_rng(seed)
  edges = {}
  for split in graph.SPLITS:
    head, relation, tail = triples.split(split).T
    edges[split] = np.stack([head, forward[relation], tail], axis=1)
  num_entities = vocabulary.num_entities
  sampled = []
  for split in graph.SPLITS:
    walked = [edges['train']]
    per_triple = walks_per_train_triple
    if split != 'train':
      walked.append(edges[split])
      per_triple = walks_per_evaluation_triple
    walks = sample_walks(
      adjacency_lib.from_triples(np.concatenate(walked), num_entities, inverse),
      per_triple * len(edges[split]),
      longest=longest,
      generator=generator,
      name=split,
    )
    sampled.append(_add_edges(walks, edges[split]))
  train, valid, test = _disjoint(sampled, generator)
  masks = {
    split: deduction.deducible(paths, edges['train'], num_entities, inverse)
    for split, paths in (('valid', valid), ('test', test))
  }
  return paths_lib.PathData(
    triples.name, vocabulary, inverse, train, valid, test, masks
  )


def sample_walks(
  adjacency: adjacency_lib.Adjacency,
  num_walks: int,
  *,
  longest: int,
  generator: np.random.Generator,
  name: str = '',
) -> paths_lib.PathSet:
  """Samples random walks, each of a length drawn uniformly from 2 to `longest`.

  A walk starts at an entity drawn uniformly from the entities with an edge.
  Each step draws one of the distinct relations of the current entity, inverse
  ones included, then one of the entities it leads to, both uniformly. Parallel
  edges of one relation therefore count once, and a relation with many tails is
  as likely as one with a single tail. A walk may turn back.

  Args:
    adjacency: the graph; each relation has an inverse, so that every entity
      that a walk reaches has an edge to leave by.
    num_walks: N, duplicates included.
    longest: the number of relations of the longest walks, at least 2.
    generator: the source of randomness.
    name: the label of the progress bar.

  Returns:
    N paths with `longest` relation columns.

  Raises:
    ValueError: `longest` is below 2, the graph has no edge, or some entity can
      be entered but not left.
  """
  if longest < 2:
    raise ValueError(f'longest is {longest}: expected at least 2')
  edges = _WalkEdges(adjacency)
  source = np.empty(num_walks, dtype=np.int32)
  target = np.empty(num_walks, dtype=np.int32)
  shape = (num_walks, longest)
  relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
  with tqdm.tqdm(
    total=num_walks, desc=f'{name} walks', unit='walk', unit_scale=True
  ) as progress:
    for low in range(0, num_walks, WALKS_PER_CHUNK):
      rows = slice(low, min(low + WALKS_PER_CHUNK, num_walks))
      count = rows.stop - low
      lengths = generator.integers(2, longest + 1, size=count)
      source[rows] = generator.choice(edges.starts, size=count)
      here = source[rows].copy()
      for step in range(longest):
        walking = np.flatnonzero(lengths > step)
        relation, here[walking] = edges.step(here[walking], generator)
        relations[low + walking, step] = relation
      target[rows] = here
      progress.update(count)
  return paths_lib.PathSet(source, relations, target)


class _WalkEdges:
  """Edges by head, then relation, for drawing the next step of many walks."""

  def __init__(self, adjacency: adjacency_lib.Adjacency) -> None:
    edges = adjacency.edges
    if not len(edges):
      raise ValueError('the graph has no edge: expected one to walk along')
    edges = edges[np.lexsort((edges[:, 1], edges[:, 0]))]
    new = np.ones(len(edges), dtype=bool)
    new[1:] = (edges[1:, :2] != edges[:-1, :2]).any(axis=1)
    first = np.flatnonzero(new)  # the first edge of each (head, relation) pair
    pairs = np.bincount(edges[first, 0], minlength=adjacency.num_entities)
    self.tail = edges[:, 2]
    self.pair_relation = edges[first, 1]
    self.pair_start = np.append(first, len(edges))
    self.entity_start = np.concatenate([[0], np.cumsum(pairs)])
    self.starts = np.flatnonzero(pairs).astype(np.int32)
    if (pairs[self.tail] == 0).any():
      raise ValueError(
        'some entities can be entered but not left: expected an inverse of '
        'every relation'
      )

  def step(
    self, here: np.ndarray, generator: np.random.Generator
  ) -> tuple[np.ndarray, np.ndarray]:
    """Draws the next relation and entity of each walk: int32 [N], twice."""
    pair = generator.integers(
      self.entity_start[here], self.entity_start[here + 1]
    )
    edge = generator.integers(self.pair_start[pair], self.pair_start[pair + 1])
    return self.pair_relation[pair], self.tail[edge]


def _add_edges(
  walks: paths_lib.PathSet, edges: np.ndarray
) -> paths_lib.PathSet:
  """Returns edges [T, 3] as paths of one relation, followed by the walks."""
  head, relation, tail = edges.T
  shape = (len(edges), walks.relations.shape[1])
  relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
  relations[:, 0] = relation
  return paths_lib.PathSet(
    np.concatenate([head, walks.source]),
    np.concatenate([relations, walks.relations]),
    np.concatenate([tail, walks.target]),
  )


def _disjoint(
  sets: list[paths_lib.PathSet], generator: np.random.Generator
) -> list[paths_lib.PathSet]:
  """Removes duplicates within each set and paths of earlier sets; shuffles."""
  # The first position of each distinct path in the concatenated sets.
  _, first = np.unique(
    np.concatenate(paths_lib.path_keys(sets)), return_index=True
  )
  ends = np.cumsum([len(paths) for paths in sets])
  set_of = np.searchsorted(ends, first, side='right')
  return [
    paths.take(generator.permutation(first[set_of == i] - (end - len(paths))))
    for i, (paths, end) in enumerate(zip(sets, ends, strict=True))
  ]
