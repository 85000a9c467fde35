"""Finds the known facts of an entity, and follows facts step by step.

A step follows a relation from the head to the tail, or backwards.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, graph, grouping
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import questions
from coke_jax.predict.jobs import facts as facts_lib

# The maximum number of entities whose facts are counted for the next step.
_MAX_COUNTED = 2000


@dataclasses.dataclass(frozen=True)
class Step:
  """A relation of a question, and the direction in which it is followed.

  Attributes:
    relation: the index of a base relation, which is no inverse relation.
    backwards: whether the step leads from the tail to the head.
  """

  relation: int
  backwards: bool


class Neighborhood:
  """The known facts of each entity.

  Attributes:
    facts: the T distinct facts of all splits. A fact with an inverse relation
      is stored as the equal fact with the base relation.
    degree: int64 [V], the number of facts with each entity. A fact from an
      entity to itself counts twice.
    base: the indices of the base relations, in ascending order.
  """

  def __init__(self, data: arrays.DataSet):
    self._data = data
    self.facts = facts_lib.known(data)
    self.base: list[int] = facts_lib.base_relations(data).tolist()
    words = data.vocabulary
    head, _, tail = self.facts.triples.T
    # `_rows` groups the rows of the facts by head or by tail. `_starts` has the
    # start of each group.
    self._rows = {}
    self._starts = {}
    for backwards, column in ((False, head), (True, tail)):
      self._rows[backwards] = np.argsort(column, kind='stable')
      counts = np.bincount(column, minlength=words.num_entities)
      self._starts[backwards] = grouping.indptr_of(counts)
    self.degree = np.bincount(head, minlength=words.num_entities) + np.bincount(
      tail, minlength=words.num_entities
    )

  def rows(self, entity: int) -> np.ndarray:
    """Returns the rows of the facts with an entity: int64 [M], ascending."""
    both = [self._side(entity, backwards) for backwards in (False, True)]
    return np.unique(np.concatenate(both))

  def follow(
    self,
    entities: Sequence[int],
    steps: Sequence[Step],
    splits: Sequence[str] = graph.SPLITS,
  ) -> np.ndarray:
    """Follows known facts from entities along steps.

    Args:
      entities: ids of the entities at the start.
      steps: the steps.
      splits: the splits whose facts are used.

    Returns:
      The ids of the entities that are reached, ascending.
    """
    reached = np.unique(np.array(entities, np.int64))
    used = np.isin(
      self.facts.split, [graph.SPLITS.index(split) for split in splits]
    )
    for step in steps:
      rows = self._rows_of(reached, step.backwards)
      rows = rows[used[rows]]
      triples = self.facts.triples[rows]
      triples = triples[triples[:, 1] == step.relation]
      reached = np.unique(triples[:, 0 if step.backwards else 2])
    return reached

  def known_in(
    self, entity: int, steps: Sequence[Step], answers: Sequence[int]
  ) -> list[str]:
    """Returns for each answer the first split in which it is known, or ''.

    The steps to an answer known in valid are facts of train or valid. The steps
    to an answer known in test are facts of train or test.
    """
    found = dict.fromkeys(answers, '')
    for split in reversed(graph.SPLITS):
      splits = dict.fromkeys(['train', split])
      for one in self.follow([entity], steps, tuple(splits)).tolist():
        if one in found:
          found[one] = split
    return [found[answer] for answer in answers]

  def next_steps(
    self, entity: int, steps: Sequence[Step]
  ) -> list[dict[str, Any]]:
    """Returns all possible next steps. Frequent steps come first.

    Args:
      entity: the entity at the start.
      steps: the steps so far.

    Returns:
      One dictionary for each next step, with the fields of
      `record_schemas.CountedStep`. `known` is the number of facts along this
      step from the entities that `steps` reach. At most 2,000 of these entities
      are used.
    """
    reached = self.follow([entity], steps)[:_MAX_COUNTED]
    words = self._data.vocabulary
    found = []
    for backwards in (False, True):
      rows = self._rows_of(reached, backwards)
      relation = self.facts.triples[rows, 1]
      counts = np.bincount(relation, minlength=words.num_relations)
      found += [
        {
          'relation': words.relations[relation],
          'backwards': backwards,
          'known': int(counts[relation]),
        }
        for relation in self.base
      ]
    # The sort is stable, so forward steps come before backward steps with the
    # same number of known facts.
    return sorted(found, key=lambda one: -one['known'])

  def path(self, steps: Sequence[Step]) -> tuple[int, ...] | None:
    """Returns the relations of a path, with inverses for backward steps.

    Args:
      steps: the steps from the start of the path to its end.

    Returns:
      The relations, or None if the data lack an inverse relation.
    """
    inverse = (
      self._data.inverse if isinstance(self._data, paths_lib.PathData) else None
    )
    relations = []
    for step in steps:
      relation = step.relation
      if step.backwards:
        if inverse is None:
          return None
        relation = int(inverse[relation])
        if relation == vocabulary_lib.NO_RELATION:
          return None
      relations.append(relation)
    return tuple(relations)

  def question(
    self, entity: int, steps: Sequence[Step], longest: int
  ) -> questions.Question | None:
    """Returns the question about the entity at the end of some steps.

    Args:
      entity: the entity at the start.
      steps: the steps.
      longest: the maximum number of relations in a question.

    Returns:
      The question. None if the steps are not a single question.
    """
    if len(steps) > longest:
      return None
    # A single backward step asks for a head, because no training path consists
    # of a single inverse relation.
    if len(steps) == 1 and steps[0].backwards:
      return questions.Question(entity, (steps[0].relation,), 'head')
    relations = self.path(steps)
    if relations is not None:
      return questions.Question(entity, relations, 'tail')
    if all(step.backwards for step in steps):
      return questions.Question(
        entity, tuple(step.relation for step in reversed(steps)), 'head'
      )
    return None

  def _side(self, entity: int, backwards: bool) -> np.ndarray:
    start, stop = self._starts[backwards][entity : entity + 2]
    return self._rows[backwards][start:stop]

  def _rows_of(self, entities: np.ndarray, backwards: bool) -> np.ndarray:
    """Returns the rows of facts with these heads, or tails if `backwards`."""
    starts = self._starts[backwards]
    places = grouping.ranges(
      starts[entities], starts[entities + 1] - starts[entities]
    )
    return self._rows[backwards][places]
