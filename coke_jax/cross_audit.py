"""Audits facts with models that were not trained on them.

If wrong facts are in the training data, the trained model gives many of them a
high probability. So the facts are divided into folds. For each fold, a model is
trained on the training facts outside the fold and scores the facts in the fold.
Some training facts are in no fold; see `data.folds.assign`. The model of the
run scores these facts.
"""

import dataclasses
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from coke_jax import errors
from coke_jax.data import folds as folds_lib
from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping, user_paths
from coke_jax.predict import load, records
from coke_jax.predict import model as model_lib
from coke_jax.predict.jobs import audit as audit_lib
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import interruption, run


class CrossAuditError(errors.CokeError, ValueError):
  """The run cannot be audited with folds."""


def audit(
  workdir: str | os.PathLike[str],
  folds: int = 5,
  *,
  seed: int = 0,
  folder: str | os.PathLike[str] | None = None,
  **options: Any,
) -> records.Records[audit_lib.Suspicion]:
  """Finds the least plausible facts with models that were not trained on them.

  Every model is trained with the settings of the run. Together, the trainings
  take about `folds` times as long as the run. Interrupted trainings are
  continued.

  Args:
    workdir: the work folder of a finished run for link prediction.
    folds: the number of models, at least 2. See `data.folds.assign`.
    seed: the random seed of the division into folds.
    folder: the folder of the trainings. Default: a folder in `workdir`, named
      after the number of folds and the seed.
    **options: arguments of `Model.audit`, such as `top`.

  Returns:
    As `Model.audit`.

  Raises:
    CrossAuditError: the run is not for link prediction.
    errors.CokeError: an argument is not valid, or a training failed.
  """
  user_paths.expand(workdir, 'workdir')  # Checks the argument.
  model = load.load(workdir)
  own = judges(model, workdir, folds, seed=seed, folder=folder)
  return model.audit(judges=own, **options)


def judges(
  model: model_lib.Model,
  workdir: str | os.PathLike[str],
  folds: int,
  *,
  seed: int = 0,
  folder: str | os.PathLike[str] | None = None,
) -> Iterator[audit_lib.Judge]:
  """Trains the model of each fold and yields it as a judge for `Model.audit`.

  A judge consists of a model and the facts that this model scores. The first
  training starts when the caller requests the first judge. Before that,
  `Model.audit` checks its arguments.

  Args:
    model: the model of the run.
    workdir: as in `audit`.
    folds: as in `audit`.
    seed: as in `audit`.
    folder: as in `audit`.

  Yields:
    A judge for each fold.

  Raises:
    CrossAuditError: the run is not for link prediction.
    errors.CokeError: an argument is not valid, or a training failed.
  """
  files, data = workdir_lib.Workdir(workdir), model.data
  if not isinstance(data, graph_lib.KnowledgeGraph):
    raise CrossAuditError(
      f'{files.folder}: a run for path queries: expected a run for link '
      'prediction'
    )
  facts = facts_lib.known(data)
  fold_of_fact = folds_lib.assign(
    facts.triples, facts.split == graph_lib.SPLITS.index('train'), folds, seed
  )
  # Find the fold of each line of the training split. Lines may repeat a fact.
  finder = grouping.RowFinder(facts.triples)
  fold_of_group = np.empty(finder.num_groups, dtype=np.int64)
  fold_of_group[finder.group] = fold_of_fact
  fold_of_line = fold_of_group[finder.find(data.train)[0]]
  name = f'audit_{folds}_folds_seed_{seed}'
  place = files.folder / name
  if folder is not None:
    place = user_paths.expand(folder, 'folder')
  for fold in range(folds):
    part = dataclasses.replace(data, train=data.train[fold_of_line != fold])
    trained = place / str(fold)
    try:
      run.train_and_evaluate(files.config(), trained, split='valid', data=part)
    except interruption.Interruption as stop:
      raise interruption.Interruption(
        stop.signal_number,
        f'audit {files.folder} again with {folds} folds to continue with the '
        f'training in {trained}',
      ) from stop
    scorer = load.load(trained).predictor.scorer
    yield audit_lib.Judge(
      model.predictor.with_scorer(scorer), fold_of_fact == fold
    )
