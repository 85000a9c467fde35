"""Answers requests that need several batches on the devices.

Every function takes a `Served`. If `Served.pausing` made it, other requests can
be answered between two batches. The results can be written as JSON.
"""

import dataclasses
from typing import Any

import numpy as np

from coke_jax.predict import questions
from coke_jax.serve import served as served_lib

_MAX_POINTS = 500  # maximum number of points of a map


def explain(
  served: served_lib.Served,
  facts: list[questions.Fact],
  *,
  top: int,
  similar: int,
) -> list[dict[str, Any]]:
  """Finds known facts that support each fact, see `Model.explain`."""
  return [
    dataclasses.asdict(served.explainer.explain(fact, top=top, similar=similar))
    for fact in facts
  ]


def similar(
  served: served_lib.Served,
  entity: str,
  *,
  relation: str | None,
  side: str,
  top: int,
  type_matching: bool,
) -> list[dict[str, Any]]:
  """Finds the entities with the nearest embeddings, see `Model.similar`."""
  found = served.model.similar(
    entity,
    relation=relation,
    side=side,
    top=top,
    type_matching=type_matching,
  )
  return [dataclasses.asdict(one) for one in found]


def discover(
  served: served_lib.Served,
  relation: str,
  *,
  top: int,
  per_head: int | None,
  type_matching: bool,
) -> list[dict[str, Any]]:
  """Finds the most plausible new facts of one relation.

  See `Model.discover`. `calibrated` is the calibrated probability.
  """
  found = served.model.discover(
    relation, top=top, per_head=per_head, type_matching=type_matching
  )
  scores = np.array([one.score for one in found])
  # `Served.calibrated` adds the logarithm of the number of known answers. The
  # scores already include this logarithm, so the number here is 1.
  calibrated = served.calibrated(scores, np.ones(len(found), np.int64))
  return [
    {**dataclasses.asdict(one), 'calibrated': probability}
    for one, probability in zip(found, calibrated, strict=True)
  ]


def audit(
  served: served_lib.Served, entity: int, *, top: int, expected: int
) -> list[dict[str, Any]]:
  """Finds the least plausible known facts of an entity, see `Model.audit`."""
  label = served.model.data.vocabulary.entities[entity]
  found = served.model.audit(entities=[label], top=top, expected=expected)
  return [dataclasses.asdict(one) for one in found]


def contextual_map(served: served_lib.Served, entity: int) -> dict[str, Any]:
  """Maps the contextual embeddings of an entity to the plane.

  The model encodes the facts of train that contain the entity. The hidden
  states at the entity are mapped to their first two principal components. If
  the entity has more than 500 facts, 500 evenly spaced ones are used.

  Returns:
    A dict. `points` contains the coordinates and the fact of each point, and
    the side of the entity. `explained` contains the share of the variance in
    each component.
  """
  facts = served.neighborhood.facts
  rows = served.neighborhood.rows(entity)
  rows = rows[facts.split[rows] == 0]
  if len(rows) > _MAX_POINTS:
    rows = rows[np.linspace(0, len(rows) - 1, _MAX_POINTS).astype(np.int64)]
  if not len(rows):
    return {'points': [], 'explained': [0.0, 0.0]}
  words = served.model.data.vocabulary
  triples = facts.triples[rows]
  tokens = triples.copy()
  tokens[:, 1] += words.num_entities
  padded = served.model.parser.tokens(tokens.tolist(), served.model.width)
  states = np.concatenate([part for _, part in served.model.encode(padded)])
  place = np.where(triples[:, 0] == entity, 0, 2)
  states = states[np.arange(len(rows)), place].astype(np.float64)
  coordinates, explained = _principal_components(states)
  points = [
    {
      'x': x,
      'y': y,
      'fact': (words.entities[h], words.relations[r], words.entities[t]),
      'side': 'head' if h == entity else 'tail',
    }
    for (x, y), (h, r, t) in zip(
      coordinates.tolist(), triples.tolist(), strict=True
    )
  ]
  return {'points': points, 'explained': explained}


def _principal_components(
  states: np.ndarray,
) -> tuple[np.ndarray, list[float]]:
  """Maps N states to their first two principal components.

  Returns:
    The coordinates: float64 [N, 2].
    The share of the variance in each component.
  """
  centered = states - states.mean(axis=0)
  left, values, right = np.linalg.svd(centered, full_matrices=False)
  # A component has two possible signs. Its largest weight becomes positive.
  largest = np.take_along_axis(
    right, np.abs(right).argmax(axis=1)[:, None], axis=1
  )[:, 0]
  scores = left * values * np.where(largest < 0, -1, 1)
  coordinates = np.zeros((len(states), 2))
  explained = np.zeros(2)
  count = min(2, len(values))
  coordinates[:, :count] = scores[:, :count]
  total = (values**2).sum()
  if total > 0:
    explained[:count] = values[:count] ** 2 / total
  return coordinates, explained.tolist()
