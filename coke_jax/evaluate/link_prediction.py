"""Filtered link prediction on triples, the protocol of Bordes et al. (2013).

For each triple the model is asked for its head and for its tail; every other
entity known to fit is taken out, the gold one never. Ties count as the mean of
the ranks they could have (realistic).
"""

from typing import Any

import numpy as np

from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib

CATEGORIES = ('1-1', '1-N', 'N-1', 'N-N')
_CARDINALITY = 1.5  # mean partners from which a side counts as N (Bordes 2013)


class LinkPrediction:
  """Triples as something to train on and to be measured by.

  Attributes:
    data: the graph.
    max_length: tokens in a sequence: head, relation, tail.
  """

  max_length = 3

  def __init__(self, data: graph_lib.KnowledgeGraph):
    self.data = data

  def training_queries(self) -> queries_lib.Queries:
    """Both sides of every training triple."""
    return queries_lib.from_triples(self.data.train, self.data.vocabulary)

  def evaluate(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    *,
    choosing: bool,
    progress: str = '',
  ) -> dict[str, Any]:
    """Filtered ranks of both sides of every triple of a split.

    Args:
      ranker: see `ranker.Ranker`.
      params: replicated parameters.
      split: whose triples are ranked.
      choosing: whether this is to choose a checkpoint: then the test triples
        are not among the known ones.
      progress: what the progress bar says.

    Returns:
      The results as `results.json` holds them.
    """
    splits = ('train', 'valid') if choosing else graph_lib.SPLITS
    ranks = self.rank(ranker, params, split, splits, progress=progress)
    return {**self.summarize(ranks, split), 'filter': list(splits)}

  def rank(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    filter_splits: tuple[str, ...] = graph_lib.SPLITS,
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """2 T ranks of a split's T triples: of the tails, then of the heads."""
    graph = self.data
    queries = queries_lib.from_triples(graph.split(split), graph.vocabulary)
    known = queries.known_answers(
      queries_lib.from_triples(graph.triples(*filter_splits), graph.vocabulary)
    )
    return ranker.filtered(params, queries, known, progress=progress)

  def summarize(self, ranks: ranks_lib.Ranks, split: str) -> dict[str, Any]:
    """The results of 2 T ranks (of the tails, then of the heads) of a split."""
    graph = self.data
    triples = graph.split(split)
    count = len(triples)
    tail = np.arange(2 * count) < count
    relation = np.tile(triples[:, 1], 2)
    categories = relation_categories(graph)
    category = categories[relation]

    def by_side(rows: np.ndarray) -> dict[str, Any]:
      sides = {'both': rows, 'head': rows & ~tail, 'tail': rows & tail}
      return {
        name: ranks_lib.rank_metrics(
          ranks.realistic[side], ranks.candidates[side]
        )
        for name, side in sides.items()
      }

    results: dict[str, Any] = {
      'dataset': graph.name,
      'split': split,
      'queries': 2 * count,
      'triples_with_unseen_entity': int(graph.has_unseen_entity(triples).sum()),
      'ties': 'realistic',
      **by_side(np.ones(2 * count, dtype=bool)),
    }
    for name in ('optimistic', 'pessimistic'):
      results[name] = ranks_lib.rank_metrics(
        getattr(ranks, name), ranks.candidates
      )
    results['by_category'] = {
      name: {
        'queries': int((category == name).sum()),
        **by_side(category == name),
      }
      for name in CATEGORIES
      if (category == name).any()
    }
    results['by_relation'] = {
      graph.vocabulary.relations[index]: {
        'category': str(categories[index]),
        'queries': int((relation == index).sum()),
        **by_side(relation == index),
      }
      for index in np.unique(relation)
    }
    return results

  def choosing_metric(self, results: dict[str, Any]) -> float:
    """The filtered mean reciprocal rank of both sides."""
    metric: float = results['both']['mrr']
    return metric

  def describe(self, results: dict[str, Any]) -> str:
    """The metrics of a validation in one line."""
    metrics = results['both']
    return (
      f'MRR {metrics["mrr"]:.4f}, hits@1 {metrics["hits@1"]:.4f}, '
      f'hits@10 {metrics["hits@10"]:.4f}'
    )

  def format_table(self, results: dict[str, Any]) -> str:
    """The results for a person: sides, then categories."""
    return format_table(results)


def relation_categories(graph: graph_lib.KnowledgeGraph) -> np.ndarray:
  """The category of each relation: text [R], one of CATEGORIES.

  A side counts as N if the other side meets 1.5 or more different entities
  there on average, over the distinct triples of all splits (Bordes et al. 2013,
  section 4.2). The first place is the head's: in a 1-N relation a tail has one
  head and a head has several tails.
  """
  triples = graph.triples(*graph_lib.SPLITS)
  num_relations = graph.vocabulary.num_relations

  def distinct(*columns: int) -> np.ndarray:  # int64 [R], of each relation
    chosen = triples[:, columns]
    group, count = grouping.group_rows(chosen)
    relation = np.zeros(count, dtype=np.int64)  # of each group
    relation[group] = triples[:, 1]
    return np.bincount(relation, minlength=num_relations)

  count = distinct(0, 1, 2)
  tails_per_head = count / np.maximum(distinct(0, 1), 1)
  heads_per_tail = count / np.maximum(distinct(1, 2), 1)
  many_heads = heads_per_tail >= _CARDINALITY
  many_tails = tails_per_head >= _CARDINALITY
  return np.array(CATEGORIES)[2 * many_heads + many_tails]


def format_table(results: dict[str, Any]) -> str:
  """The results for a person: sides, then categories."""
  columns = ['mrr', *(f'hits@{k}' for k in ranks_lib.HITS), 'mean_rank']
  header = f'{"":<14}{"queries":>9}' + ''.join(f'{c:>11}' for c in columns)
  queries = results['queries']
  rows = [
    ('both', queries, results['both']),
    ('head (? r o)', queries // 2, results['head']),
    ('tail (s r ?)', queries // 2, results['tail']),
  ]
  rows += [
    (name, part['queries'], part['both'])
    for name, part in results['by_category'].items()
  ]
  lines = [header]
  for name, count, metrics in rows:
    cells = ''.join(
      f'{metrics[c]:>11.{1 if c == "mean_rank" else 4}f}'
      if metrics
      else f'{"-":>11}'
      for c in columns
    )
    lines.append(f'{name:<14}{count:>9,}{cells}')
  unseen = results['triples_with_unseen_entity']
  return (
    f'{results["dataset"]}, {results["split"]}: filtered ranks over all '
    'entities, ties at their mean rank\n'
    + '\n'.join(lines)
    + f'\n({unseen:,} of {queries // 2:,} triples hold an entity unseen in '
    'training; they count)'
  )
