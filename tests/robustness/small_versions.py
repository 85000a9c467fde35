"""Makes several versions of a small model, and saves them as checkpoints."""

import dataclasses
import pathlib
import subprocess
from typing import Any

import expected_answers
import jax
import numpy as np
import small_runs

from coke_jax import tasks
from coke_jax.predict import load
from coke_jax.predict import model as model_lib
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.serve import served
from coke_jax.storage import workdir as workdir_lib
from coke_jax.training import setup as setup_lib
from coke_jax.training import train_state

_NOISE = 0.3  # standard deviation of the noise in each parameter
# Minimum share of questions whose answers differ between successive versions.
_DIFFERENT = 0.9


@dataclasses.dataclass
class Version:
  """A model for the server.

  Attributes:
    identity: the name of the model in responses.
    answers: its answers.
    params: its parameters.
  """

  identity: str
  answers: expected_answers.Answers
  params: Any


def train(folder: pathlib.Path) -> pathlib.Path:
  """Runs a small training. Returns its work folder."""
  work = folder / 'work'
  arguments = small_runs.arguments(
    small_runs.write_graph(folder / 'graph'), work, num_epochs=10
  )
  subprocess.run(
    small_runs.command(*arguments),
    env=small_runs.environment(folder / 'compiled'),
    check=True,
    capture_output=True,
  )
  return work


def make(
  work: pathlib.Path, count: int, generator: np.random.Generator
) -> list[Version]:
  """Makes models with different parameters. The first is the trained one.

  Raises:
    RuntimeError: too few answers differ between two successive models.
  """
  loaded = load.load_with_task(work)
  data = loaded.task.data
  words = data.vocabulary
  # Several facts have the same question. The set contains it once.
  questions = sorted(
    {
      (words.entities[head], words.relations[relation], '?')
      for head, relation, _ in facts_lib.known(data).triples.tolist()
    }
  )
  scorer = loaded.model.predictor.scorer
  params = trained = scorer.whole_params()
  versions: list[Version] = []
  for _ in range(count):
    model = model_lib.Model(
      scorer.model, scorer.placement.place(params), data, 1
    )
    answers = expected_answers.Answers(model, questions)
    if versions and answers.differing(versions[-1].answers) < _DIFFERENT:
      raise RuntimeError('two versions of the model hardly differ')
    versions.append(Version(served.Served(model).identity, answers, params))
    # After a short training, all questions have almost the same answers. With
    # large noise, the answers differ.
    params = jax.tree.map(
      lambda leaf: (
        leaf + _NOISE * generator.standard_normal(leaf.shape)
      ).astype(leaf.dtype),
      trained,
    )
  return versions


def save(work: pathlib.Path, params: Any) -> None:
  """Saves parameters as a new checkpoint, and marks it as the best."""
  workdir = workdir_lib.Workdir(work)
  config = workdir.config()
  setup = setup_lib.Setup(config, tasks.make_task(config, workdir.data()))
  template = train_state.to_items(jax.eval_shape(setup.init_state))
  with workdir.locked(), workdir.checkpoints(writing=True) as checkpoints:
    restored = checkpoints.latest(template)
    assert restored is not None, f'{work}: no checkpoint'
    state, metadata = restored
    step = metadata['step'] + 1
    checkpoints.save(
      step,
      {**state, 'params': params},
      {**metadata, 'step': step, 'best_step': step},
    )
