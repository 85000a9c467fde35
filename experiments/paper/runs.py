"""Trains or reuses the model of a table row, and writes its record.

<out>/runs/<name>/                 the work folder
<out>/runs/<name>.sittings.json    time, duration and device of each sitting:
                                   a process that trained the model
<out>/records/<name>.json          everything that tables show about the model
"""

import contextlib
import datetime
import pathlib
import time
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import ml_collections

from coke_jax import config as config_lib
from coke_jax import path_training, tasks
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.model import parameters
from coke_jax.report import environment
from coke_jax.storage import json_files
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import run as run_lib
from experiments.paper import provenance, settings

Record = dict[str, Any]
# Fields in which the models of one table row may differ.
_FREE_FIELDS = (*config_lib.RUNTIME_FIELDS, 'train.seed', 'data.dir')


def ensure_all(some: Iterable[settings.Run], out: pathlib.Path) -> None:
  """Calls `ensure` once for each name of the runs."""
  for run in {run.name: run for run in some}.values():
    ensure(run, out)


def ensure(run: settings.Run, out: pathlib.Path) -> Record:
  """Trains a model if its training is not finished, and writes its record.

  Args:
    run: the model.
    out: the folder for results.

  Returns:
    The record, as written to <out>/records.

  Raises:
    coke_jax.CokeError: the data or the work folder cannot be used.
    OSError: a file cannot be written.
  """
  workdir = workdir_lib.Workdir(work_folder(run, out))
  sittings = Sittings(workdir)
  print(f'== {run.name}')
  compile_fast(run)
  if is_finished(run, out):
    workdir.check_config(run.config)
    print(f'{workdir.folder}: finished before, reused')
  else:
    with sittings.sitting():
      run_lib.train_and_evaluate(run.config, workdir.folder)
  record = _make_record(run, workdir, sittings)
  (out / 'records').mkdir(parents=True, exist_ok=True)
  json_files.write_json(_record_path(run, out), record)
  return record


def compile_fast(run: settings.Run) -> None:
  """Turns compiler optimizations off at the smoke budget, to save time."""
  if run.budget == 'smoke':
    jax.config.update('jax_disable_most_optimizations', True)


def work_folder(run: settings.Run, out: pathlib.Path) -> pathlib.Path:
  """Returns the path of the work folder of a run."""
  return out / 'runs' / run.name


def is_finished(run: settings.Run, out: pathlib.Path) -> bool:
  """Returns whether the work folder contains a finished run with results."""
  workdir = workdir_lib.Workdir(work_folder(run, out))
  results = workdir.folder / 'results.json'
  return Sittings(workdir).finished and results.is_file()


def load_record(run: settings.Run, out: pathlib.Path) -> Record:
  """Reads the record of a run."""
  record: Record = json_files.read_json(_record_path(run, out))
  return record


def load_records(run: settings.Run, out: pathlib.Path) -> list[Record]:
  """Reads the records of all seeds of a table row.

  If the settings of a record differ from those of the row, leaves the record
  out and prints its path. If a record lacks a config field that was added
  later, the default of this field is used.

  Args:
    run: any run of the row.
    out: the folder for results.
  """
  found = []
  defaults = config_lib.flatten(config_lib.default_config())
  for path in (out / 'records').glob(f'{run.key}-seed*.json'):
    record = json_files.read_json(path)
    recorded = {**defaults, **record['config']}
    differing = [
      field
      for field, value in config_lib.flatten(run.config).items()
      if field not in _FREE_FIELDS and recorded[field] != value
    ]
    if differing:
      print(f'{path}: left out, other settings: {", ".join(differing)}')
    else:
      found.append(record)
  return sorted(found, key=lambda record: record['seed'])


