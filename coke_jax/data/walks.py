"""Sampling path data from triples by random walks.

The procedure by which Guu, Miller and Liang (2015) made their path data from
WordNet and Freebase triples.
"""

import dataclasses

import numpy as np
import tqdm

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import graph, path_files, text_files
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib


def deducible(
  paths: paths_lib.PathSet,
  train: np.ndarray,
  num_entities: int,
  inverse: np.ndarray,
) -> np.ndarray:
  """Whether each path's target is reached in the training graph: bool [N].

  Args:
    paths: N paths.
    train: int32 [T, 3], the triples of the training graph.
    num_entities: V.
    inverse: int32 [R], the inverse of each relation.
  """
  adjacency = adjacency_lib.from_triples(train, num_entities, inverse)
  return adjacency.traverse(paths.source, paths.relations).contains(
    paths.target
  )


_WALKS_AT_ONCE = 1 << 18  # taken in one go, between two looks at the progress


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

  Each split holds its own triples as paths of one relation. Train adds walks in
  the graph of its triples, valid and test add walks in the graph of train and
  their own. Walks are counted by the triples as given, duplicates included;
  then duplicates are removed, from valid what is in train, and from test what
  is in train or valid. Within a split, paths are in random order.

  Args:
    triples: the graph; its relation labels have no inverse marker.
    seed: decides the walks and the order of the paths.
    longest: relations in the longest walk; at least 2.
    walks_per_train_triple: 20 in the paper's data.
    walks_per_evaluation_triple: 4 in the paper's data, for valid and test.
    inverse_marker: goes before the label of an inverse relation.

  Returns:
    Path data with `longest` columns of relations; `deduction` says for valid
    and test whether a target is reached in the graph of train's triples.

  Raises:
    text_files.DataError: a relation label starts with the inverse marker.
  """
  vocabulary, forward = with_inverses(triples.vocabulary, inverse_marker)
  inverse = path_files.inverse_relations(vocabulary, inverse_marker)
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
  deduction = {
    split: deducible(paths, edges['train'], num_entities, inverse)
    for split, paths in (('valid', valid), ('test', test))
  }
  return paths_lib.PathData(
    triples.name, vocabulary, inverse, train, valid, test, deduction
  )


def sample_walks(
  adjacency: adjacency_lib.Adjacency,
  num_walks: int,
  *,
  longest: int,
  generator: np.random.Generator,
  name: str = '',
) -> paths_lib.PathSet:
  """Random walks, each of a length drawn uniformly from 2 to `longest`.

  A walk starts at an entity drawn uniformly from those that have an edge;
  others are in no walk. Each step draws one of the distinct relations at the
  current entity, inverses included, then one of the entities this leads to,
  both uniformly: parallel edges of one relation count once, and a relation with
  many ends is as likely as one with a single end. A walk may turn back.

  Args:
    adjacency: the graph; each relation has its inverse, so no walk strands.
    num_walks: N, duplicates included.
    longest: relations in the longest walk; at least 2.
    generator: the source of randomness.
    name: what the progress bar calls these walks.

  Returns:
    N paths with `longest` columns of relations.

  Raises:
    ValueError: a walk can strand, there is no edge, or `longest` is below 2.
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
    for low in range(0, num_walks, _WALKS_AT_ONCE):
      rows = slice(low, min(low + _WALKS_AT_ONCE, num_walks))
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
    first = np.flatnonzero(new)  # of each pair of a head and a relation
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
    """The relation and the next entity of each walk: int32 [N], twice."""
    pair = generator.integers(
      self.entity_start[here], self.entity_start[here + 1]
    )
    edge = generator.integers(self.pair_start[pair], self.pair_start[pair + 1])
    return self.pair_relation[pair], self.tail[edge]


def with_inverses(
  vocabulary: vocabulary_lib.Vocabulary, inverse_marker: str
) -> tuple[vocabulary_lib.Vocabulary, np.ndarray]:
  """Gives every relation of a vocabulary an inverse.

  Returns:
    The vocabulary with sorted relations, and int32 [R]: the new index of each
    old relation.

  Raises:
    text_files.DataError: a relation label starts with the inverse marker.
  """
  for label in vocabulary.relations:
    if label.startswith(inverse_marker):
      raise text_files.DataError(
        f'relation {label!r} starts with {inverse_marker!r}: expected another '
        'inverse marker, or relations without their inverses'
      )
  both = sorted(
    [*vocabulary.relations]
    + [
      path_files.invert(label, inverse_marker) for label in vocabulary.relations
    ]
  )
  extended = dataclasses.replace(vocabulary, relations=tuple(both))
  ids = extended.relation_ids
  forward = [ids[label] for label in vocabulary.relations]
  return extended, np.array(forward, dtype=np.int32)


def _add_edges(
  walks: paths_lib.PathSet, edges: np.ndarray
) -> paths_lib.PathSet:
  """Edges [T, 3] as paths of one relation, and then the walks."""
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
  """Distinct paths of each set that no set before it has, in random order."""
  # The first appearance of each path in all the sets, one after the other.
  _, first = np.unique(
    np.concatenate(paths_lib.path_keys(sets)), return_index=True
  )
  ends = np.cumsum([len(paths) for paths in sets])
  set_of = np.searchsorted(ends, first, side='right')
  return [
    paths.take(generator.permutation(first[set_of == i] - (end - len(paths))))
    for i, (paths, end) in enumerate(zip(sets, ends, strict=True))
  ]
