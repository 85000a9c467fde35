"""Filtered link prediction: which queries, which filter, which metrics.

The protocol of Bordes et al. (2013): for each triple the model is asked for its
head and for its tail; every other entity known to fit is taken out, the gold
one never. Ties count as the mean of the ranks they could have (realistic).
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import tqdm

from coke_jax import model as model_lib
from coke_jax import parallel, ranking
from coke_jax.data import graph as graph_lib
from coke_jax.data import queries as queries_lib

HITS = (1, 3, 10)
CATEGORIES = ('1-1', '1-N', 'N-1', 'N-N')
_SCORE_BYTES = 64 * 2**20  # of one device's [B, V] scores, see `batch_rows`
_MOST_ROWS = 1024
_CARDINALITY = 1.5  # mean partners from which a side counts as N (Bordes 2013)


@dataclasses.dataclass(frozen=True, eq=False)
class Ranks:
  """Where the gold entities stand; all arrays are int64 [N].

  Attributes:
    better: entities that score higher than the gold one.
    equal: other entities with exactly its score.
    candidates: entities in the ranking, the gold one among them.
  """

  better: np.ndarray
  equal: np.ndarray
  candidates: np.ndarray

  @property
  def optimistic(self) -> np.ndarray:
    """The gold entity first among its equals: int64 [N]."""
    return self.better + 1

  @property
  def pessimistic(self) -> np.ndarray:
    """The gold entity last among its equals: int64 [N]."""
    return self.better + self.equal + 1

  @property
  def realistic(self) -> np.ndarray:
    """The mean of the optimistic and the pessimistic rank: float64 [N]."""
    return (self.optimistic + self.pessimistic) / 2

  def take(self, rows: np.ndarray) -> 'Ranks':
    """The ranks at `rows`, integers [M] or booleans [N]."""
    return Ranks(self.better[rows], self.equal[rows], self.candidates[rows])


def rank_metrics(ranks: np.ndarray, candidates: np.ndarray) -> dict[str, float]:
  """Mean reciprocal rank, hits, mean rank and adjusted mean rank index.

  Args:
    ranks: [N], from 1.
    candidates: [N], how many entities each rank is among.

  Returns:
    By name. The adjusted mean rank index (Berrendorf et al. 2020) is 1 for
    perfect ranks, 0 in expectation for random ones. Empty for N = 0.
  """
  if not len(ranks):
    return {}
  metrics = {'mrr': float(np.mean(1.0 / ranks))}
  for k in HITS:
    metrics[f'hits@{k}'] = float(np.mean(ranks <= k))
  metrics['mean_rank'] = float(np.mean(ranks))
  chance = float(np.mean((candidates + 1) / 2)) - 1
  excess = metrics['mean_rank'] - 1
  metrics['adjusted_mean_rank_index'] = 1 - excess / chance if chance else 1.0
  return metrics


class Ranker:
  """Ranks the gold answers of queries on all devices, compiled once.

  Attributes:
    batch_size: queries at a time over all devices; 0: see `batch_rows`.
  """

  def __init__(self, model: model_lib.CoKE, batch_size: int = 0):
    self._model = model
    self.batch_size = batch_size or batch_rows(model.num_entities)
    parallel.check_divides(self.batch_size, 'evaluate.batch_size: a batch')
    self._rank = parallel.map_devices(self._rank_piece)

  def __call__(
    self,
    params: Any,
    queries: queries_lib.Queries,
    known: tuple[np.ndarray, np.ndarray],
    *,
    progress: str = '',
  ) -> Ranks:
    """Ranks the one answer of each query among the entities not in `known`.

    Args:
      params: replicated parameters, see `parallel.replicate`.
      queries: N queries with exactly one answer each: the gold entity.
      known: indptr [N + 1] and indices: the entities known to fit each query.
      progress: what a progress bar says; empty: none.

    Returns:
      The ranks of N gold entities.

    Raises:
      FloatingPointError: a score is not a finite number.
    """
    if not (queries.num_answers == 1).all():
      raise ValueError('ranking: expected queries with one gold answer each')
    rows, size = len(queries), self.batch_size
    starts = range(0, rows, size)
    capacity = self._filter_capacity(known[0])
    counts: list[dict[str, np.ndarray]] = []
    pending = None
    bar = tqdm.tqdm(
      total=rows, desc=progress, unit='query', disable=not progress, leave=False
    )
    with bar, jax.default_matmul_precision('highest'):
      for start in starts:
        batch = self._batch(queries, known, start, capacity)
        running = self._rank(params, batch, None)
        if pending is not None:  # fetched while the next batch is computed
          counts.append(self._fetch(pending))
        pending = running
        bar.update(min(size, rows - start))
      if pending is not None:
        counts.append(self._fetch(pending))
    joined = [
      np.concatenate([count[name] for count in counts] or [np.zeros(0)])
      for name in ('better', 'equal', 'candidates')
    ]
    return Ranks(*(column[:rows].astype(np.int64) for column in joined))

  def _rank_piece(
    self, params: Any, batch: dict[str, jax.Array], _: None
  ) -> tuple[jax.Array, dict[str, jax.Array]]:
    scores: Any = self._model.apply(
      {'params': params}, batch['tokens'], batch['mask_position']
    )
    counts = ranking.count_against(
      scores, batch['gold'], batch['filter_row'], batch['filter_entity']
    )
    unusable = (~counts.pop('finite')).sum()
    return parallel.sum_over_devices(unusable), counts

  def _filter_capacity(self, indptr: np.ndarray) -> int:
    """The most filter pairs of any piece, rounded up to a power of two."""
    piece = self.batch_size // parallel.num_devices()
    ends = np.append(np.arange(0, len(indptr) - 1, piece), len(indptr) - 1)
    most = int(np.diff(indptr[ends]).max(initial=1))
    return 1 << (most - 1).bit_length()

  def _batch(
    self,
    queries: queries_lib.Queries,
    known: tuple[np.ndarray, np.ndarray],
    start: int,
    capacity: int,
  ) -> dict[str, np.ndarray]:
    """Queries start .. start + batch_size, the last ones repeated if short.

    Returns:
      tokens [n, B/n, K], mask_position [n, B/n], gold [n, B/n] and filter_row,
      filter_entity [n, capacity], for n devices.
    """
    devices = parallel.num_devices()
    piece = self.batch_size // devices
    rows = np.minimum(
      np.arange(start, start + self.batch_size), len(queries) - 1
    )
    indptr, indices = known
    filter_row = np.full((devices, capacity), piece, dtype=np.int32)
    filter_entity = np.zeros((devices, capacity), dtype=np.int32)
    for device in range(devices):
      first = min(start + device * piece, len(queries))
      last = min(first + piece, len(queries))
      counts = np.diff(indptr[first : last + 1])
      total = int(counts.sum())
      filter_row[device, :total] = np.repeat(np.arange(last - first), counts)
      filter_entity[device, :total] = indices[indptr[first] : indptr[last]]
    batch = parallel.shard(
      {
        'tokens': queries.tokens[rows],
        'mask_position': queries.mask_position[rows],
        'gold': queries.indices[queries.indptr[rows]],
      }
    )
    return {**batch, 'filter_row': filter_row, 'filter_entity': filter_entity}

  def _fetch(self, result: tuple[Any, Any]) -> dict[str, np.ndarray]:
    unusable, counts = jax.device_get(result)
    if unusable:
      raise FloatingPointError(
        f'{int(unusable)} of {self.batch_size} queries have scores that are '
        'not finite numbers: these parameters cannot be ranked'
      )
    return {name: count.reshape(-1) for name, count in counts.items()}


def batch_rows(num_entities: int) -> int:
  """Rows to rank at a time so that a device's scores stay below 64 MiB."""
  rows = _SCORE_BYTES // (4 * num_entities)
  return max(1, min(rows, _MOST_ROWS)) * parallel.num_devices()


