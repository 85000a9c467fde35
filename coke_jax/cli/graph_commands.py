"""The commands `discover`, `audit` and `calibrate`.

Every function takes the settings and the path of a work folder. `discover` and
`audit` also accept an exported model. Each keyword argument is the flag of the
same name in `flags.TABLE`.
"""

import contextlib
import os
import sys
from typing import Any

import ml_collections

from coke_jax import cross_audit
from coke_jax.cli import checks, flags, output_lines
from coke_jax.plots import reliability_plots
from coke_jax.predict import calibration_files, load
from coke_jax.predict import model as model_lib
from coke_jax.predict.jobs import calibrate as calibrate_lib


def discover(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  format: str,
  top: int,
  relation: str,
  per_head: int,
  splits: str,
  any_type: bool,
) -> None:
  """Writes the most plausible facts that are not known."""
  model = load_model(config, workdir, output)
  found = model.discover(
    checks.split_relations(model.data.vocabulary, relation),
    top=top,
    per_head=per_head or None,
    splits=splits.split(','),
    type_matching=not any_type,
    progress=True,
  )
  number = output_lines.write_records(
    output,
    format,
    lambda record: {
      **_triple(record.fact),
      'score': record.score,
      'probability': record.probability,
      'known_tails': record.known_tails,
    },
    ('head', 'relation', 'tail', 'score', 'probability', 'known_tails'),
    [({}, record) for record in found],
    model.data.vocabulary,
  )
  _report(f'found {output_lines.count(number, "new fact")}', output)


def audit(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  output: str,
  format: str,
  top: int,
  relation: str,
  splits: str,
  folds: int = 0,
) -> None:
  """Writes the known facts that the model considers least plausible."""
  model = load_model(config, workdir, output)
  # The trainings of the folds print, but standard output is for records.
  with contextlib.redirect_stdout(sys.stderr):
    found = model.audit(
      checks.split_relations(model.data.vocabulary, relation),
      top=top,
      splits=splits.split(','),
      progress=True,
      judges=cross_audit.judges(model, workdir, folds) if folds else (),
    )
  names = (
    'tail_rank',
    'head_rank',
    'expected_tails',
    'expected_heads',
    'known_in',
  )
  number = output_lines.write_records(
    output,
    format,
    lambda record: {
      **_triple(record.fact),
      'score': record.score,
      **{name: getattr(record, name) for name in names},
    },
    ('head', 'relation', 'tail', 'score', *names),
    [({}, record) for record in found],
    model.data.vocabulary,
  )
  others = sum(one.known_in != 'train' for one in found)
  if 'train' in splits.split(',') and not folds and others > len(found) / 2:
    print(
      f'note: {others} of these {len(found)} facts are in valid or test. The '
      'model was not trained on them, so their scores are lower. '
      '--splits=train audits only training facts. --folds=5 scores each fact '
      'with a model that was trained without it',
      file=sys.stderr,
    )
  _report(f'found {output_lines.count(number, "fact")}', output)


def calibrate(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  *,
  split: str,
  output: str,
) -> None:
  """Fits the calibration on the valid split and stores it in the work folder.

  Prints the reliability on `split`, and the lowest score that reaches each of
  several precisions.
  """
  checks.trained_workdir(config, workdir, may_be_exported=False)
  model = load.load(workdir)
  calibration = model.calibrate('valid')
  names = ('low', 'high', 'predicted', 'observed', 'count')
  bins = model.reliability(split) if len(model.data.split(split)) else []
  print('\t'.join(names))
  for one in bins:
    cells = [f'{getattr(one, name):.4g}' for name in names[:-1]]
    print('\t'.join([*cells, str(one.count)]))
  print('\nprecision\tscore')
  for precision in calibrate_lib.PRECISIONS:
    score = calibration.threshold(precision)
    print(f'{precision}\t{"" if score is None else f"{score:.4g}"}')
  path = calibration_files.write(
    workdir, calibration, model.predictor.scorer.whole_params()
  )
  written = [path]
  if output != flags.STANDARD:
    written += reliability_plots.draw(bins, split, output)
  _report('calibrated on valid', ' '.join(map(str, written)))


def load_model(
  config: ml_collections.ConfigDict,
  workdir: str | os.PathLike[str],
  output: str,
) -> model_lib.Model:
  """Loads the model after checking the work folder and --output."""
  checks.trained_workdir(config, workdir)
  checks.protect_files(output, '', workdir)
  return load.load(workdir)


def _triple(fact: tuple[str, ...]) -> dict[str, Any]:
  return dict(zip(('head', 'relation', 'tail'), fact, strict=True))


def _report(done: str, output: str) -> None:
  output_lines.report([done], 0, output)
