"""What path queries are ranked against: candidates, answers, negatives.

The protocol of Guu, Miller and Liang (2015), "Traversing Knowledge Graphs in
Vector Space". P are the entities reached from the source along the path; C, the
candidates, are the entities that end an edge with the path's last relation (for
an inverse relation: that start one); the target is ranked among C without P.
"""

import dataclasses

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import paths as paths_lib


@dataclasses.dataclass(frozen=True, eq=False)
class EvaluationSets:
  """What the targets of one split are ranked against.

  The negatives of row i are candidate_mask[last_relation[i]], without its
  answers and without its own target. Every answer ends an edge of the last
  relation, so that the answers are a part of the candidates, and counts over
  the negatives are differences of counts over these two.

  Attributes:
    candidate_mask: bool [R, V], the set C of each last relation.
    last_relation: int32 [N].
    answers: the set P of each of the N paths.
    num_negatives: int64 [N].
    reached: bool [N], whether the path's own target is in P. It is not where
      the graph lacks an edge of the path: the sampling takes from test the
      edges that are also in dev, but keeps the walks over them (30 test paths
      of WordNet).
  """

  candidate_mask: np.ndarray
  last_relation: np.ndarray
  answers: adjacency_lib.EntitySets
  num_negatives: np.ndarray
  reached: np.ndarray

  @property
  def trivial(self) -> np.ndarray:
    """Whether there is nobody to rank the answer against: bool [N]."""
    return self.num_negatives == 0


def evaluation_sets(data: paths_lib.PathData, split: str) -> EvaluationSets:
  """What to rank a split's targets against.

  The graph is made of the single edges of train and of the split itself.

  Args:
    data: the paths of all splits.
    split: `valid` or `test`.
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
  stray = mask[last_relation, paths.target] & ~reached  # a candidate, but gold
  return EvaluationSets(
    candidate_mask=mask,
    last_relation=last_relation,
    answers=answers,
    num_negatives=mask.sum(axis=1)[last_relation] - answers.sizes - stray,
    reached=reached,
  )
