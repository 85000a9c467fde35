"""Answers questions of several steps one step at a time, and traces answers.

If the model cannot process the steps of a question together, a chain answers
the question. Each step starts from the best answers to the previous step, and
the probabilities of the steps are multiplied. If several paths lead to an
answer, the probabilities of the paths are added. A trace lists the best paths
to one answer.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.data import graph, vocabulary
from coke_jax.predict import questions
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.serve import neighborhood
from coke_jax.serve import served as served_lib

_WIDTH = 32  # number of entities from which the next step of a chain starts
# In each step, a trace keeps at most this number of paths of known facts, and
# at most this number of other paths.
_TRACED = 64
# For each step, a trace tries the ends of known facts and this number of the
# most probable ends.
_PREDICTED = 8


@dataclasses.dataclass(frozen=True)
class Filter:
  """The answers to leave out. See `known_facts.Restriction`."""

  new_only: bool
  exclude_own: bool
  type_matching: bool


@dataclasses.dataclass(frozen=True)
class _Path:
  """A path that a trace extends step by step.

  Attributes:
    entities: the entity at the start, and the end of each step.
    score: the sum of the log-probabilities of the steps.
    scores: the log-probability of each step.
    splits: for each step, the first split that contains its fact, or an empty
      text if no split does.
  """

  entities: tuple[int, ...]
  score: float
  scores: tuple[float, ...]
  splits: tuple[str, ...]

  @property
  def known(self) -> bool:
    """Whether all steps are known facts."""
    return all(self.splits)


def answer(
  served: served_lib.Served,
  entity: int,
  steps: Sequence[neighborhood.Step],
  *,
  top: int,
  filtered: Filter,
) -> list[dict[str, Any]]:
  """Answers a question of several steps.

  Args:
    served: the model.
    entity: the entity at the start.
    steps: the steps.
    top: the maximum number of answers.
    filtered: which answers to leave out.

  Returns:
    The fields of `Prediction` for each answer. `calibrated` is None, because
    the calibration is not valid for chains.
  """
  words = served.model.data.vocabulary
  entities = np.array([entity])
  prior = np.zeros(1)
  for step in steps:
    scores = _scores(served, entities, step) + prior[:, None]
    total = np.logaddexp.reduce(scores, axis=0)
    entities = np.argsort(-total, kind='stable')[:_WIDTH]
    prior = total[entities]
  if filtered.exclude_own:
    total[entity] = -np.inf
  if filtered.new_only:
    for split in graph.SPLITS:
      splits = tuple(dict.fromkeys(['train', split]))
      total[served.neighborhood.follow([entity], steps, splits)] = -np.inf
  if filtered.type_matching:
    last = questions.Question(0, (steps[-1].relation,), _side(steps[-1]))
    outside = np.ones(len(total), dtype=bool)
    outside[served.model.predictor.ends(last)] = False
    total[outside] = -np.inf
  best = np.argsort(-total, kind='stable')[:top]
  best = best[total[best] > -np.inf]
  known_in = served.neighborhood.known_in(entity, steps, best.tolist())
  return [
    {
      'label': words.entities[one],
      'rank': rank,
      'score': float(total[one]),
      'probability': float(np.exp(total[one])),
      'known_in': split,
      'calibrated': None,
    }
    for rank, (one, split) in enumerate(
      zip(best.tolist(), known_in, strict=True), start=1
    )
  ]


def trace(
  served: served_lib.Served,
  entity: int,
  steps: Sequence[neighborhood.Step],
  goal: int,
  *,
  top: int,
) -> list[dict[str, Any]]:
  """Finds the best paths from an entity to an answer.

  Args:
    served: the model.
    entity: the entity at the start.
    steps: the steps.
    goal: the answer.
    top: the maximum number of paths.

  Returns:
    The paths. Paths of known facts come first. `facts` contains the fact of
    each step, and the probability of the end of the step. `score` is the sum of
    the logarithms of these probabilities.
  """
  back = neighborhood.Step(steps[-1].relation, not steps[-1].backwards)
  paths = [_Path((entity,), 0.0, (), ())]
  for place, step in enumerate(steps):
    ends: np.ndarray = np.zeros(0, np.int64)
    if place == len(steps) - 1:
      ends = np.array([goal])
    elif place == len(steps) - 2:
      ends = served.neighborhood.follow([goal], [back])[:_TRACED]
    last = place == len(steps) - 1
    paths = _extend(served, paths, step, ends, only=last)
  words = served.model.data.vocabulary
  best = sorted(paths, key=lambda path: (not path.known, -path.score))[:top]
  return [
    {
      'facts': [
        {
          'fact': _labels(words, path.entities[place : place + 2], step),
          'backwards': step.backwards,
          'probability': float(np.exp(path.scores[place])),
          'known_in': path.splits[place],
        }
        for place, step in enumerate(steps)
      ],
      'score': path.score,
      'probability': float(np.exp(path.score)),
    }
    for path in best
  ]


def _extend(
  served: served_lib.Served,
  paths: list[_Path],
  step: neighborhood.Step,
  ends: np.ndarray,
  *,
  only: bool,
) -> list[_Path]:
  """Returns the best paths that are one step longer.

  Args:
    served: the model.
    paths: the paths.
    step: the next step.
    ends: ids of entities that are tried at the end of the step.
    only: whether to try only `ends`.
  """
  scores = _scores(
    served, np.array([path.entities[-1] for path in paths]), step
  )
  found = []
  for path, row in zip(paths, scores, strict=True):
    source = path.entities[-1]
    tried = ends
    if not only:
      known = served.neighborhood.follow([source], [step])
      known = known[np.argsort(-row[known], kind='stable')[:_TRACED]]
      likely = np.argsort(-row, kind='stable')[:_PREDICTED]
      tried = np.unique(np.concatenate([known, likely, ends]))
    splits = served.neighborhood.known_in(source, [step], tried.tolist())
    found += [
      _Path(
        (*path.entities, end),
        path.score + float(row[end]),
        (*path.scores, float(row[end])),
        (*path.splits, split),
      )
      for end, split in zip(tried.tolist(), splits, strict=True)
    ]
  found.sort(key=lambda path: -path.score)
  known_paths = [path for path in found if path.known][:_TRACED]
  return known_paths + [path for path in found if not path.known][:_TRACED]


def _scores(
  served: served_lib.Served, entities: np.ndarray, step: neighborhood.Step
) -> np.ndarray:
  """Returns the log-probabilities of all ends of a step: float64 [N, V]."""
  parts = facts_lib.score(
    served.model.predictor.scorer,
    np.full(len(entities), step.relation),
    entities,
    _side(step),
    served.model.data.vocabulary,
  )
  return np.concatenate([part for _, part in parts]).astype(np.float64)


def _side(step: neighborhood.Step) -> str:
  return 'head' if step.backwards else 'tail'


def _labels(
  words: vocabulary.Vocabulary,
  ends: tuple[int, ...],
  step: neighborhood.Step,
) -> tuple[str, str, str]:
  head, tail = ends[::-1] if step.backwards else ends
  relation = words.relations[step.relation]
  return words.entities[head], relation, words.entities[tail]