class Sittings:
  """The processes that trained the model of a work folder, one entry for each.

  Attributes:
    entries: the entries, oldest first.
  """

  def __init__(self, workdir: workdir_lib.Workdir):
    self._workdir = workdir
    folder = workdir.folder
    self._path = folder.with_name(f'{folder.name}.sittings.json')
    self.entries: list[dict[str, Any]] = []
    if self._path.is_file():
      self.entries = json_files.read_json(self._path)

  @property
  def finished(self) -> bool:
    """Whether the last sitting finished the training."""
    return bool(self.entries) and self.entries[-1]['finished']

  @property
  def wall_seconds(self) -> float | None:
    """Seconds of all sittings; None if another program began the training."""
    if not self.entries or self.entries[0]['continued']:
      return None
    return sum(entry['seconds'] for entry in self.entries)

  @contextlib.contextmanager
  def sitting(self) -> Iterator[None]:
    """Records the time of a `with` statement that trains in the folder."""
    if self.entries and self.entries[-1]['seconds'] is None:
      self.entries[-1]['seconds'] = self._seconds_of_killed(self.entries[-1])
    entry = {
      'started': datetime.datetime.now(datetime.UTC).isoformat(
        timespec='seconds'
      ),
      'seconds': None,
      'continued': self._workdir.exists,
      'finished': False,
      **provenance.describe(),
    }
    self.entries.append(entry)
    self._write()
    started = time.monotonic()
    try:
      yield
      entry['finished'] = True
    finally:
      entry['seconds'] = round(time.monotonic() - started, 1)
      self._write()

  def _seconds_of_killed(self, entry: dict[str, Any]) -> float:
    """Returns the seconds from the start of a process to its last write."""
    started = datetime.datetime.fromisoformat(entry['started']).timestamp()
    folder = self._workdir.folder
    files = [folder / 'metrics.jsonl', *(folder / 'checkpoints').glob('*')]
    last = max((f.stat().st_mtime for f in files if f.exists()), default=0)
    return round(max(last - started, 0.0), 1)

  def _write(self) -> None:
    self._path.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_json(self._path, self.entries)


def count_parameters(
  config: ml_collections.ConfigDict,
  vocabulary: vocabulary_lib.Vocabulary,
  max_length: int = 3,
) -> int:
  """Counts the parameters of a model without creating them.

  Args:
    config: the settings.
    vocabulary: the labels.
    max_length: maximum number of tokens in a sequence.
  """
  model = tasks.build_model(config, vocabulary, max_length)
  return int(parameters.count_parameters(parameters.param_shapes(model)))


def _record_path(run: settings.Run, out: pathlib.Path) -> pathlib.Path:
  return out / 'records' / f'{run.name}.json'


def _make_record(
  run: settings.Run, workdir: workdir_lib.Workdir, sittings: Sittings
) -> Record:
  """Returns everything that tables show about a finished training."""
  data = workdir.data()
  task = tasks.make_task(run.config, data)
  lines = [line for line in workdir.metrics().read() if line['kind'] == 'train']
  epochs = lines[-1]['epoch']
  instances = path_training.instances_per_epoch(run.config, data) * epochs
  seconds = environment.training_seconds(run.config, data, lines)
  results = json_files.read_json(workdir.folder / 'results.json')
  trained = sittings.entries[-1]
  return {
    'name': run.name,
    'dataset': run.stand_in or run.dataset,
    'budget': run.budget,
    'stand_in': bool(run.stand_in),
    'full_length': run.budget == 'paper'
    and epochs >= run.config.train.num_epochs,
    'seed': run.seed,
    'epochs': epochs,
    'steps': lines[-1]['step'],
    'best_step': results['step'],
    'parameters': count_parameters(
      run.config, task.data.vocabulary, task.max_length
    ),
    **{
      name: trained[name]
      for name in ('device', 'processor', 'versions', 'commit', 'dirty')
      if name in trained
    },
    'started': sittings.entries[0]['started'],
    'sittings': len(sittings.entries),
    'wall_seconds': sittings.wall_seconds,
    # Seconds of the logged steps, without compilation, validation and ranking.
    'training_seconds': round(seconds, 1),
    'instances_per_second': round(instances / seconds, 1) if seconds else None,
    'config': config_lib.flatten(run.config),
    'results': _without_relations(results),
  }


def _without_relations(results: dict[str, Any]) -> dict[str, Any]:
  """Returns the results without the metrics of each relation."""
  return {
    name: _without_relations(value) if isinstance(value, dict) else value
    for name, value in results.items()
    if name != 'by_relation'
  }
