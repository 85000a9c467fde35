"""Samples path data from triples by random walks.

Guu, Miller and Liang (2015) used this procedure to make path data from the
triples of WordNet and Freebase.
"""

import numpy as np

from coke_jax import progress_bar
from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import deduction, graph, inverses, walk_edges
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib

# Number of walks that are sampled at a time. A different value gives different
# walks for the same seed.
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
  """Makes path data from the triples of a graph and from random walks in it.

  Each split consists of its triples, as paths with a single relation, and of
  random walks. All walks use the edges of train. The walks of valid also use
  the edges of valid, and the walks of test the edges of test.

  Duplicate paths are removed from each split. Paths of train are also removed
  from valid, and paths of train and valid from test. Finally, the paths of each
  split are shuffled.

  Args:
    triples: the graph. No relation label may start with the inverse marker.
    seed: the seed for the walks and the order of the paths.
    longest: maximum number of relations in a walk, at least 2. Default: 5.
    walks_per_train_triple: number of walks for each training triple. Default:
      20, as in the data of Guu, Miller and Liang.
    walks_per_evaluation_triple: number of walks for each triple of valid and
      test. Default: 4, as in the data of Guu, Miller and Liang.
    inverse_marker: the text before the label of an inverse relation. Default:
      `**`.

  Returns:
    Path data with `longest` relation columns. Its `deduction` marks the paths
    by deduction in valid and test, see the module `deduction`.

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
  """Samples random walks with 2 to `longest` relations.

  The number of relations is drawn uniformly from 2 to `longest`.
  `walk_edges.WalkEdges.walk` describes the other random choices.

  Args:
    adjacency: the graph. Each relation must have an inverse. Otherwise a walk
      could reach an entity without outgoing edges.
    num_walks: N, the number of walks. Walks can be equal.
    longest: maximum number of relations in a walk, at least 2.
    generator: the random number generator.
    name: label of the progress bar. Default: empty.

  Returns:
    N paths with `longest` relation columns.

  Raises:
    ValueError: `longest` is below 2, the graph has no edge, or some entity has
      an incoming but no outgoing edge.
  """
  if longest < 2:
    raise ValueError(f'longest is {longest}: expected at least 2')
  edges = walk_edges.WalkEdges(adjacency)
  source = np.empty(num_walks, dtype=np.int32)
  target = np.empty(num_walks, dtype=np.int32)
  shape = (num_walks, longest)
  relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
  with progress_bar.create(
    f'{name} walks', total=num_walks, unit='walk', unit_scale=True
  ) as progress:
    for low in range(0, num_walks, WALKS_PER_CHUNK):
      rows = slice(low, min(low + WALKS_PER_CHUNK, num_walks))
      count = rows.stop - low
      lengths = generator.integers(2, longest + 1, size=count)
      found = edges.walk(lengths, generator, longest=longest)
      source[rows], target[rows] = found.source, found.target
      relations[rows] = found.relations
      progress.update(count)
  return paths_lib.PathSet(source, relations, target)


def _add_edges(
  walks: paths_lib.PathSet, edges: np.ndarray
) -> paths_lib.PathSet:
  """Puts edges [T, 3], as paths with a single relation, before the walks."""
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
  """Removes duplicates within and across sets, then shuffles each set.

  A path that occurs in several sets is kept in the first of them.
  """
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
