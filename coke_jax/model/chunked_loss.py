"""Computes the loss in little memory, for millions of entities.

The logits [B, V] of a batch are the largest array of a train step. This module
computes, sums up and discards the logits of one chunk of entities at a time.
The backward pass computes the logits again. So the memory is proportional to B
times the size of a chunk. The result equals the result of the module `loss`,
except for rounding. A step needs a third more products with the embeddings.

Shapes use the letters of `encoder`. C is the number of entities in a chunk.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from coke_jax.model import loss, products

# Logits of more bytes than this are computed in chunks by default.
_MOST_BYTES = 2**30
# By default, the logits of one chunk have this number of bytes.
_CHUNK_BYTES = 64 * 2**20

# The logit of an ignored entity. Minus infinity would cause NaN in differences.
LOWEST = float(jnp.finfo(jnp.float32).min)

# The loss is computed from three sums over entities, each float32 [B]: the
# logsumexp of the logits, the sum of the logits, and the weighted sum of the
# logits of the answers.
Sums = tuple[jax.Array, jax.Array, jax.Array]


def default_chunk_size(rows: int, num_entities: int) -> int:
  """Chooses the number of entities in a chunk.

  Args:
    rows: B, the number of rows of a batch on one device.
    num_entities: V.

  Returns:
    0, which means no chunks, if the logits [B, V] need at most 1 GiB.
    Otherwise, the number of entities whose logits need 64 MiB.
  """
  if 4 * rows * num_entities <= _MOST_BYTES:
    return 0
  return max(_CHUNK_BYTES // (4 * rows), 1)


def smoothed_cross_entropy(
  query: jax.Array,
  table: jax.Array,
  bias: jax.Array,
  answers: jax.Array,
  target_mass: float,
  chunk_size: int,
  dtype: Any,
  answer_weight: jax.Array | None = None,
) -> jax.Array:
  """Computes the same as `loss.smoothed_cross_entropy`, chunk by chunk.

  Args:
    query: float32 [B, D], the vectors that are multiplied with the entity
      embeddings, see `encoder.CoKE.query_embedding`.
    table: float32 [V or more, D]. The first V rows are the entity embeddings.
    bias: float32 [V], the bias of each entity.
    answers: int32 [B, M] entity ids. Negative numbers are padding.
    target_mass: the probability of the answer in the target distribution.
    chunk_size: C. If it exceeds V, there is one chunk of V entities.
    dtype: type of the operands of products, float32 or bfloat16.
    answer_weight: as in `loss.smoothed_cross_entropy`.

  Returns:
    float32 [B]; 0 for a row without answers.
  """
  chunk_size, limit = min(chunk_size, len(bias)), jnp.int32(len(bias))
  weight = loss.weights_of_answers(answers, answer_weight)
  sums = sums_by_chunks(
    query, table, bias, answers, weight, limit, chunk_size, dtype
  )
  return loss.from_sums(*sums, weight.sum(axis=1), target_mass, len(bias))


@functools.partial(jax.custom_vjp, nondiff_argnums=(6, 7))
def sums_by_chunks(
  query: jax.Array,
  table: jax.Array,
  bias: jax.Array,
  answers: jax.Array,
  weight: jax.Array,
  limit: jax.Array,
  chunk_size: int,
  dtype: Any,
) -> Sums:
  """Computes the three sums over entities from which the loss is computed.

  Args:
    query: as in `smoothed_cross_entropy`.
    table: as in `smoothed_cross_entropy`.
    bias: as in `smoothed_cross_entropy`.
    answers: as in `smoothed_cross_entropy`.
    weight: float32 [B, M], the factor of the logit of each answer.
    limit: int32 scalar. Entities from this id on are ignored.
    chunk_size: C, at most V.
    dtype: as in `smoothed_cross_entropy`.

  Returns:
    The logsumexp of the V logits of each row, float32 [B].
    The sum of the V logits of each row, float32 [B].
    The weighted sum of the logits of the answers of each row, float32 [B].
  """

  def add(carry: Any, index: jax.Array) -> tuple[Any, None]:
    most, exponentials, total, gold = carry
    start, new = _place(index, chunk_size, len(bias), limit)
    logits = products.logits(
      query, *_take(table, bias, start, chunk_size), dtype
    )
    column, inside = _columns(answers, start, new)
    own = jnp.take_along_axis(logits, column, axis=1)
    masked = jnp.where(new[None], logits, LOWEST)
    higher = jnp.maximum(most, masked.max(axis=1))
    exponentials *= jnp.exp(most - higher)
    exponentials += jnp.exp(masked - higher[:, None]).sum(axis=1)
    total += jnp.where(new[None], logits, 0.0).sum(axis=1)
    gold += jnp.where(inside, own * weight, 0.0).sum(axis=1)
    return (higher, exponentials, total, gold), None

  zeros = jnp.zeros(len(query), jnp.float32)
  (most, exponentials, total, gold), _ = jax.lax.scan(
    add,
    (jnp.full_like(zeros, LOWEST), zeros, zeros, zeros),
    jnp.arange(-(-len(bias) // chunk_size)),
  )
  return most + jnp.log(exponentials), total, gold


def _forward(
  query: jax.Array,
  table: jax.Array,
  bias: jax.Array,
  answers: jax.Array,
  weight: jax.Array,
  limit: jax.Array,
  chunk_size: int,
  dtype: Any,
) -> tuple[Sums, tuple[jax.Array, ...]]:
  sums = sums_by_chunks(
    query, table, bias, answers, weight, limit, chunk_size, dtype
  )
  return sums, (query, table, bias, answers, weight, limit, sums[0])


def _backward(
  chunk_size: int, dtype: Any, saved: tuple[jax.Array, ...], gradients: Sums
) -> tuple[jax.Array | None, ...]:
  query, table, bias, answers, weight, limit, normalizer = saved
  of_normalizer, of_total, of_gold = gradients
  rows = jnp.arange(len(query))[:, None]

  def add(carry: Any, index: jax.Array) -> tuple[Any, None]:
    of_query, of_table, of_bias = carry
    start, new = _place(index, chunk_size, len(bias), limit)
    logits, pull_back = jax.vjp(
      functools.partial(products.logits, dtype=dtype),
      query,
      *_take(table, bias, start, chunk_size),
    )
    softmax = jnp.exp(logits - normalizer[:, None])
    gradient = of_normalizer[:, None] * softmax + of_total[:, None]
    gradient = jnp.where(new[None], gradient, 0.0)
    column, inside = _columns(answers, start, new)
    gradient = gradient.at[rows, column].add(
      jnp.where(inside, of_gold[:, None] * weight, 0.0)
    )
    query_part, table_part, bias_part = pull_back(gradient)
    return (
      of_query + query_part,
      _add_rows(of_table, table_part, start),
      _add_rows(of_bias, bias_part, start),
    ), None

  zeros = jax.tree.map(jnp.zeros_like, (query, table, bias))
  chunks = jnp.arange(-(-len(bias) // chunk_size))
  (of_query, of_table, of_bias), _ = jax.lax.scan(add, zeros, chunks)
  # The answers and their weights are not trained.
  return of_query, of_table, of_bias, None, jnp.zeros_like(weight), None


sums_by_chunks.defvjp(_forward, _backward)


def _place(
  index: jax.Array, chunk_size: int, num_entities: int, limit: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns the first entity of a chunk and a mask bool [C].

  All chunks have C entities, so the last chunk can overlap the chunk before.
  The mask is False for the entities in this overlap, and for the entities from
  `limit` on.
  """
  start = jnp.minimum(index * chunk_size, num_entities - chunk_size)
  entity = start + jnp.arange(chunk_size)
  return start, (entity >= index * chunk_size) & (entity < limit)


def _take(
  table: jax.Array, bias: jax.Array, start: jax.Array, chunk_size: int
) -> tuple[jax.Array, jax.Array]:
  """Returns the embeddings [C, D] and biases [C] of a chunk."""
  take = jax.lax.dynamic_slice_in_dim
  return take(table, start, chunk_size), take(bias, start, chunk_size)


def _columns(
  answers: jax.Array, start: jax.Array, new: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns the columns of the answers in a chunk.

  Returns:
    int32 [B, M], the column of each answer. It is arbitrary if the answer is
    not in the chunk.
    bool [B, M], whether the answer is in the chunk and the mask of `_place` is
    True for it.
  """
  column = answers - start
  inside = (answers >= 0) & (column >= 0) & (column < len(new))
  column = jnp.clip(column, 0, len(new) - 1)
  return column, inside & new[column]


def _add_rows(table: jax.Array, rows: jax.Array, start: jax.Array) -> jax.Array:
  """Adds rows to consecutive rows of a table."""
  before = jax.lax.dynamic_slice_in_dim(table, start, len(rows))
  return jax.lax.dynamic_update_slice_in_dim(table, before + rows, start, 0)