def link_prediction(
  ranker: Callable[..., Ranks],
  params: Any,
  graph: graph_lib.KnowledgeGraph,
  split: str,
  *,
  filter_splits: tuple[str, ...] = graph_lib.SPLITS,
  progress: str = '',
) -> tuple[dict[str, Any], Ranks]:
  """Filtered ranks of both sides of every triple of a split.

  Args:
    ranker: see `Ranker`.
    params: replicated parameters.
    graph: gives the triples and the known answers.
    split: whose T triples are ranked.
    filter_splits: the splits whose triples count as known. While a checkpoint
      is chosen, leave test out.
    progress: what the progress bar says.

  Returns:
    The results as `results.json` holds them, and 2 T ranks: first those of the
    tail queries, then those of the head queries.
  """
  vocabulary = graph.vocabulary
  triples = graph.split(split)
  queries = queries_lib.from_triples(triples, vocabulary)
  known = queries_lib.from_triples(graph.triples(*filter_splits), vocabulary)
  ranks = ranker(
    params, queries, queries.known_answers(known), progress=progress
  )
  return summarize(ranks, graph, split), ranks


def summarize(
  ranks: Ranks, graph: graph_lib.KnowledgeGraph, split: str
) -> dict[str, Any]:
  """The results of 2 T ranks (tail queries, then head queries) of a split."""
  triples = graph.split(split)
  count = len(triples)
  tail = np.arange(2 * count) < count
  relation = np.tile(triples[:, 1], 2)
  category = relation_categories(graph)[relation]

  def by_side(rows: np.ndarray) -> dict[str, Any]:
    sides = {'both': rows, 'head': rows & ~tail, 'tail': rows & tail}
    return {
      name: rank_metrics(ranks.realistic[side], ranks.candidates[side])
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
    results[name] = rank_metrics(getattr(ranks, name), ranks.candidates)
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
      'category': str(relation_categories(graph)[index]),
      'queries': int((relation == index).sum()),
      **by_side(relation == index),
    }
    for index in np.unique(relation)
  }
  return results


def relation_categories(graph: graph_lib.KnowledgeGraph) -> np.ndarray:
  """The category of each relation: text [R], one of CATEGORIES.

  A side counts as N if the other side meets 1.5 or more different entities
  there on average, over the distinct triples of all splits (Bordes et al. 2013,
  section 4.2). The first place is the head's: in a 1-N relation a tail has one
  head and a head has several tails.
  """
  triples = np.unique(graph.triples(*graph_lib.SPLITS), axis=0)
  num_relations = graph.vocabulary.num_relations
  relation = triples[:, 1]
  count = np.bincount(relation, minlength=num_relations)

  def distinct(column: int) -> np.ndarray:  # entities of a side, by relation
    pairs = np.unique(triples[:, [1, column]], axis=0)
    return np.bincount(pairs[:, 0], minlength=num_relations)

  tails_per_head = count / np.maximum(distinct(0), 1)
  heads_per_tail = count / np.maximum(distinct(2), 1)
  many_heads = heads_per_tail >= _CARDINALITY
  many_tails = tails_per_head >= _CARDINALITY
  return np.array(CATEGORIES)[2 * many_heads + many_tails]


def format_table(results: dict[str, Any]) -> str:
  """The results for a person: sides, then categories."""
  columns = ['mrr', *(f'hits@{k}' for k in HITS), 'mean_rank']
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
