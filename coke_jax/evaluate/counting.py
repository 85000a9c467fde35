"""Counts, on device, the candidates that score better than the gold entity.

Ranks come from counting, not from sorting, so that equal scores stay equal. The
gold score is read from the same row of scores that it is compared with, because
the scores of the same query differ in their last bits between batch shapes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

Counts = dict[str, jax.Array]


def count_among(
  scores: jax.Array, gold: jax.Array, candidates: jax.Array
) -> tuple[Counts, jax.Array]:
  """Counts the candidates that score better than, or equal to, the gold entity.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is computed.
    candidates: bool [B, V], the entities that the gold entity is ranked
      against. The gold entity is always a candidate.

  Returns:
    `better`, `equal` (without the gold entity) and `candidates` (with it), each
    int32 [B]; and bool [B], whether all scores of the row are finite.
  """
  gold_score = jnp.take_along_axis(scores, gold[:, None], axis=1)  # [B, 1]
  others = candidates.at[jnp.arange(len(gold)), gold].set(False)
  counts = {
    'better': (others & (scores > gold_score)).sum(axis=1),
    'equal': (others & (scores == gold_score)).sum(axis=1),
    'candidates': others.sum(axis=1) + 1,
  }
  return counts, jnp.isfinite(scores).all(axis=1)


def count_filtered(
  scores: jax.Array,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
) -> tuple[Counts, jax.Array]:
  """Counts like `count_among`, with all entities but known answers.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is computed.
    filter_row: int32 [F], the rows of known answers. Padding has rows >= B.
    filter_entity: int32 [F], the known answers, which are no candidates.

  Returns:
    As `count_among`.
  """
  candidates = jnp.ones(scores.shape, dtype=bool)
  candidates = candidates.at[filter_row, filter_entity].set(False, mode='drop')
  return count_among(scores, gold, candidates)


def count_filtered_by_chunks(
  scores_of: Callable[[jax.Array], jax.Array],
  chunk_size: int,
  num_entities: int,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
) -> tuple[Counts, jax.Array]:
  """Counts like `count_filtered`, if not all scores fit in memory at once.

  Computes every chunk of scores twice: first to read the gold scores, then to
  compare with them. A gold score that is computed by itself would differ in its
  last bits from the scores of entities with the same embedding.

  Args:
    scores_of: returns the scores float32 [B, C] of C consecutive entities,
      given the first one.
    chunk_size: C, at most V.
    num_entities: V.
    gold: int32 [B], the entity whose rank is computed.
    filter_row: int32 [F], the rows of known answers. Padding has rows >= B.
    filter_entity: int32 [F], the known answers, which are no candidates.

  Returns:
    As `count_among`.
  """
  rows = len(gold)
  num_chunks = -(-num_entities // chunk_size)

  def place(index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the first entity of a chunk, and which entities are new: [C].

    The last chunk overlaps the one before it, so that all have one size.
    """
    start = jnp.minimum(index * chunk_size, num_entities - chunk_size)
    new = start + jnp.arange(chunk_size) >= index * chunk_size
    return start, new

  def find_gold(found: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
    start, new = place(index)
    column = gold - start  # [B]
    inside = (column >= 0) & (column < chunk_size)
    column = jnp.clip(column, 0, chunk_size - 1)
    score = jnp.take_along_axis(scores_of(start), column[:, None], axis=1)[:, 0]
    return jnp.where(inside & new[column], score, found), None

  def count(sums: Counts, index: jax.Array) -> tuple[Counts, None]:
    start, new = place(index)
    scores = scores_of(start)  # [B, C]
    others = jnp.broadcast_to(new[None], scores.shape)
    for row, entity in ((filter_row, filter_entity), (jnp.arange(rows), gold)):
      column = entity - start
      outside = (column < 0) | (column >= chunk_size)
      column = jnp.where(outside, chunk_size, column)
      others = others.at[row, column].set(False, mode='drop')
    chunk = {
      'better': (others & (scores > gold_score)).sum(axis=1),
      'equal': (others & (scores == gold_score)).sum(axis=1),
      'candidates': others.sum(axis=1),
      'not_finite': (~jnp.isfinite(scores)).sum(axis=1),
    }
    return jax.tree.map(jnp.add, sums, chunk), None

  chunks = jnp.arange(num_chunks)
  missing = jnp.full(rows, jnp.nan, dtype=jnp.float32)
  gold_score = jax.lax.scan(find_gold, missing, chunks)[0][:, None]  # [B, 1]
  names = ('better', 'equal', 'candidates', 'not_finite')
  zeros = {name: jnp.zeros(rows, dtype=jnp.int32) for name in names}
  counts, _ = jax.lax.scan(count, zeros, chunks)
  finite = counts.pop('not_finite') == 0
  return {**counts, 'candidates': counts['candidates'] + 1}, finite
