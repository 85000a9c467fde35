"""On device: from logits to the place of the gold entity among the others."""

import jax
import jax.numpy as jnp


def count_against(
  scores: jax.Array,
  gold: jax.Array,
  filter_row: jax.Array,
  filter_entity: jax.Array,
) -> dict[str, jax.Array]:
  """Counts the entities that score better than, or the same as, the gold one.

  Ranks come from counting, not from sorting: equal scores stay equal.

  Args:
    scores: float32 [B, V].
    gold: int32 [B], the entity whose rank is asked for.
    filter_row: int32 [F], and
    filter_entity: int32 [F]: pairs of a row and an entity known to fit, which
      do not compete. The gold entity may be among them and does compete.
      Filled up with a row >= B.

  Returns:
    better, equal (without the gold one), candidates (with the gold one): int32
    [B]; finite: bool [B], whether all scores of the row are numbers.
  """
  gold_score = jnp.take_along_axis(scores, gold[:, None], axis=1)  # [B, 1]
  finite = jnp.isfinite(scores).all(axis=1)
  competing = jnp.ones(scores.shape, dtype=bool)
  competing = competing.at[filter_row, filter_entity].set(False, mode='drop')
  competing = competing.at[jnp.arange(len(gold)), gold].set(True)
  better = (competing & (scores > gold_score)).sum(axis=1)
  equal = (competing & (scores == gold_score)).sum(axis=1) - 1
  return {
    'better': better,
    'equal': equal,
    'candidates': competing.sum(axis=1),
    'finite': finite,
  }
