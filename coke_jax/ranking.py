"""On device: from logits to the place of the gold entity among the others.

Ranks come from counting, not from sorting: equal scores stay equal. The gold
score is read from the same row of scores that it is compared with, because the
same query's scores differ in their last bits between batch shapes.
"""

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
