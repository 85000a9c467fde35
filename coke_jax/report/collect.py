"""Collects the content of a report from the files of a run and its model."""

import os
import shlex
import time
from collections.abc import Sequence
from typing import Any

import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax.data import arrays, leaks, text_files
from coke_jax.data import graph as graph_lib
from coke_jax.data import paths as paths_lib
from coke_jax.model import parameters
from coke_jax.plots import readable_names, run_plots
from coke_jax.predict import calibration_files, export, load
from coke_jax.predict.jobs import calibrate
from coke_jax.report import content, environment, maps, ranking
from coke_jax.storage import results as results_lib
from coke_jax.storage import workdir as workdir_lib


def collect(
  folder: str | os.PathLike[str],
  *,
  split: str = 'valid',
  entity: str | None = None,
  relations: Sequence[str] = (),
  names: str | os.PathLike[str] | None = None,
  progress: bool = False,
) -> content.Report:
  """Loads a model, ranks a split, and collects everything a report shows.

  Args:
    folder: as in `write.write_report`.
    split: as in `write.write_report`.
    entity: as in `write.write_report`.
    relations: as in `write.write_report`.
    names: as in `write.write_report`.
    progress: as in `write.write_report`.

  Raises:
    errors.CokeError: as in `write.write_report`.
  """
  started = time.monotonic()
  if split not in graph_lib.SPLITS:
    raise config_lib.ConfigError(
      f'split is {split!r}: expected train, valid or test'
    )
  given = {} if names is None else readable_names.read_names(names)
  loaded = load.load_with_task(folder)
  data, config = loaded.task.data, loaded.config
  chosen = maps.choose(data, entity, relations)
  exported = export.is_export(folder)
  typed = shlex.quote(os.fspath(folder))
  log = workdir_lib.Workdir(folder).metrics().read()
  ranked = _ranking(loaded, split, typed, progress)
  times = {}
  seconds = environment.training_seconds(config, data, log)
  if seconds:
    times['Training steps (from the logged speed)'] = environment.duration(
      seconds
    )
  if isinstance(ranked, content.Ranking):
    times[f'Ranking of the {split} split'] = environment.duration(
      ranked.seconds
    )
  report = content.Report(
    name=config.data.name,
    about_paths=isinstance(data, paths_lib.PathData),
    exported=exported,
    summary=_summary(loaded),
    entities=data.vocabulary.num_entities,
    relations=data.vocabulary.num_relations,
    step=loaded.step,
    epoch=next(
      (line['epoch'] for line in log if line['step'] == loaded.step), None
    ),
    test=_test_results(folder, loaded, ranked, typed, exported),
    ranking=ranked,
    curves=_curves(config.data.name, log, typed, exported),
    calibration=_calibration(folder, loaded, typed, exported),
    maps=maps.compute(loaded.model, chosen, given),
    counts=tuple(_counts(data, name) for name in graph_lib.SPLITS),
    leaks=_leaks(data),
    settings=_settings(config),
    versions=environment.versions(folder, exported),
    times=times,
    names=given,
  )
  times['This report'] = environment.duration(time.monotonic() - started)
  times['Created'] = time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())
  return report


def _ranking(
  loaded: load.Loaded, split: str, typed: str, progress: bool
) -> content.Ranking | content.Missing:
  data = loaded.task.data
  if len(data.split(split)):
    return ranking.rank(loaded, split, progress=progress)
  others = [name for name in ('valid', 'test') if len(data.split(name))]
  other = others[0] if others else 'train'
  return content.Missing(
    f'The {split} split is empty. This command ranks the {other} split:',
    f'coke report {typed} --split={other} --output=report.html',
  )


def _test_results(
  folder: str | os.PathLike[str],
  loaded: load.Loaded,
  ranked: content.Ranking | content.Missing,
  typed: str,
  exported: bool,
) -> dict[str, Any] | content.Missing:
  if not len(loaded.task.data.split('test')):
    return content.Missing('The test split is empty.')
  if isinstance(ranked, content.Ranking) and ranked.split == 'test':
    return ranked.results
  found = results_lib.read(folder, 'test', loaded.step)
  if found is not None:
    is_path = isinstance(loaded.task.data, paths_lib.PathData)
    expected = 'by_length' if is_path else 'by_category'
    if expected not in found:
      raise workdir_lib.WorkdirError(
        f'{folder}: results.json has no {expected}: expected a file that '
        'coke evaluate wrote'
      )
    return found
  reason = (
    'There is no results.json with the test metrics of this checkpoint. This '
    'command computes them:'
  )
  if exported:  # Evaluation cannot write to the folder of an exported model.
    return content.Missing(
      reason, f'coke report {typed} --split=test --output=report.html'
    )
  return content.Missing(reason, f'coke evaluate {typed}')


