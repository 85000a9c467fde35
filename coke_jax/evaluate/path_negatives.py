"""Finds the negatives for the evaluation of path queries.

This is the protocol of Guu, Miller and Liang (2015), "Traversing Knowledge
Graphs in Vector Space". The answers P are the entities reached from the source
along the path. The candidates C are the tails of all edges of the path's last
relation. The tails of an inverse relation are the heads of the original
relation. The negatives are the candidates that are not answers. The target is
ranked among the negatives.
"""

import dataclasses

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import entity_sets
from coke_jax.data import paths as paths_lib


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluationSets:
  """The negatives of the N paths of one split.

  The negatives of path i are the entities in candidate_mask[last_relation[i]],
  except the answers and the target of the path. All answers are candidates,
  because every answer is the tail of an edge of the last relation.

  Attributes:
    candidate_mask: bool [R, V], the candidates C of each last relation.
    last_relation: int32 [N], the last relation of each path.
    answers: the answers P of each path.
    num_negatives: int64 [N], the number of negatives of each path.
    reached: bool [N], whether the target of each path is one of its answers.
      The target is not reached if the graph lacks edges of the path. In
      PathQueryWN, this concerns 30 test paths. They need edges that are only in
      dev, and the graph of test has the edges of train and test.
  """

  candidate_mask: np.ndarray
  last_relation: np.ndarray
  answers: entity_sets.EntitySets
  num_negatives: np.ndarray
  reached: np.ndarray

  @property
  def trivial(self) -> np.ndarray:
    """Whether each path has no negatives: bool [N]."""
    return self.num_negatives == 0


def evaluation_sets(data: paths_lib.PathData, split: str) -> EvaluationSets:
  """Finds the negatives of a split's paths.

  The edges of the graph are all paths with a single relation, from train and
  from the split together.

  Args:
    data: the paths of all splits.
    split: `valid` or `test`.

  Returns:
    The negatives.
  """
  paths = data.split(split)
  edges = np.concatenate([data.train.single_edges(), paths.single_edges()])
  adjacency = adjacency_lib.from_triples(
    edges, data.vocabulary.num_entities, data.inverse
  )
  mask = adjacency.candidate_mask()
  answers = adjacency.traverse(paths.source, paths.relations)
  reached = answers.contains(paths.target)
  last_relation = paths.last_relation
  # A target is not a negative, even if it is not one of the answers.
  unreached = mask[last_relation, paths.target] & ~reached
  return EvaluationSets(
    candidate_mask=mask,
    last_relation=last_relation,
    answers=answers,
    num_negatives=mask.sum(axis=1)[last_relation] - answers.sizes - unreached,
    reached=reached,
  )
