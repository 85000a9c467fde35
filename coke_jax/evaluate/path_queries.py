"""Path queries: train on paths, rank their ends among type-matching negatives.

The protocol of Guu, Miller and Liang (2015), as the paper uses it (section
4.2): a path's target is ranked among the entities that could end an edge of its
last relation and are not reached from the source. The quantile is the share of
these negatives that the target leaves behind, ties counting half.
"""

from typing import Any

import numpy as np

from coke_jax import config
from coke_jax.data import graph as graph_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import link_prediction, path_negatives
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib

_MOST_ABOVE = 9  # negatives above a target that counts for hits@10


class PathQueries:
  """Path data as something to train on and to be measured by.

  Attributes:
    data: the paths.
    max_path_length: relations in the longest path to train on.
  """

  def __init__(self, data: paths_lib.PathData, max_path_length: int):
    self.data = data
    self.max_path_length = max_path_length
    self._sets: dict[str, path_negatives.EvaluationSets] = {}

  @property
  def max_length(self) -> int:
    """Tokens in the longest path of any split: all are asked in the end."""
    return self.data.train.relations.shape[1] + 2

  def training_queries(self) -> queries_lib.Queries:
    """Both ends of the training paths of at most `max_path_length` relations.

    Raises:
      config.ConfigError: there is no such path.
    """
    paths = self.data.train.up_to(self.max_path_length)
    if not len(paths):
      raise config.ConfigError(
        f'config.data.max_path_length is {self.max_path_length}: no training '
        'path is that short'
      )
    return paths_lib.queries_from_paths(paths, self.data.vocabulary)

  def evaluate(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    *,
    choosing: bool,
    progress: str = '',
  ) -> dict[str, Any]:
    """Mean quantile and hits@10 of a split's targets.

    Args:
      ranker: see `ranker.Ranker`.
      params: replicated parameters.
      split: whose paths are asked.
      choosing: whether this is to choose a checkpoint. Otherwise the single
        edges of the split are also ranked as in link prediction.
      progress: what the progress bar says.

    Returns:
      The results as `results.json` holds them.
    """
    ranks = self.rank(ranker, params, split, progress=progress)
    results = self.summarize(ranks, split)
    if not choosing:
      results['single_edges'] = self._link_prediction(
        ranker, params, split, progress=f'{progress}: single edges'
      )
    return results

  def rank(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    *,
    progress: str = '',
  ) -> ranks_lib.Ranks:
    """Where the targets of a split's N paths stand among their negatives."""
    sets = self.sets(split)
    paths = self.data.split(split)
    queries = paths_lib.queries_from_paths(
      paths, self.data.vocabulary, side='tail'
    )

    # Neighbours that share their answers are written out together, faster.
    order = np.lexsort((sets.answers.set_of, sets.last_relation))

    def negatives(places: np.ndarray) -> np.ndarray:  # [B] -> bool [B, V]
      rows = order[places]
      candidates = sets.candidate_mask[sets.last_relation[rows]]
      return candidates & ~sets.answers.mask(rows)

    ranks = ranker.among(
      params, queries.take(order), negatives, progress=progress
    )
    return ranks.take(np.argsort(order))

  def sets(self, split: str) -> path_negatives.EvaluationSets:
    """What the targets of a split are ranked against; made once."""
    if split not in self._sets:
      self._sets[split] = path_negatives.evaluation_sets(self.data, split)
    return self._sets[split]

  def summarize(self, ranks: ranks_lib.Ranks, split: str) -> dict[str, Any]:
    """The results of a split's N ranks."""
    length = self.data.split(split).length
    results: dict[str, Any] = {
      'dataset': self.data.name,
      'split': split,
      **quantile_metrics(ranks),
      'targets_out_of_reach': int((~self.sets(split).reached).sum()),
      'by_length': {
        str(relations): quantile_metrics(ranks.take(length == relations))
        for relations in np.unique(length)
      },
    }
    if split in self.data.deduction:
      deduction = self.data.deduction[split]
      results['deduction'] = quantile_metrics(ranks.take(deduction))
      results['induction'] = quantile_metrics(ranks.take(~deduction))
    return results

  def choosing_metric(self, results: dict[str, Any]) -> float:
    """The mean quantile; 0 when no query has negatives."""
    metric: float = results.get('mean_quantile', 0.0)
    return metric

  def describe(self, results: dict[str, Any]) -> str:
    """The metrics of a validation in one line."""
    if 'mean_quantile' not in results:
      return f'of {results["queries"]} paths, all without negatives'
    return (
      f'mean quantile {results["mean_quantile"]:.4f}, '
      f'hits@10 {results["hits@10"]:.4f}'
    )

  def format_table(self, results: dict[str, Any]) -> str:
    """The results for a person: all paths, then by length and by reasoning."""
    rows = [('all paths', results)]
    rows += [
      (f'{length} relation' + ('s' if length != '1' else ''), part)
      for length, part in results['by_length'].items()
    ]
    rows += [
      (name, results[name])
      for name in ('deduction', 'induction')
      if name in results
    ]
    lines = [f'{"":<14}{"queries":>9}{"trivial":>9}{"MQ":>9}{"hits@10":>9}']
    for name, part in rows:
      cells = (
        f'{part["mean_quantile"]:>9.4f}{part["hits@10"]:>9.4f}'
        if 'mean_quantile' in part
        else f'{"-":>9}{"-":>9}'
      )
      lines.append(
        f'{name:<14}{part["queries"]:>9,}{part["trivial"]:>9,}{cells}'
      )
    table = (
      f'{results["dataset"]}, {results["split"]}: targets ranked among their '
      'type-matching negatives, ties half\n' + '\n'.join(lines)
    )
    if results.get('single_edges'):
      table += '\n' + link_prediction.format_table(results['single_edges'])
    return table

  def _link_prediction(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    *,
    progress: str,
  ) -> dict[str, Any]:
    edges = {
      name: self.data.split(name).single_edges() for name in graph_lib.SPLITS
    }
    if not len(edges[split]):
      return {}
    single = graph_lib.KnowledgeGraph(
      f'{self.data.name} (single edges)', self.data.vocabulary, **edges
    )
    return link_prediction.LinkPrediction(single).evaluate(
      ranker, params, split, choosing=False, progress=progress
    )


def quantile_metrics(ranks: ranks_lib.Ranks) -> dict[str, Any]:
  """Mean quantile and hits@10 over the queries that have negatives.

  Args:
    ranks: where N targets stand.

  Returns:
    queries, trivial (no negatives: left out of the means) and, unless all are
    trivial, mean_quantile and hits@10 (at most nine negatives above).
  """
  negatives = ranks.candidates - 1
  asked = negatives > 0
  metrics: dict[str, Any] = {
    'queries': len(negatives),
    'trivial': int((~asked).sum()),
  }
  if asked.any():
    above = (ranks.realistic - 1)[asked]
    quantile = 1 - above / negatives[asked]
    metrics['mean_quantile'] = float(quantile.mean())
    metrics['hits@10'] = float((above <= _MOST_ABOVE).mean())
  return metrics
