"""On device: from logits to the place of the gold entity among the others.

Ranks come from counting, not from sorting: equal scores stay equal. The gold
score is read from the same row of scores that it is compared with, because the
same query's scores differ in their last bits between batch shapes.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

Counts = dict[str, jax.Array]


def count_among(
  scores: jax.Array, gold: jax.Array, competing: jax.Array
) -> Counts:
  """Counts the competitors that score better than, or like, the gold entity.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is asked for.
    competing: bool [B, V], the entities it is ranked against; it is never its
      own competitor, whatever is said here.

  Returns:
    better, equal and competitors: int32 [B]; finite: bool [B], whether all
    scores of the row are numbers.
  """
  gold_score = jnp.take_along_axis(scores, gold[:, None], axis=1)  # [B, 1]
  competing = competing.at[jnp.arange(len(gold)), gold].set(False)
  return {
    'better': (competing & (scores > gold_score)).sum(axis=1),
    'equal': (competing & (scores == gold_score)).sum(axis=1),
    'competitors': competing.sum(axis=1),
    'finite': jnp.isfinite(scores).all(axis=1),
  }


def count_filtered(
  scores: jax.Array,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
) -> Counts:
  """Like `count_among`, against all entities but those known to fit.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is asked for.
    filter_row: int32 [F], and
    filter_entity: int32 [F]: pairs of a row and an entity known to fit, which
      does not compete. Filled up with a row >= B.

  Returns:
    As `count_among`.
  """
  competing = jnp.ones(scores.shape, dtype=bool)
  competing = competing.at[filter_row, filter_entity].set(False, mode='drop')
  return count_among(scores, gold, competing)


def count_filtered_by_chunks(
  scores_of: Callable[[jax.Array], jax.Array],
  chunk: int,
  num_entities: int,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
) -> Counts:
  """Like `count_filtered`, for more scores than fit in memory at once.

  Every chunk of scores is computed twice: first for the gold scores, then to
  compare with them. Computed apart from its row, a gold score would differ in
  its last bits from the scores of equal entities.

  Args:
    scores_of: gives float32 [B, chunk], the scores of the entities from a
      number on.
    chunk: C, at most V.
    num_entities: V.
    gold: int32 [B].
    filter_row: int32 [F], and
    filter_entity: int32 [F]: as in `count_filtered`.

  Returns:
    As `count_filtered`.
  """
  rows = len(gold)
  num_chunks = -(-num_entities // chunk)

  def place(index: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Where a chunk starts, and which of its entities are not of others: [C].

    The last chunk reaches back, so that all are of one size.
    """
    start = jnp.minimum(index * chunk, num_entities - chunk)
    own = start + jnp.arange(chunk) >= index * chunk
    return start, own

  def find_gold(found: jax.Array, index: jax.Array) -> tuple[jax.Array, None]:
    start, own = place(index)
    column = gold - start  # [B]
    inside = (column >= 0) & (column < chunk)
    column = jnp.clip(column, 0, chunk - 1)
    score = jnp.take_along_axis(scores_of(start), column[:, None], axis=1)[:, 0]
    return jnp.where(inside & own[column], score, found), None

  def count(sums: Counts, index: jax.Array) -> tuple[Counts, None]:
    start, own = place(index)
    scores = scores_of(start)  # [B, C]
    competing = jnp.broadcast_to(own[None], scores.shape)
    for row, entity in ((filter_row, filter_entity), (jnp.arange(rows), gold)):
      column = entity - start
      column = jnp.where((column < 0) | (column >= chunk), chunk, column)
      competing = competing.at[row, column].set(False, mode='drop')
    here = {
      'better': (competing & (scores > gold_score)).sum(axis=1),
      'equal': (competing & (scores == gold_score)).sum(axis=1),
      'competitors': competing.sum(axis=1),
      'infinite': (~jnp.isfinite(scores)).sum(axis=1),
    }
    return jax.tree.map(jnp.add, sums, here), None

  chunks = jnp.arange(num_chunks)
  missing = jnp.full(rows, jnp.nan, dtype=jnp.float32)
  gold_score = jax.lax.scan(find_gold, missing, chunks)[0][:, None]  # [B, 1]
  names = ('better', 'equal', 'competitors', 'infinite')
  zeros = {name: jnp.zeros(rows, dtype=jnp.int32) for name in names}
  counts, _ = jax.lax.scan(count, zeros, chunks)
  finite = counts.pop('infinite') == 0
  return {**counts, 'finite': finite}
