"""The negatives that the targets of path queries are ranked against.

The protocol of Guu, Miller and Liang (2015), "Traversing Knowledge Graphs in
Vector Space". The answers P are the entities reached from the source along the
path. The candidates C are the tails of all edges of the path's last relation;
for an inverse relation, the heads. The target is ranked among C without P.
"""

import dataclasses

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import entity_sets
from coke_jax.data import paths as paths_lib


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluationSets:
  """The negatives of the N paths of one split.

  The negatives of path i are candidate_mask[last_relation[i]] without its
  answers and without its target. The answers are a subset of the candidates,
  because every answer is the tail of an edge of the last relation.

  Attributes:
    candidate_mask: bool [R, V], the set C of each last relation.
    last_relation: int32 [N].
    answers: the set P of each path.
    num_negatives: int64 [N].
    reached: bool [N], whether the target of the path is in P. It is not if the
      graph lacks an edge of the path. This is so for 30 test paths of WordNet:
      edges that are also in dev were removed from test, but not the paths that
      contain them.
  """

  candidate_mask: np.ndarray
  last_relation: np.ndarray
  answers: entity_sets.EntitySets
  num_negatives: np.ndarray
  reached: np.ndarray

  @property
  def trivial(self) -> np.ndarray:
    """Whether a path has no negatives: bool [N]."""
    return self.num_negatives == 0


def evaluation_sets(data: paths_lib.PathData, split: str) -> EvaluationSets:
  """Finds the negatives of a split's paths.

  The graph consists of the paths of one relation in train and in the split.

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
  # A target that is not reached is still no negative of itself.
  unreached = mask[last_relation, paths.target] & ~reached
  return EvaluationSets(
    candidate_mask=mask,
    last_relation=last_relation,
    answers=answers,
    num_negatives=mask.sum(axis=1)[last_relation] - answers.sizes - unreached,
    reached=reached,
  )
