"""Creates graphs and commands for small trainings, and compares the results.

This file is also a config file for `--config`.
"""

import hashlib
import json
import os
import pathlib
import sys
from typing import Any

import jax
import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.storage import checksums
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_state

ROOT = pathlib.Path(__file__).resolve().parents[2]
_NUM_ENTITIES, _NUM_RELATIONS = 40, 4


def get_config() -> ml_collections.ConfigDict:
  """Returns the settings of a model that compiles and trains in seconds."""
  config = config_lib.default_config()
  config.data.name = 'tiny'
  config.model.num_layers = 1
  config.model.hidden_size = 16
  config.model.num_heads = 2
  config.model.feed_forward_size = 32
  config.model.dropout = 0.3
  config.train.rows = 'query'
  config.train.batch_size = 32
  config.train.num_epochs = 400
  config.train.validate_every_epochs = 10
  config.train.checkpoint_every_minutes = 0.01
  config.train.log_every_steps = 7
  return config


def write_graph(folder: pathlib.Path, seed: int = 0) -> pathlib.Path:
  """Writes train, valid and test files of random triples. Returns `folder`.

  The labels depend on the seed, but their number does not.
  """
  folder.mkdir(parents=True)
  generator = np.random.default_rng(seed)
  for split, lines in (('train', 300), ('valid', 30), ('test', 30)):
    head, tail = generator.integers(0, _NUM_ENTITIES, (2, lines))
    relation = generator.integers(0, _NUM_RELATIONS, lines)
    if split == 'train':  # The train split must contain every label.
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
  """Returns the arguments with which the program starts a training.

  Args:
    data: the folder of the graph.
    work: the work folder.
    **settings: fields of `config.train`.
  """
  return [
    f'--config={pathlib.Path(__file__).resolve()}',
    f'--config.data.dir={data}',
    f'--workdir={work}',
    *(f'--config.train.{name}={value}' for name, value in settings.items()),
  ]


def command(*words: str) -> list[str]:
  """Returns the command line that runs the program."""
  return [sys.executable, '-m', 'coke_jax.main', *words]


def environment(cache: pathlib.Path) -> dict[str, str]:
  """Returns environment variables for a CPU and a cache of compiled programs.

  Args:
    cache: the folder of the cache, unless JAX_COMPILATION_CACHE_DIR is set.
  """
  return {
    'JAX_COMPILATION_CACHE_DIR': str(cache),
    **os.environ,
    'JAX_PLATFORMS': 'cpu',
    'JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS': '0',
    'PYTHONPATH': str(ROOT),
  }


def metrics(
  work: pathlib.Path, *, growing: bool = False
) -> list[dict[str, Any]]:
  """Reads metrics.jsonl without the fields that depend on the clock.

  Args:
    work: the work folder.
    growing: whether the training may still run. If True, an incomplete last
      line is left out.
  """
  text = (work / 'metrics.jsonl').read_text()
  if growing:
    text = text[: text.rfind('\n') + 1]
  lines = [json.loads(line) for line in text.splitlines()]
  for line in lines:
    line.pop('instances_per_second', None)
  return lines


def outcome(work: pathlib.Path) -> dict[str, str]:
  """Returns checksums of a finished run's results, by name.

  The results are metrics.jsonl, results.json, and the states in the last and
  the best checkpoint.
  """
  workdir = workdir_lib.Workdir(work)
  config = workdir.config()
  setup = setup_lib.Setup(config, tasks.make_task(config, workdir.data()))
  template = train_state.to_items(jax.eval_shape(setup.init_state))
  found = {}
  with workdir.checkpoints(writing=False) as checkpoints:
    for name in ('latest', 'best'):
      restored = getattr(checkpoints, name)(template)
      assert restored is not None, f'{work}: no checkpoint'
      found[f'the state of the {name} checkpoint'] = checksums.of_arrays(
        restored[0]
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
  """Returns the names of the results in which two outcomes differ."""
  return [name for name in undisturbed if found[name] != undisturbed[name]]
