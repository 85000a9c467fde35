"""Training queries from random walks that are sampled anew in every epoch.

A file of paths contains a random sample of all paths. In long trainings, a
model overfits to this sample. Walks that are sampled in every epoch prevent
this.
"""

import dataclasses

import numpy as np

from coke_jax.data import paths as paths_lib
from coke_jax.data import queries as queries_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.data import walk_edges


def num_walks(per_epoch: int, longest: int, batch_size: int) -> int:
  """Returns the number of walks in an epoch.

  All walks of a batch have the same length, from 2 to `longest` relations. All
  lengths have the same number of full batches.

  Args:
    per_epoch: minimum number of walks in an epoch.
    longest: maximum number of relations in a walk, at least 2 unless
      `per_epoch` is 0.
    batch_size: number of walks in a batch.
  """
  # The number of walks in one batch of each length.
  of_lengths = batch_size * (longest - 1)
  return -(-per_epoch // of_lengths) * of_lengths if per_epoch else 0


@dataclasses.dataclass(frozen=True, eq=False)
class FreshWalks:
  """A source of training queries with 2 to `longest` relations.

  Attributes:
    edges: the training edges, in both directions.
    vocabulary: the vocabulary of the token ids.
    longest: maximum number of relations in a walk, at least 2.
    per_epoch: minimum number of walks in an epoch.
    both_sides: whether the second half of a batch masks the head instead of the
      tail. Default: True.
  """

  edges: walk_edges.WalkEdges
  vocabulary: vocabulary_lib.Vocabulary
  longest: int
  per_epoch: int
  both_sides: bool = True

  def sample(
    self, relations: int, size: int, generator: np.random.Generator
  ) -> queries_lib.Queries:
    """Samples the queries of a batch.

    Args:
      relations: k, the number of relations of each walk.
      size: B, the number of walks.
      generator: the random number generator.

    Returns:
      B queries with k + 2 tokens and one answer each.
    """
    walks = self.edges.walk(
      np.full(size, relations), generator, longest=relations
    )
    if not self.both_sides:
      return paths_lib.queries_from_paths(walks, self.vocabulary, side='tail')
    halves = np.array_split(np.arange(size), 2)
    return queries_lib.concatenate(
      [
        paths_lib.queries_from_paths(
          walks.take(half), self.vocabulary, side=side
        )
        for half, side in zip(halves, ('tail', 'head'), strict=True)
      ]
    )
