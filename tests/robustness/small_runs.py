"""Small runs as users start them: a graph, a command, and what came out."""

import hashlib
import json
import os
import pathlib
import sys
from typing import Any

import jax
import numpy as np

from coke_jax import tasks
from coke_jax.storage import checkpoints as checkpoints_lib
from coke_jax.storage import workdir
from coke_jax.training import loop, train_state

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
_NUM_ENTITIES, _NUM_RELATIONS = 40, 4


def write_graph(folder: pathlib.Path, seed: int = 0) -> pathlib.Path:
  """Writes train, valid and test files of random triples; returns `folder`.

  Every seed gives other labels, and as many of them as any other.
  """
  folder.mkdir(parents=True)
  generator = np.random.default_rng(seed)
  for split, lines in (('train', 300), ('valid', 30), ('test', 30)):
    head, tail = generator.integers(0, _NUM_ENTITIES, (2, lines))
    relation = generator.integers(0, _NUM_RELATIONS, lines)
    if split == 'train':  # so that every label is there
      head[:_NUM_ENTITIES] = np.arange(_NUM_ENTITIES)
      relation[:_NUM_RELATIONS] = np.arange(_NUM_RELATIONS)
    triples = zip(head, relation, tail, strict=True)
    (folder / f'{split}.txt').write_text(
      ''.join(f'{seed} e{h}\t{seed} r{r}\t{seed} e{t}\n' for h, r, t in triples)
    )
  return folder


def arguments(
  data: pathlib.Path, work: pathlib.Path, **settings: object
) -> list[str]:
  """What is typed after the program's name to train.

  Args:
    data: the folder of the graph.
    work: the work folder.
    **settings: fields of `config.train`.
  """
  return [
    f'--config={HERE / "tiny.py"}',
    f'--config.data.dir={data}',
    f'--workdir={work}',
    *(f'--config.train.{name}={value}' for name, value in settings.items()),
  ]


def command(*words: str) -> list[str]:
  """The program as a user starts it."""
  return [sys.executable, '-m', 'coke_jax.main', *words]


def environment(cache: pathlib.Path) -> dict[str, str]:
  """The environment of the program: one CPU device, and compiled code kept.

  Args:
    cache: where it is kept, unless the caller's environment says where.
  """
  return {
    'JAX_COMPILATION_CACHE_DIR': str(cache),
    **os.environ,
    'JAX_PLATFORMS': 'cpu',
    'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
    'PYTHONPATH': str(ROOT),
  }


def metrics(work: pathlib.Path) -> list[dict[str, Any]]:
  """The lines of metrics.jsonl without what depends on the clock."""
  lines = [
    json.loads(line)
    for line in (work / 'metrics.jsonl').read_text().splitlines()
  ]
  for line in lines:
    line.pop('instances_per_second', None)
  return lines


def outcome(work: pathlib.Path) -> dict[str, str]:
  """What came out of a finished run, as checksums by name.

  These are the numbers of the last and of the best checkpoint, metrics.jsonl
  and results.json.
  """
  place = workdir.Workdir(work)
  task = tasks.make_task(place.config(), place.data())
  worker = loop.Trainer(place.config(), task, place)
  template = jax.eval_shape(
    lambda: train_state.init_state(worker.model, worker.transformation, 0)
  )
  found = {}
  with place.checkpoints(writing=False) as checkpoints:
    for name in ('latest', 'best'):
      restored = getattr(checkpoints, name)(template)
      assert restored is not None, f'{work}: no checkpoint'
      found[f'the numbers of the {name} checkpoint'] = checkpoints_lib.digest(
        restored[0], {}
      )
  results = json.loads((work / 'results.json').read_text())
  for name, values in (
    ('metrics.jsonl', metrics(work)),
    ('results.json', results),
  ):
    text = json.dumps(values, sort_keys=True)
    found[name] = hashlib.sha256(text.encode()).hexdigest()
  return found


def differences(
  found: dict[str, str], undisturbed: dict[str, str]
) -> list[str]:
  """In what two outcomes differ, to the last bit."""
  return [name for name in undisturbed if found[name] != undisturbed[name]]
