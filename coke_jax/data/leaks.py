"""Finds test triples that a model can copy from training triples.

Two relations are *duplicates* if they share most of their (head, tail) pairs.
They are *inverses* if most (head, tail) pairs of one relation are (tail, head)
pairs of the other relation. A relation is *symmetric* if most of its pairs also
occur swapped. With such relations, a model can predict a test triple by copying
a training triple. Then the test triple is *given away*. FB15k and WN18 are
known for such triples (Toutanova and Chen, 2015; Dettmers et al., 2018). A
report also counts hubs and unseen labels, see `LeakReport`.
"""

import dataclasses
from typing import Any

import numpy as np

from coke_jax.data import graph as graph_lib
from coke_jax.data import relation_overlap

KINDS = ('inverse', 'duplicate', 'symmetric')
EVALUATED = ('valid', 'test')
_NUM_EXAMPLES = 5


@dataclasses.dataclass(frozen=True)
class RelationLeak:
  """Two relations with nearly the same pairs, or a symmetric relation.

  Attributes:
    kind: 'inverse', 'duplicate' or 'symmetric'.
    relation: the relation whose label comes first in sorted order.
    other: the other relation. For a symmetric relation, `relation` again.
    shared: number of pairs that both relations share, counted in all splits
      together.
    overlap: `shared`, divided by the number of pairs of the larger relation.
    given_away: a dict from split to the number of its triples that are given
      away by a training triple of `relation` or `other`.
  """

  kind: str
  relation: str
  other: str
  shared: int
  overlap: float
  given_away: dict[str, int]


@dataclasses.dataclass(frozen=True)
class LeakReport:
  """The triples of valid and test that are given away or have unseen labels.

  Attributes:
    name: the name of the graph.
    threshold: minimum `overlap` of the entries of `relations`.
    min_shared: minimum `shared` of the entries of `relations`.
    triples: a dict from split to number of triples.
    relations: the leaks, sorted by the number of test triples that they give
      away, in descending order.
    given_away: for each kind, a dict from split to the number of triples that
      are given away by an entry of `relations` of this kind. 'any' counts the
      triples that are given away by any entry.
    linked: for each direction, a dict from split to the number of triples whose
      entities are also linked by a training triple. With 'reverse', the
      training triple leads from the tail to the head. With 'same direction', it
      leads from the head to the tail and has another relation. 'any' counts the
      triples that have at least one of these two links.
    in_train: a dict from split to the number of triples that are also in train.
    unseen_entities: a dict from split to the number of triples with an entity
      that is not in train.
    unseen_relations: a dict from split to the number of triples with a relation
      that is not in train.
    unseen_labels: a dict from split to the number of distinct entities and
      relations that are not in train.
    unseen_examples: some labels of entities and relations that are in valid or
      test but not in train.
    hubs: number of hubs. Hubs are the 1 % of the entities (at least one entity)
      with the most training triples.
    hub_examples: a dict from the labels of the largest hubs to the number of
      their occurrences in training triples.
    hub_share: a dict from split to the share of the triples that contain a hub.
  """

  name: str
  threshold: float
  min_shared: int
  triples: dict[str, int]
  relations: tuple[RelationLeak, ...]
  given_away: dict[str, dict[str, int]]
  linked: dict[str, dict[str, int]]
  in_train: dict[str, int]
  unseen_entities: dict[str, int]
  unseen_relations: dict[str, int]
  unseen_labels: dict[str, int]
  unseen_examples: tuple[str, ...]
  hubs: int
  hub_examples: dict[str, int]
  hub_share: dict[str, float]

  def to_json(self) -> dict[str, Any]:
    """Returns the report as a dictionary for `json.dump`."""
    return dataclasses.asdict(self)


