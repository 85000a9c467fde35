"""Audits facts with models that were not trained on them.

A model gives many wrong facts a high probability, because it was trained on
them. With folds, the facts are divided into k parts. For each part, a model is
trained without it, and scores the facts of this part.
"""

import dataclasses
import os
import pathlib
from typing import Any

import numpy as np

from coke_jax import errors
from coke_jax.data import folds as folds_lib
from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping
from coke_jax.predict import load, predictor, records
from coke_jax.predict.jobs import audit as audit_lib
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import run


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

  Every model is trained with the settings of the run, which takes `folds` times
  as long as the run. Trainings that were interrupted are continued.

  Args:
    workdir: the work folder of a finished run for link prediction.
    folds: the number of models, at least 2. See `data.folds.assign`.
    seed: the seed of the division into folds.
    folder: the folder of the trainings. Default: a folder in `workdir`, whose
      name contains the number of folds and the seed.
    **options: arguments of `Model.audit`, such as `top`.

  Returns:
    As `Model.audit`. Training facts that are in no fold are scored with the
    model of the run.

  Raises:
    CrossAuditError: the run is not for link prediction.
    errors.CokeError: an argument is not valid, or a training failed.
  """
  files = workdir_lib.Workdir(workdir)
  model = load.load(workdir)
  data = model.data
  if not isinstance(data, graph_lib.KnowledgeGraph):
    raise CrossAuditError(
      f'{files.folder}: a run for path queries: expected a run for link '
      'prediction'
    )
  facts = facts_lib.known(data)
  fold_of_fact = folds_lib.assign(
    facts.triples, facts.split == graph_lib.SPLITS.index('train'), folds, seed
  )
  # The fold of each line of the training split, which may repeat a fact.
  group, count = grouping.group_rows(
    np.concatenate([facts.triples, data.train])
  )
  fold_of_group = np.empty(count, dtype=np.int64)
  fold_of_group[group[: len(facts.triples)]] = fold_of_fact
  fold_of_line = fold_of_group[group[len(facts.triples) :]]
  name = f'audit_{folds}_folds_seed_{seed}'
  place = pathlib.Path(folder or files.folder / name)
  judges = []
  for fold in range(folds):
    part = dataclasses.replace(data, train=data.train[fold_of_line != fold])
    run.train_and_evaluate(
      files.config(), place / str(fold), split='valid', data=part
    )
    trained = load.load(place / str(fold))
    judges.append(
      audit_lib.Judge(
        predictor.Predictor(trained.predictor.scorer, data),
        fold_of_fact == fold,
      )
    )
  return model.audit(judges=judges, **options)
