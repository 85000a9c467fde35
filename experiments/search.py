"""Searches for the best values of settings.

    python -m experiments.search --config=configs/codex_s.py --out=search \
      --set model.input_dropout=0.3..0.7 --set train.batch_size=128,256 \
      --set train.learning_rate=5e-4..5e-3@log --trials=20 --rungs=3

Each trial trains with one choice of values. Without `--trials`, every
combination of values is one trial, and ranges are errors. Each training has a
work folder below `--out`. Without `--rungs`, a trial has one training. With
`--rungs=3`, a trial has up to three trainings, called rungs, with a ninth, a
third and all of the config's epochs. A trial continues after a rung only if its
valid metric is among the best third of the rung (asynchronous successive
halving, Li et al. 2020). The test split is not used.

Writes search.json, search.md and search.png. search.sqlite3 records all trials.
The same command continues an interrupted search. A larger `--trials` extends a
finished search. Needs `pip install '.[search,plots]'`.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import optuna

from coke_jax import builtin_configs
from coke_jax.storage import json_files, workdir
from experiments import search_report, search_space
from experiments.paper import options as options_lib

REDUCTION = 3  # ratio of the epochs of two successive rungs
# With this variable, several trainings can share a GPU.
_ENVIRONMENT = {'XLA_PYTHON_CLIENT_PREALLOCATE': 'false'}
# The exit statuses of a training that SIGINT or SIGTERM ended.
_INTERRUPTED = (
  *(128 + number for number in (signal.SIGINT, signal.SIGTERM)),
  *(-number for number in (signal.SIGINT, signal.SIGTERM)),
)


class TrainingFailedError(RuntimeError):
  """A training ended with an error. The message is the path of its log."""


def train(config: str, chosen: Mapping[str, Any], folder: pathlib.Path) -> None:
  """Trains with the chosen settings in a new process.

  An interrupted training in `folder` is continued.

  Raises:
    KeyboardInterrupt: the training was interrupted.
    TrainingFailedError: the training ended with an error.
  """
  log_path = folder.with_name(f'{folder.name}.log')
  folder.parent.mkdir(parents=True, exist_ok=True)
  with log_path.open('w', encoding='utf-8') as log:
    done = subprocess.run(
      [
        sys.executable,
        '-m',
        'coke_jax.main',
        f'--config={config}',
        f'--workdir={folder}',
        '--split=valid',
        *(f'--config.{field}={value}' for field, value in chosen.items()),
      ],
      stdout=log,
      stderr=subprocess.STDOUT,
      env={**_ENVIRONMENT, **os.environ},
      check=False,
    )
  if done.returncode in _INTERRUPTED:
    raise KeyboardInterrupt
  if done.returncode:
    raise TrainingFailedError(str(log_path))


def best_validation(folder: pathlib.Path) -> dict[str, Any]:
  """Reads the metrics of the best checkpoint from the log.

  Returns:
    The `step`, the `epoch`, `hits@10`, and the metric that selects the best
    checkpoint: `mrr` for triples, `mean_quantile` for paths.
  """
  kept = json_files.read_json(folder / 'results_valid.json')['step']
  line = next(
    line
    for line in workdir.Workdir(folder).metrics().read()
    if line['kind'] == 'valid' and line['step'] == kept
  )
  # For triples, `both` has the metrics over heads and tails together.
  measured = line.get('both', line)
  return {
    'step': kept,
    'epoch': line['epoch'],
    **{
      name: measured[name] for name in search_report.METRICS if name in measured
    },
  }


def open_study(
  out: pathlib.Path,
  space: search_space.Distributions,
  trials: int | None,
) -> optuna.Study:
  """Opens or creates the study of a folder.

  An interrupted or failed trial is queued again with the same values, and
  continues its training.

  Args:
    out: the folder.
    space: the possible values of each field.
    trials: the number of trials, or None for all combinations.
  """
  out.mkdir(parents=True, exist_ok=True)
  combinations = (
    [] if trials is not None else search_space.all_combinations(space)
  )
  study = optuna.create_study(
    storage=f'sqlite:///{out / "search.sqlite3"}',
    study_name='search',
    direction='maximize',
    load_if_exists=True,
    pruner=optuna.pruners.SuccessiveHalvingPruner(
      min_resource=1, reduction_factor=REDUCTION
    ),
  )
  # The seed must differ each time the study is opened. Otherwise, a continued
  # study would draw its first values again.
  study.sampler = optuna.samplers.TPESampler(
    seed=len(study.get_trials(deepcopy=False)), multivariate=True
  )
  for trial in study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
    study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
  for trial in unfinished(study):
    study.enqueue_trial(trial.params)
  for combination in combinations:
    study.enqueue_trial(combination, skip_if_exists=True)
  return study


def unfinished(study: optuna.Study) -> list[optuna.trial.FrozenTrial]:
  """Returns the last failed trial of each combination without another trial."""
  trials = study.get_trials()
  # A trial in the queue has no `params` yet.
  others = [
    one.system_attrs.get('fixed_params', one.params)
    if one.state == optuna.trial.TrialState.WAITING
    else one.params
    for one in trials
    if one.state != optuna.trial.TrialState.FAIL
  ]
  failed = {
    json.dumps(one.params, sort_keys=True): one
    for one in trials
    if one.state == optuna.trial.TrialState.FAIL and one.params not in others
  }
  return list(failed.values())


def objective(
  trial: optuna.Trial,
  config: str,
  out: pathlib.Path,
  epochs: Sequence[float],
) -> float:
  """Trains one trial rung by rung. Returns the valid metric of the last rung.

  Raises:
    optuna.TrialPruned: the trial is not among the best of a rung.
    TrainingFailedError: a training ended with an error.
  """
  chosen = trial.params
  rungs: list[dict[str, Any]] = []
  for rung, num_epochs in enumerate(epochs):
    settings = dict(chosen)
    if len(epochs) > 1:
      settings['train.num_epochs'] = num_epochs
    folder = out / _name(settings)
    train(config, settings, folder)
    rungs.append({'num_epochs': num_epochs, **best_validation(folder)})
    trial.set_user_attr('rungs', rungs)
    metric = next(name for name in search_report.METRICS if name in rungs[-1])
    value = float(rungs[-1][metric])
    print(json.dumps({'set': chosen, **rungs[-1]}), flush=True)
    trial.report(value, step=REDUCTION**rung)
    if rung + 1 < len(epochs) and trial.should_prune():
      raise optuna.TrialPruned
  return value


def main(arguments: Sequence[str] | None = None) -> None:
  """Runs the search and prints the table."""
  parser = options_lib.new_parser(__doc__)
  add = parser.add_argument
  add('--config', required=True, help='name or file of a config')
  add(
    '--set',
    action='append',
    default=[],
    metavar='FIELD=VALUES',
    help=f'values to try: {search_space.FORMS}; may be repeated',
  )
  positive = options_lib.positive
  add(
    '--trials',
    type=positive,
    help='number of trials; default: all combinations',
  )
  add(
    '--rungs',
    type=positive,
    default=1,
    help='maximum number of trainings of a trial; default: 1',
  )
  add(
    '--parallel',
    type=positive,
    default=1,
    metavar='N',
    help='simultaneous trainings; default: 1',
  )
  add('--out', type=pathlib.Path, required=True, help='folder for all results')
  given = parser.parse_args(arguments)
  try:
    space = search_space.distributions(given.set)
    study = open_study(given.out, space, given.trials)
  except ValueError as error:
    parser.error(str(error))
  if given.rungs > 1 and 'train.num_epochs' in space:
    parser.error('--set train.num_epochs cannot be used with --rungs')
  optuna.logging.set_verbosity(optuna.logging.WARNING)
  try:
    _run(study, space, given)
  except KeyboardInterrupt:
    print('interrupted: the same command continues the search', file=sys.stderr)
    sys.exit(128 + signal.SIGINT)
  tried = search_report.summarize(study)
  if tried:
    print(search_report.report(tried, given.out))
  failed = [trial.user_attrs['failed'] for trial in unfinished(study)]
  if failed:
    sys.exit('error: some trainings failed: see ' + ', '.join(failed))


def _run(
  study: optuna.Study,
  space: search_space.Distributions,
  given: argparse.Namespace,
) -> None:
  full = float(builtin_configs.load(given.config).train.num_epochs)
  epochs = [
    full / REDUCTION ** (given.rungs - 1 - rung) for rung in range(given.rungs)
  ]

  finished = (optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED)
  done = len(study.get_trials(deepcopy=False, states=finished))
  count = given.trials or len(search_space.all_combinations(space))

  def run(_: int) -> None:
    trial = study.ask(space)
    try:
      value = objective(trial, given.config, given.out, epochs)
      study.tell(trial, value)
    except optuna.TrialPruned:
      study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    except TrainingFailedError as error:
      trial.set_user_attr('failed', str(error))
      study.tell(trial, state=optuna.trial.TrialState.FAIL)

  with concurrent.futures.ThreadPoolExecutor(given.parallel) as pool:
    list(pool.map(run, range(count - done)))


def _name(chosen: Mapping[str, Any]) -> str:
  name = ','.join(f'{field}={value}' for field, value in chosen.items())
  return re.sub(r'[^\w.,=+-]', '_', name) or 'as_it_is'


if __name__ == '__main__':
  main()
