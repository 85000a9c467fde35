"""Training a model of a table, or reusing it, and the record of it.

<out>/runs/<name>/                 the work folder
<out>/runs/<name>.sittings.json    when it was trained, where, for how long
<out>/records/<name>.json          all that tables say of it
"""

import contextlib
import datetime
import pathlib
import shutil
import time
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import numpy as np

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.cli import data_commands
from coke_jax.data import paths as paths_lib
from coke_jax.model import encoder
from coke_jax.storage import json_files, workdir
from coke_jax.training import run as run_lib
from experiments.paper import provenance, settings

Record = dict[str, Any]
# Fields in which the models of one row of a table may differ.
_FREE_FIELDS = (*config_lib.RUNTIME_FIELDS, 'train.seed', 'data.dir')


def ensure_all(some: Iterable[settings.Run], out: pathlib.Path) -> None:
  """`ensure` for several models; data sets with one stand-in share one."""
  for run in {run.name: run for run in some}.values():
    ensure(run, out)


def ensure(run: settings.Run, out: pathlib.Path) -> Record:
  """Trains a model, unless its work folder is finished, and records it.

  Args:
    run: the model.
    out: where results go.

  Returns:
    The record, as it is written to <out>/records.

  Raises:
    One of `coke_jax.modes.EXPECTED_ERRORS`.
  """
  place = workdir.Workdir(work_folder(run, out))
  sittings = Sittings(place)
  print(f'== {run.name}')
  prepare_jax(run)
  if is_finished(run, out):
    place.check_config(run.config)
    print(f'{place.folder}: finished before, reused')
  else:
    _prepare(run, out)
    with sittings.sitting():
      run_lib.train_and_evaluate(run.config, str(place.folder))
  record = _make_record(run, place, sittings)
  (out / 'records').mkdir(parents=True, exist_ok=True)
  json_files.write_json(_record_path(run.name, out), record)
  return record


def prepare_jax(run: settings.Run) -> None:
  """Compiles fast at the smoke budget, where compiling is most of the work."""
  if run.budget == 'smoke':
    jax.config.update('jax_disable_most_optimizations', True)


def work_folder(run: settings.Run, out: pathlib.Path) -> pathlib.Path:
  """Where a model is trained."""
  return out / 'runs' / run.name


def is_finished(run: settings.Run, out: pathlib.Path) -> bool:
  """Whether the work folder holds a finished training and its results."""
  place = workdir.Workdir(work_folder(run, out))
  results = place.folder / 'results.json'
  return Sittings(place).finished and results.is_file()


def load_record(run: settings.Run, out: pathlib.Path) -> Record:
  """The record of a model that was trained."""
  record: Record = json_files.read_json(_record_path(run.name, out))
  return record


def load_records(run: settings.Run, out: pathlib.Path) -> list[Record]:
  """The records of all seeds of a model, of those with these settings.

  A field that was added after a record was written has its default there.

  Args:
    run: the model; its seed does not matter.
    out: where results go.
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
  """How a work folder was trained: one entry each time it went on."""

  def __init__(self, place: workdir.Workdir):
    self._place = place
    folder = place.folder
    self._path = folder.with_name(f'{folder.name}.sittings.json')
    self.entries: list[dict[str, Any]] = []
    if self._path.is_file():
      self.entries = json_files.read_json(self._path)

  @property
  def finished(self) -> bool:
    """Whether the last sitting came to the end."""
    return bool(self.entries) and self.entries[-1]['finished']

  @property
  def wall_seconds(self) -> float | None:
    """Of all sittings; None if the training was begun by another program."""
    if not self.entries or self.entries[0]['continued']:
      return None
    return sum(entry['seconds'] for entry in self.entries)

  @contextlib.contextmanager
  def sitting(self) -> Iterator[None]:
    """Times a `with` statement that trains in the folder."""
    self._close_killed()
    entry = {
      'started': datetime.datetime.now(datetime.UTC).isoformat(
        timespec='seconds'
      ),
      'seconds': None,
      'continued': self._place.exists,
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

  def _close_killed(self) -> None:
    """Gives a sitting that was killed the time until its last sign of life."""
    if not self.entries or self.entries[-1]['seconds'] is not None:
      return
    entry = self.entries[-1]
    started = datetime.datetime.fromisoformat(entry['started']).timestamp()
    folder = self._place.folder
    signs = [folder / 'metrics.jsonl', *(folder / 'checkpoints').glob('*')]
    last = max((s.stat().st_mtime for s in signs if s.exists()), default=0)
    entry['seconds'] = round(max(last - started, 0.0), 1)

  def _write(self) -> None:
    self._path.parent.mkdir(parents=True, exist_ok=True)
    json_files.write_json(self._path, self.entries)


def _prepare(run: settings.Run, out: pathlib.Path) -> None:
  """Samples the paths that stand in for a path set, once."""
  if not run.stand_in or run.config.data.kind != 'paths':
    return
  folder = settings.smoke_paths_folder(out)
  if not (folder / 'train').is_file():  # written last
    shutil.rmtree(folder, ignore_errors=True)
    data_commands.sample_paths(settings.smoke_walks_config(), str(folder))


def _record_path(name: str, out: pathlib.Path) -> pathlib.Path:
  return out / 'records' / f'{name}.json'


def _make_record(
  run: settings.Run, place: workdir.Workdir, sittings: Sittings
) -> Record:
  """All that tables say of a finished training."""
  task = tasks.make_task(run.config, place.data())
  lines = [line for line in place.metrics().read() if line['kind'] == 'train']
  epochs = lines[-1]['epoch']
  instances, seconds = _training_time(task, lines)
  results = json_files.read_json(place.folder / 'results.json')
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
    'parameters': count_parameters(run.config, task),
    **{
      name: trained[name]
      for name in ('device', 'processor', 'versions', 'commit', 'dirty')
      if name in trained
    },
    'started': sittings.entries[0]['started'],
    'sittings': len(sittings.entries),
    # None: it was begun by another program; then see training_seconds.
    'wall_seconds': sittings.wall_seconds,
    # Of the steps alone, by the log: no compiling, validating or ranking.
    'training_seconds': round(seconds, 1),
    'instances_per_second': round(instances / seconds, 1) if seconds else None,
    'config': config_lib.flatten(run.config),
    'results': _without_relations(results),
  }


def count_parameters(config: Any, task: tasks.Task) -> int:
  """The number of parameters of a task's model."""
  coke = tasks.build_model(config, task.data.vocabulary, task.max_length)
  shapes = jax.eval_shape(lambda: encoder.init_params(coke, 0))
  return int(encoder.count_parameters(shapes))


def _training_time(
  task: tasks.Task, lines: list[dict[str, Any]]
) -> tuple[float, float]:
  """Instances that were trained on, and the seconds this took, by the log."""
  train = task.data.train
  if isinstance(train, paths_lib.PathSet):
    train = train.up_to(task.max_path_length)  # type: ignore[attr-defined]
  per_epoch = 2 * len(train)  # both ends of each
  epochs = np.diff([0.0, *(line['epoch'] for line in lines)])
  rates = [line['instances_per_second'] for line in lines]
  seconds = sum(
    per_epoch * part / rate
    for part, rate in zip(epochs, rates, strict=True)
    if rate
  )
  return per_epoch * float(epochs.sum()), float(seconds)


def _without_relations(results: dict[str, Any]) -> dict[str, Any]:
  """Results without the long list by relation."""
  return {
    name: _without_relations(value) if isinstance(value, dict) else value
    for name, value in results.items()
    if name != 'by_relation'
  }
