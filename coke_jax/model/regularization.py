"""Penalties on the vectors that a composition multiplies.

A penalty of a training instance depends on the vectors of its known entity s,
its relation factors r and its answer o. So a vector is penalized once for each
instance that uses it. Vectors represent complex numbers.

N3 (Lacroix, Usunier and Obozinski 2018) is the sum of the cubed moduli of s, r
and o. Factors are not penalized in two cases. With rotations, their moduli do
not change the score. In path queries, the factors of several relations are
multiplied, and the penalty would make this product too small to be learned.

DURA (Zhang, Cai and Wang 2020) is
0.5 (|s|^2 + |o|^2) + 1.5 (|s r|^2 + |o r|^2), where s r is the elementwise
product. The weights .5 and 1.5 are those that its authors use for ComplEx. In
path queries, r is the product of all factors.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.model import composition, encoder, input_embedding

# Makes the gradient of a modulus finite at 0.
_MIN_SQUARED_MODULUS = 1e-12

# The weights of entities, and of entities times factors, in DURA.
_DURA_OF_ENTITIES = 0.5
_DURA_OF_PRODUCTS = 1.5


@dataclasses.dataclass(frozen=True)
class Penalties:
  """The penalties that are added to the loss.

  Attributes:
    n3: the weight of N3.
    dura: the weight of DURA.
    penalize_factors: whether N3 includes the relation factors.
  """

  n3: float = 0.0
  dura: float = 0.0
  penalize_factors: bool = True

  def __bool__(self) -> bool:
    return self.n3 > 0 or self.dura > 0

  def __call__(
    self, params: Any, batch: dict[str, jax.Array], model: encoder.CoKE
  ) -> jax.Array:
    """Computes the penalty of each row, summed over the answers of the row.

    Args:
      params: parameters of `model`, which must have a composition.
      batch: a batch of `data.batches.TrainingSet`. If it contains `candidates`,
        they are int32 [C], without the axis of devices.
      model: the encoder.

    Returns:
      float32 [B]. The penalty of a row without answers is 0.
    """
    query = _Query.of(params, batch, model)
    total = jnp.zeros(len(batch['tokens']))
    if self.n3:
      total += self.n3 * query.n3(self.penalize_factors)
    if self.dura:
      total += self.dura * query.dura(model.composition == 'rotation')
    return total


NO_PENALTIES = Penalties()


@dataclasses.dataclass(frozen=True)
class _Query:
  """The vectors of the queries of a batch.

  Attributes:
    known: float32 [B, D], the known entities.
    factors: float32 [2 R, D], the table of factors.
    rows: int32 [B, k], the rows of `factors` that a query uses.
    is_relation: bool [B, k], whether a row of `factors` is used.
    possible: float32 [C, D], the entities that can be answers.
    answers: int32 [B, M], rows of `possible`. Negative numbers are padding.
  """

  known: jax.Array
  factors: jax.Array
  rows: jax.Array
  is_relation: jax.Array
  possible: jax.Array
  answers: jax.Array

  @classmethod
  def of(
    cls, params: Any, batch: dict[str, jax.Array], model: encoder.CoKE
  ) -> '_Query':
    """Collects the vectors; see `Penalties.__call__` for the arguments."""
    elements, factors = (
      params['element_embedding'],
      params['composition_embedding'],
    )
    num_relations = factors.shape[0] // 2
    tokens = batch['tokens']
    visible = tokens != model.pad_id
    if model.inverse:
      tokens, _ = input_embedding.invert_head_queries(
        tokens, visible, model.inverse, model.num_entities
      )
    head_query = tokens[:, 0] == model.num_entities + num_relations
    relations = input_embedding.relation_indices(
      tokens, model.num_entities, num_relations
    )
    known = input_embedding.known_entity(tokens, visible, head_query)
    # A padding row has no known entity. Any entity may be used instead, because
    # the row has no answers and thus the penalty 0.
    known = jnp.minimum(known, model.num_entities - 1)
    return cls(
      known=jnp.take(elements, known, axis=0),
      factors=factors,
      rows=composition.factor_rows(relations, head_query, num_relations),
      is_relation=relations >= 0,
      possible=jnp.take(elements, batch['candidates'], axis=0)
      if 'candidates' in batch
      else elements[: model.num_entities],
      answers=batch['answers'],
    )

  def n3(self, penalize_factors: bool) -> jax.Array:
    """Computes N3 of each row, float32 [B]."""
    of_factors = jnp.where(
      self.is_relation & penalize_factors,
      jnp.take(cubed_moduli(self.factors), self.rows),
      0.0,
    ).sum(axis=1)
    of_answers = jnp.take(
      cubed_moduli(self.possible), jnp.maximum(self.answers, 0)
    )
    of_query = cubed_moduli(self.known) + of_factors
    return jnp.where(
      self.answers >= 0, of_answers + of_query[:, None], 0.0
    ).sum(axis=1)

  def dura(self, rotation: bool) -> jax.Array:
    """Computes DURA of each row, float32 [B]."""
    weight = jnp.ones((len(self.known), self.known.shape[1] // 2))
    if not rotation:  # The moduli of rotations are 1.
      squared = composition.squared_moduli(self.factors)
      for rows, used in zip(self.rows.T, self.is_relation.T, strict=True):
        factor = jnp.take(squared, rows, axis=0)
        weight *= jnp.where(used[:, None], factor, 1.0)
    weight = _DURA_OF_ENTITIES + _DURA_OF_PRODUCTS * weight
    # A CPU needs about a ninth of the time if it adds one answer of each row at
    # a time. On other devices, many small steps are slower than a large one.
    of_answers = jax.lax.platform_dependent(
      composition.squared_moduli(self.possible),
      self.answers,
      cpu=sums_in_steps,
      default=sums_at_once,
    )
    count = (self.answers >= 0).sum(axis=1)[:, None]
    of_known = count * composition.squared_moduli(self.known)
    return (weight * (of_known + of_answers)).sum(axis=1)


def sums_at_once(table: jax.Array, answers: jax.Array) -> jax.Array:
  """Sums the rows of a table that belong to the answers of each query.

  Args:
    table: float32 [C, W].
    answers: int32 [B, M], rows of the table. Negative numbers are padding.

  Returns:
    float32 [B, W].
  """
  rows = jnp.take(table, jnp.maximum(answers, 0), axis=0)
  return jnp.where((answers >= 0)[..., None], rows, 0.0).sum(axis=1)


def sums_in_steps(table: jax.Array, answers: jax.Array) -> jax.Array:
  """Computes the same as `sums_at_once`, in M steps."""

  def add(total: jax.Array, column: jax.Array) -> tuple[jax.Array, None]:
    return total + sums_at_once(table, column[:, None]), None

  zeros = jnp.zeros((len(answers), table.shape[1]), table.dtype)
  return jax.lax.scan(add, zeros, answers.T)[0]


def cubed_moduli(x: jax.Array) -> jax.Array:
  """Sums the cubed moduli of vectors of complex numbers.

  Args:
    x: float32 [..., D], D even.

  Returns:
    float32 [...].
  """
  squared = composition.squared_moduli(x) + _MIN_SQUARED_MODULUS
  return (squared * jnp.sqrt(squared)).sum(axis=-1)
