"""Filtered link prediction on triples.

This is the protocol of Bordes et al. (2013). The model predicts the head and
the tail of each triple. The masked entity is called the gold entity. Other
known answers are not candidates. If candidates have the same score as the gold
entity, the rank is the mean of the possible ranks (the realistic rank).
"""

import itertools
from typing import Any

import numpy as np

from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib

CATEGORIES = ('1-1', '1-N', 'N-1', 'N-N')
# Minimum average number of heads per tail, or of tails per head, for an N.
_MANY = 1.5


class LinkPrediction:
  """The task of link prediction: training queries and evaluation.

  Attributes:
    data: the graph.
    max_length: number of tokens in a sequence: 3 (head, relation and tail).
    walks: None, because training uses no walks.
    side: the queries whose metric chooses the best checkpoint: `both`, `head`
      or `tail`.
    relation: the relation of these queries. Empty for all relations.
  """

  max_length = 3
  walks = None

  def __init__(
    self,
    data: graph_lib.KnowledgeGraph,
    *,
    side: str = 'both',
    relation: str = '',
  ):
    self.data = data
    self.side = side
    self.relation = relation

  def training_queries(self) -> queries_lib.Queries:
    """Returns queries for the tails, then the heads, of T training triples.

    Returns:
      2 T queries with one answer each.
    """
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
    """Computes the filtered metrics of a split.

    Args:
      ranker: ranks the answers of queries.
      params: parameters on the devices, see `shards.placement`.
      split: `train`, `valid` or `test`.
      choosing: whether the results are used to choose the best checkpoint. If
        so, known answers come from the training and valid triples only.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The content of `results.json`: the results of `summarize`, and the item
      `filter`, which lists the splits that known answers come from.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
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
    """Ranks the tails and the heads of a split's T triples.

    Args:
      ranker: ranks the answers of queries.
      params: parameters on the devices, see `shards.placement`.
      split: `train`, `valid` or `test`.
      filter_splits: the splits that known answers come from. Default: all.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The ranks of the T tails, then of the T heads.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    graph = self.data
    queries = queries_lib.from_triples(graph.split(split), graph.vocabulary)
    parts = (
      queries_lib.parts_from_triples(graph.split(name), graph.vocabulary)
      for name in filter_splits
    )
    known = queries.known_answers(
      itertools.chain.from_iterable(parts), graph.vocabulary.num_entities
    )
    return ranker.rank_filtered(params, queries, known, progress=progress)

  def summarize(self, ranks: ranks_lib.Ranks, split: str) -> dict[str, Any]:
    """Computes the metrics of a split from its ranks.

    Args:
      ranks: the ranks of the split's T tails, then of its T heads.
      split: `train`, `valid` or `test`.

    Returns:
      A dictionary of:
        `dataset`, `split`: the names of the data set and of the split.
        `queries`: the number of queries, 2 T.
        `triples_with_unseen_entity`: the number of triples with an entity that
          is in no training triple.
        `ties`: `realistic`, the treatment of ties in all metrics except
          `optimistic` and `pessimistic`.
        `both`, `head`, `tail`: the metrics (see `ranks.rank_metrics`) of all
          queries, the queries for heads, and the queries for tails.
        `optimistic`, `pessimistic`: the metrics of all queries with these kinds
          of rank.
        `by_category`, `by_relation`: for each category or relation, the number
          of its queries, and its metrics `both`, `head` and `tail`. Each
          relation also has its `category`.
    """
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
    """Returns the filtered mean reciprocal rank for `side` and `relation`."""
    if self.relation:
      results = results['by_relation'][self.relation]
    metric: float = results[self.side]['mrr']
    return metric

  def describe(self, results: dict[str, Any]) -> str:
    """Formats the main metrics in one line."""
    metrics = results['both']
    return (
      f'MRR {metrics["mrr"]:.4f}, hits@1 {metrics["hits@1"]:.4f}, '
      f'hits@10 {metrics["hits@10"]:.4f}'
    )

  def format_table(self, results: dict[str, Any]) -> str:
    """Formats results as a table."""
    return format_table(results)


def relation_categories(graph: graph_lib.KnowledgeGraph) -> np.ndarray:
  """Classifies each relation by its cardinality (Bordes et al. 2013, 4.2).

  In a 1-N relation, a tail has one head and a head has several tails. The first
  part of the category is N if a tail has 1.5 or more heads on average. The
  second part is N if a head has 1.5 or more tails on average. The averages are
  over the distinct triples of all splits.

  Args:
    graph: the triples.

  Returns:
    Strings [R], the category of each relation, one of CATEGORIES.
  """
  triples = graph.triples(*graph_lib.SPLITS)
  num_relations = graph.vocabulary.num_relations

  def distinct(*columns: int) -> np.ndarray:  # int64 [R]
    rows = grouping.distinct_rows(triples[:, [1, *columns]])
    return np.bincount(rows[:, 0], minlength=num_relations)

  count = distinct(0, 2)
  tails_per_head = count / np.maximum(distinct(0), 1)
  heads_per_tail = count / np.maximum(distinct(2), 1)
  many_heads = heads_per_tail >= _MANY
  many_tails = tails_per_head >= _MANY
  return np.array(CATEGORIES)[2 * many_heads + many_tails]


def format_table(results: dict[str, Any]) -> str:
  """Formats results as a table.

  The rows are: heads and tails together, heads, tails, and each category.

  Args:
    results: the results of `LinkPrediction.summarize`.

  Returns:
    Several lines of text, without a line end after the last.
  """
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
    + f'\n({unseen:,} of {queries // 2:,} triples contain an entity '
    'unseen in training and are included)'
  )