def _curves(
  dataset: str, log: list[dict[str, Any]], typed: str, exported: bool
) -> dict[str, Any] | content.Missing:
  if exported:
    return content.Missing(
      'An exported model has no training log. The report of its work folder '
      'shows the curves.'
    )
  if not log:
    return content.Missing(
      'metrics.jsonl has no lines. This command trains the model:',
      f'coke train --workdir={typed}',
    )
  try:
    return run_plots.curves(dataset, log)
  except KeyError as error:
    raise text_files.DataError(
      f'metrics.jsonl: a line has no {error}: expected a file that training '
      'wrote'
    ) from error


def _calibration(
  folder: str | os.PathLike[str],
  loaded: load.Loaded,
  typed: str,
  exported: bool,
) -> content.Calibration | content.Missing:
  """Measures the calibration on test, or on valid if it was fitted to test."""
  fitted = loaded.model.calibration
  if fitted is None:
    name = calibration_files.NAME
    reason = f'The folder contains no {name}.'
    if (workdir_lib.Workdir(folder).folder / name).is_file():
      reason = f'{name} belongs to another checkpoint.'
    if exported:
      return content.Missing(
        f'{reason} Run "coke calibrate" with the work folder, and export the '
        'model again.'
      )
    return content.Missing(
      f'{reason} This command calibrates the model on the valid split:',
      f'coke calibrate {typed}',
    )
  split = 'valid' if fitted.split == 'test' else 'test'
  used = len(loaded.task.data.split(split)) > 0
  return content.Calibration(
    fitted.split,
    split,
    tuple(loaded.model.reliability(split)) if used else (),
    tuple(
      (precision, fitted.threshold(precision))
      for precision in calibrate.PRECISIONS
    ),
  )


def _counts(data: arrays.DataSet, split: str) -> content.SplitCounts:
  part: Any = data.split(split)
  lengths: dict[int, int] = {}
  deduction = None
  if isinstance(data, paths_lib.PathData):
    counts = np.bincount(part.length, minlength=1)
    lengths = {int(k): int(counts[k]) for k in np.flatnonzero(counts)}
    if split in data.deduction:
      deduction = int(data.deduction[split].sum())
  return content.SplitCounts(
    split,
    len(part),
    len(part) - data.num_distinct(split),
    int(data.has_unseen_entity(part).sum()),
    lengths,
    deduction,
  )


def _leaks(data: arrays.DataSet) -> leaks.LeakReport | content.Missing:
  if isinstance(data, graph_lib.KnowledgeGraph):
    return leaks.find(data)
  edges = data.single_edges()
  if len(edges.train):
    return leaks.find(edges)
  return content.Missing(
    'Leaks are searched among paths with a single relation, and train has no '
    'such path.'
  )


def _settings(config: ml_collections.ConfigDict) -> tuple[content.Setting, ...]:
  flat = config_lib.flatten(config)
  defaults = config_lib.flatten(config_lib.default_config())
  return tuple(
    content.Setting(
      field, repr(flat[field]), repr(defaults[field]), description
    )
    for field, _, description in config_lib.describe()
  )


def _summary(loaded: load.Loaded) -> str:
  settings, train = loaded.config.model, loaded.config.train
  data, number = loaded.task.data, settings.num_members
  what = 'paths' if isinstance(data, paths_lib.PathData) else 'triples'
  size = parameters.count_parameters(
    parameters.param_shapes(loaded.model.encoder)
  )
  blocks = _count(settings.num_layers, 'Transformer block')
  model = f'One model with {blocks} of width {settings.hidden_size}'
  if number > 1:
    model = (
      f'{number} models with {blocks} of width {settings.hidden_size} each, '
      'whose mean score ranks the entities'
    )
  return (
    f'{model}; {size:,} parameters in all. Trained on {len(data.train):,} '
    f'{what} for {_count(train.num_epochs, "epoch")} in batches of '
    f'{train.batch_size:,} rows.'
  )


def _count(number: float, what: str) -> str:
  """Returns a number and a noun, such as `1 epoch` or `2.5 epochs`."""
  return f'{number:g} {what}' + ('' if number == 1 else 's')