def find(
  graph: graph_lib.KnowledgeGraph,
  *,
  threshold: float = 0.8,
  min_shared: int = 10,
) -> LeakReport:
  """Finds triples of valid and test that the train split gives away.

  Args:
    graph: the graph.
    threshold: minimum overlap of two relations, in (0, 1]. Default: .8.
    min_shared: minimum number of pairs that two relations share, at least 1.
      Default: 10.

  Returns:
    The report.

  Raises:
    ValueError: `threshold` or `min_shared` is not valid.
  """
  if not 0 < threshold <= 1:
    raise ValueError(f'threshold is {threshold}: expected 0 < threshold <= 1')
  if min_shared < 1:
    raise ValueError(f'min_shared is {min_shared}: expected at least 1')
  pairs = relation_overlap.Pairs(graph)
  rules = {
    'inverse': pairs.overlaps(True, threshold, min_shared, diagonal=False),
    'duplicate': pairs.overlaps(False, threshold, min_shared, diagonal=False),
    'symmetric': pairs.overlaps(True, threshold, min_shared, diagonal=True),
  }
  given_away: dict[str, dict[str, int]] = {kind: {} for kind in (*KINDS, 'any')}
  linked: dict[str, dict[str, int]] = {
    name: {} for name in ('reverse', 'same direction', 'any')
  }
  per_rule: dict[str, dict[str, Any]] = {kind: {} for kind in KINDS}
  for split in EVALUATED:
    relation = graph.split(split)[:, 1]
    any_kind = np.zeros(len(relation), dtype=bool)
    for kind, rule in rules.items():
      train_relations = pairs.in_train(split, reverse=kind != 'duplicate')
      hits = train_relations.multiply(rule.matrix[relation]).tocoo()
      count = np.zeros(len(relation), dtype=bool)
      count[hits.row] = True
      given_away[kind][split] = int(count.sum())
      any_kind |= count
      per_rule[kind][split] = rule.count(relation[hits.row], hits.col)
    given_away['any'][split] = int(any_kind.sum())
    same = pairs.in_train(split, reverse=False).tocoo()
    other = same.row[same.col != relation[same.row]]
    back = pairs.in_train(split, reverse=True).tocoo().row
    for name, rows in (
      ('reverse', back),
      ('same direction', other),
      ('any', np.concatenate([back, other])),
    ):
      linked[name][split] = len(np.unique(rows))

  labels = graph.vocabulary.relations
  found = [
    RelationLeak(
      kind,
      labels[rule.first[i]],
      labels[rule.second[i]],
      int(rule.shared[i]),
      float(rule.overlap[i]),
      {split: int(per_rule[kind][split][i]) for split in EVALUATED},
    )
    for kind, rule in rules.items()
    for i in range(len(rule.first))
  ]
  found.sort(
    key=lambda leak: (-leak.given_away['test'], -leak.shared, leak.relation)
  )
  return LeakReport(
    name=graph.name,
    threshold=threshold,
    min_shared=min_shared,
    triples={split: len(graph.split(split)) for split in graph_lib.SPLITS},
    relations=tuple(found),
    given_away=given_away,
    linked=linked,
    **_labels_and_hubs(graph),
  )


def _labels_and_hubs(graph: graph_lib.KnowledgeGraph) -> dict[str, Any]:
  """Returns the fields of a `LeakReport` that need no pairs of relations."""
  size = graph.vocabulary.num_entities
  degree = np.bincount(graph.train[:, [0, 2]].ravel(), minlength=size)
  num_hubs = min(size, max(1, round(size / 100)))
  hubs = np.argsort(-degree, kind='stable')[:num_hubs]
  is_hub = np.zeros(size, dtype=bool)
  is_hub[hubs] = True

  def with_hub(split: str) -> float:
    return float(is_hub[graph.split(split)[:, [0, 2]]].any(axis=1).mean())

  parts = {split: graph.split(split) for split in EVALUATED}
  labels, relations = graph.vocabulary.entities, graph.vocabulary.relations
  unseen = {
    split: [
      names[i]
      for names, columns in ((labels, [0, 2]), (relations, [1]))
      for i in np.setdiff1d(part[:, columns], graph.train[:, columns])
    ]
    for split, part in parts.items()
  }
  examples = dict.fromkeys(label for part in unseen.values() for label in part)
  return {
    'unseen_labels': {split: len(part) for split, part in unseen.items()},
    'unseen_examples': tuple(examples)[:_NUM_EXAMPLES],
    'in_train': {s: graph.num_in_train(part) for s, part in parts.items()},
    'unseen_entities': {
      s: int(graph.has_unseen_entity(part).sum()) for s, part in parts.items()
    },
    'unseen_relations': {
      s: int((~np.isin(part[:, 1], graph.train[:, 1])).sum())
      for s, part in parts.items()
    },
    'hubs': num_hubs,
    'hub_examples': {
      labels[hub]: int(degree[hub]) for hub in hubs[:_NUM_EXAMPLES].tolist()
    },
    'hub_share': {
      split: with_hub(split) if len(graph.split(split)) else 0.0
      for split in graph_lib.SPLITS
    },
  }
