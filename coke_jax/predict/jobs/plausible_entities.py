"""Finds the entities that can be heads or tails of new facts of a relation.

A *role* is a side of a relation, such as the head of `capital`. An entity has a
role if it is on this side of a known fact of the relation.

A role is *single-valued* if nearly all entities with this role have it in only
one fact. For example, a country has one capital. If a role is not
single-valued, the entities with this role can have it in new facts.

If a role is single-valued, an entity with this role cannot have it in a new
fact. Only entities that are expected to have the role, but do not have it yet,
can have it in a new fact. An entity is expected to have a role if nearly all
entities with one of its other roles have it. For example, nearly all heads of
`official_language` are also heads of `capital`. So a head of
`official_language` without a known capital is expected to have a capital.
"""

import numpy as np
from scipy import sparse

from coke_jax.predict.jobs import facts as facts_lib

# An entity is expected to have a role if at least this share of the entities
# with one of its other roles have it. Of the first 100 new facts of CoDEx-S, 95
# are in valid or test if this share is .9, 89 if it is .5, and 95 if no entity
# is expected to have a role.
_EXPECTED = 0.9
# A role is single-valued if at least _LEAST_ENTITIES entities have it, and at
# most the share _EXCEPTIONS of these entities have it in more than one fact.
_EXCEPTIONS = 0.01
_LEAST_ENTITIES = 20


class PlausibleEntities:
  """The entities that can be in new facts of each relation."""

  def __init__(
    self, facts: facts_lib.Facts, num_entities: int, num_relations: int
  ):
    """Counts, for each pair of roles, the entities that have both.

    Args:
      facts: the known facts.
      num_entities: V.
      num_relations: R.
    """
    head, relation, tail = facts.triples.T.astype(np.int64)
    entity = np.concatenate([head, tail])
    role = np.concatenate([2 * relation, 2 * relation + 1])
    # The number of facts in which an entity has a role: int64 [V, 2 R].
    self._counts = sparse.csc_array(
      (np.ones(len(entity), np.int64), (entity, role)),
      (num_entities, 2 * num_relations),
    )
    has = self._counts.copy()
    has.data[:] = 1
    # The number of entities that have both roles of a pair: int64 [2 R, 2 R].
    self._both = (has.T @ has).toarray()

  def heads(self, relation: int) -> np.ndarray:
    """Returns which entities can be heads of new facts of a relation.

    Returns:
      float64 [V], 0 for entities that cannot be heads of new facts. If the role
      of the heads is single-valued, a positive value is an estimate of the
      probability that the entity is the head of an unknown fact. If the role is
      not single-valued, a positive value is 1.
    """
    return self._possible(2 * relation)

  def of_heads(self, triples: np.ndarray) -> np.ndarray:
    """Returns the values of `heads` for the heads of N triples: float64 [N]."""
    values = np.ones(len(triples))
    for relation in np.unique(triples[:, 1]).tolist():
      rows = triples[:, 1] == relation
      values[rows] = self.heads(relation)[triples[rows, 0]]
    return values

  def tails(self, relation: int) -> np.ndarray:
    """Returns which entities can be tails of new facts: bool [V]."""
    return self._possible(2 * relation + 1) > 0

  def _possible(self, role: int) -> np.ndarray:
    """Returns the values of `heads` for any role: float64 [V]."""
    known = self._known(role)
    if not self._is_single_valued(role):
      return known.astype(np.float64)
    return np.where(known, 0.0, self._expected(role))

  def _known(self, role: int) -> np.ndarray:
    """Returns which entities have a role: bool [V]."""
    return self._counts[:, [role]].toarray()[:, 0] > 0

  def _expected(self, role: int) -> np.ndarray:
    """Estimates the probability that an entity has a role: float64 [V].

    For each role A of the entity, computes the share of the entities with role
    A that also have `role`. The estimate is the largest share, or 0 if the
    largest share is below `_EXPECTED`.
    """
    entities = np.diagonal(self._both)
    # Adding 1 lowers the shares of roles with few entities.
    share = self._both[role] / (entities + 1)
    expected = np.zeros(self._counts.shape[0])
    for other in np.flatnonzero(share >= _EXPECTED).tolist():
      column = slice(*self._counts.indptr[other : other + 2])
      rows = self._counts.indices[column]
      expected[rows] = np.maximum(expected[rows], share[other])
    return expected

  def _is_single_valued(self, role: int) -> bool:
    """Returns whether a role is single-valued."""
    column = slice(*self._counts.indptr[role : role + 2])
    counts = self._counts.data[column]
    return len(counts) >= _LEAST_ENTITIES and bool(
      (counts > 1).mean() <= _EXCEPTIONS
    )
