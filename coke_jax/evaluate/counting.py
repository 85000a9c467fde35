"""Counts the candidates with a higher score than the answer.

The answer whose rank is computed is called the gold entity. Ranks are computed
by counting, because sorting would put equal scores in an arbitrary order. The
score of the gold entity is taken from the array with the scores of all
entities. If this score were computed separately, its last bits could differ,
because the last bits depend on the shape of the batch.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

Counts = dict[str, jax.Array]
_NOT_FINITE = 'not_finite'


SumParts = Callable[[jax.Array], jax.Array]


def count_among(
  scores: jax.Array,
  gold: jax.Array,
  candidates: jax.Array,
  sum_parts: SumParts | None = None,
) -> tuple[Counts, jax.Array]:
  """Counts the candidates with a higher score, and those with an equal score.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is computed.
    candidates: bool [B, V], True for the entities in the ranking. The gold
      entity counts as a candidate even if its value is False.
    sum_parts: a function that sums an array over the devices, if each device
      has a part of the V columns. `gold` is then the column of the gold entity
      on this device, or negative if another device has it. Default: this device
      has all columns.

  Returns:
    A dictionary of three arrays int32 [B]:
      `better`: the number of candidates with a higher score than the gold
        entity.
      `equal`: the number of other candidates with the score of the gold entity.
      `candidates`: the number of candidates, including the gold entity.
    bool [B]: whether all V scores of a row are finite.
  """
  column = gold if sum_parts is None else jnp.maximum(gold, 0)
  gold_score = jnp.take_along_axis(scores, column[:, None], axis=1)  # [B, 1]
  if sum_parts is not None:
    gold_score = sum_parts(jnp.where(gold[:, None] >= 0, gold_score, 0.0))
    column = jnp.where(gold >= 0, gold, scores.shape[1])
  others = candidates.at[jnp.arange(len(gold)), column].set(False, mode='drop')
  counts = {
    'better': (others & (scores > gold_score)).sum(axis=1),
    'equal': (others & (scores == gold_score)).sum(axis=1),
    'candidates': others.sum(axis=1),
    _NOT_FINITE: (~jnp.isfinite(scores)).sum(axis=1),
  }
  return _total(counts, sum_parts)


def count_filtered(
  scores: jax.Array,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
  filter_of: jax.Array | None = None,
) -> tuple[Counts, jax.Array]:
  """Does the same as `count_among` in the filtered setting.

  The candidates are all entities except the known answers. The gold entity is
  always a candidate. A filter is a set of known answers.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is computed.
    filter_row: int32 [F], the filter that each known answer belongs to. Values
      of B or more are padding and have no effect.
    filter_entity: int32 [F], the entity id of each known answer.
    filter_of: int32 [B], the filter of each row. Rows with the same known
      answers can share a filter. Default: row i has filter i.

  Returns:
    The same as `count_among`.
  """
  candidates = jnp.ones(scores.shape, dtype=bool)
  candidates = candidates.at[filter_row, filter_entity].set(False, mode='drop')
  if filter_of is not None:
    candidates = candidates[filter_of]
  return count_among(scores, gold, candidates)


def count_filtered_by_chunks(
  scores_of: Callable[[jax.Array], jax.Array],
  chunk_size: int,
  num_entities: int,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
  filter_of: jax.Array | None = None,
  *,
  limit: jax.Array | None = None,
  sum_parts: SumParts | None = None,
) -> tuple[Counts, jax.Array]:
  """Does the same as `count_filtered`, but scores one chunk at a time.

  Use this function if the scores of all entities do not fit in memory. Every
  chunk of scores is computed twice: first to read the scores of the gold
  entities, then to compare all scores with the scores of the gold entities.

  Args:
    scores_of: a function of an entity id. It returns float32 [B, C], the scores
      of this entity and of the C - 1 entities with the next ids.
    chunk_size: C, the number of entities in a chunk, at most V.
    num_entities: V, the number of entities. With `sum_parts`, the number of
      columns on this device.
    gold: int32 [B], the entity whose rank is computed.
    filter_row: int32 [chunks, F], the filter that each known answer belongs to.
      Values of B or more are padding and have no effect.
    filter_entity: int32 [chunks, F], the entity id of each known answer. Row i
      contains the known answers in chunk i, which consists of the entities
      i * C to i * C + C - 1. Entities of other chunks have no effect.
    filter_of: as in `count_filtered`.
    limit: int32 scalar. Entities from this id on are no candidates. Default: V.
    sum_parts: as in `count_among`. The ids of `gold` and `filter_entity` are
      then columns on this device, or negative if another device has them.

  Returns:
    The same as `count_among`.
  """
  rows = len(gold)
  num_chunks = -(-num_entities // chunk_size)

  def place(index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the first entity of a chunk and a mask bool [C].

    All chunks have C entities, so the last chunk can overlap the chunk before.
    The mask is False for the entities in this overlap, and for the entities
    from `limit` on.
    """
    start = jnp.minimum(index * chunk_size, num_entities - chunk_size)
    entity = start + jnp.arange(chunk_size)
    new = entity >= index * chunk_size
    return start, new if limit is None else new & (entity < limit)

  def find_gold(found: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
    start, new = place(index)
    column = gold - start  # [B]
    inside = (column >= 0) & (column < chunk_size)
    column = jnp.clip(column, 0, chunk_size - 1)
    score = jnp.take_along_axis(scores_of(start), column[:, None], axis=1)[:, 0]
    return jnp.where(inside & new[column], score, found), None

  def count(
    sums: Counts, one: tuple[jax.Array, jax.Array, jax.Array]
  ) -> tuple[Counts, None]:
    index, filters, entities = one
    start, new = place(index)
    scores = scores_of(start)  # [B, C]
    others = exclude(jnp.ones(scores.shape, bool), filters, entities - start)
    if filter_of is not None:
      others = others[filter_of]
    others = exclude(others, jnp.arange(rows), gold - start) & new[None]
    chunk = {
      'better': (others & (scores > gold_score)).sum(axis=1),
      'equal': (others & (scores == gold_score)).sum(axis=1),
      'candidates': others.sum(axis=1),
      _NOT_FINITE: (~jnp.isfinite(scores)).sum(axis=1),
    }
    return jax.tree.map(jnp.add, sums, chunk), None

  def exclude(
    others: jax.Array, row: jax.Array, column: jax.Array
  ) -> jax.Array:
    outside = (column < 0) | (column >= chunk_size)
    column = jnp.where(outside, chunk_size, column)
    return others.at[row, column].set(False, mode='drop')

  chunks = jnp.arange(num_chunks)
  missing = jnp.full(rows, 0.0 if sum_parts else jnp.nan, dtype=jnp.float32)
  gold_score = jax.lax.scan(find_gold, missing, chunks)[0][:, None]  # [B, 1]
  if sum_parts is not None:
    gold_score = sum_parts(gold_score)
  names = ('better', 'equal', 'candidates', _NOT_FINITE)
  zeros = {name: jnp.zeros(rows, dtype=jnp.int32) for name in names}
  counts, _ = jax.lax.scan(count, zeros, (chunks, filter_row, filter_entity))
  return _total(counts, sum_parts)


def _total(
  counts: Counts, sum_parts: SumParts | None
) -> tuple[Counts, jax.Array]:
  """Sums counts over the devices, and adds the gold entity to the candidates.

  Returns:
    The same as `count_among`.
  """
  if sum_parts is not None:
    counts = {name: sum_parts(count) for name, count in counts.items()}
  finite = counts.pop(_NOT_FINITE) == 0
  return {**counts, 'candidates': counts['candidates'] + 1}, finite
