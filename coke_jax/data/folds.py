"""Divides the facts of a graph into folds for cross-validation."""

import numpy as np

from coke_jax.data import argument_checks, splitting, text_files

# Marks a fact that is in no fold. Every model is trained with this fact.
ALWAYS = -1


def assign(
  triples: np.ndarray, in_train: np.ndarray, folds: int, seed: int
) -> np.ndarray:
  """Chooses the fold of each fact at random.

  The model of a fold is trained without the facts of the fold. So all entities
  and relations of the fold should also occur in other training facts. For this
  reason, the training facts of each entity and relation are put into at least
  two folds. This can be impossible, for example for an entity with a single
  training fact. All training facts of such an entity or relation are in no
  fold.

  Equal facts are in the same fold, and so are (h, r, t) and (t, r, h).

  Args:
    triples: int32 [N, 3], the facts of all splits.
    in_train: bool [N], whether a fact is a training fact.
    folds: from 2 to the number of training facts.
    seed: the seed of the random choice, at least 0.

  Returns:
    int64 [N], from 0 to folds - 1, or `ALWAYS`.

  Raises:
    text_files.DataError: `folds` or `seed` is not valid.
  """
  argument_checks.check_whole_number('folds', folds, least=2)
  argument_checks.check_whole_number('seed', seed, least=0)
  if folds > in_train.sum():
    raise text_files.DataError(
      f'folds is {folds}: expected at most {in_train.sum():,}, the number of '
      'training facts'
    )
  group, num_groups = splitting.groups(triples, 'symmetric')
  generator = np.random.default_rng([seed, folds])
  order = generator.permutation(num_groups)
  fold_of_group = generator.integers(0, folds, num_groups)
  learned = np.zeros(num_groups, dtype=bool)
  learned[group[in_train]] = True
  order = order[learned[order]]
  elements = np.zeros((num_groups, 3), dtype=np.int64)
  elements[group] = _elements(triples)
  # An element is the number that `_elements` gives to an entity or relation.
  # `several` contains the elements whose facts so far are in several folds. For
  # all other elements, `only_fold` contains the fold of their facts so far.
  only_fold: dict[int, int] = {}
  several: set[int] = set()
  for one in order.tolist():
    chosen = int(fold_of_group[one])
    waiting = [e for e in elements[one].tolist() if e not in several]
    if not waiting:
      continue
    entities = [e for e in waiting if e % 2 == 0]
    for avoided in (waiting, entities):
      taken = {only_fold[e] for e in avoided if e in only_fold}
      free = [(chosen + step) % folds for step in range(folds)]
      free = [fold for fold in free if fold not in taken]
      if free:
        chosen = free[0]
        break
    fold_of_group[one] = chosen
    several.update(e for e in waiting if only_fold.get(e, chosen) != chosen)
    only_fold.update(dict.fromkeys(waiting, chosen))
  fold = fold_of_group[group]
  missing = ~np.isin(_elements(triples), list(several)).all(axis=1)
  fold[missing & in_train] = ALWAYS
  return fold


def _elements(triples: np.ndarray) -> np.ndarray:
  """Returns numbers for the head, tail and relation of facts: int64 [N, 3].

  The number of an entity is even, and that of a relation is odd.
  """
  head, relation, tail = triples.T.astype(np.int64)
  return np.stack([2 * head, 2 * tail, 2 * relation + 1], axis=1)
