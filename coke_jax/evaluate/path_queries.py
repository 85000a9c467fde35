"""Evaluation of path queries: ranks each target among its negatives.

This is the protocol of Guu, Miller and Liang (2015), which section 4.2 of the
CoKE paper uses. The module `path_negatives` finds the negatives of each path.
The quantile of a target is the fraction of negatives with a lower score. A
negative with the same score counts as half.
"""

from typing import Any

import numpy as np

from coke_jax import config
from coke_jax.data import fresh_walks
from coke_jax.data import paths as paths_lib
from coke_jax.data import queries as queries_lib
from coke_jax.evaluate import link_prediction, path_negatives
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib

# A target counts for hits@10 if at most this many negatives score higher. A
# negative with the same score counts as half.
_MOST_ABOVE = 9


class PathQueries:
  """The task of path queries: training queries and evaluation.

  Attributes:
    data: the paths.
    max_path_length: maximum number of relations in a training path. Longer
      paths of the training split are not used.
    walks: the source of walks that are sampled in each epoch. The walks replace
      the training paths with more than one relation. Default: no walks.
  """

  def __init__(
    self,
    data: paths_lib.PathData,
    max_path_length: int,
    walks: fresh_walks.FreshWalks | None = None,
  ):
    self.data = data
    self.max_path_length = max_path_length
    self.walks = walks
    self._sets: dict[str, path_negatives.EvaluationSets] = {}

  @property
  def max_length(self) -> int:
    """The number of tokens in the longest path of all splits."""
    return self.data.train.relations.shape[1] + 2

  def training_queries(self) -> queries_lib.Queries:
    """Returns queries for the targets, then the sources, of training paths.

    If there are walks, paths with more than one relation are left out.

    Returns:
      Two queries for each path, with one answer each.

    Raises:
      config.ConfigError: all training paths are left out.
    """
    paths = self.data.train.up_to(1 if self.walks else self.max_path_length)
    if not len(paths):
      raise config.ConfigError(
        f'config.data.max_path_length is {self.max_path_length}: expected at '
        'least the length of the shortest training path'
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
    """Computes the mean quantile and hits@10 of a split's targets.

    Args:
      ranker: ranks the answers of queries.
      params: parameters on the devices, see `shards.placement`.
      split: `train`, `valid` or `test`.
      choosing: whether the results are used to choose the best checkpoint. If
        not, the paths with a single relation are also evaluated as triples,
        with the metrics of link prediction.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The content of `results.json`: the results of `summarize`. If `choosing`
      is False, `single_edges` contains the metrics of link prediction. It is
      empty if the split has no path with a single relation.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    ranks = self.rank(ranker, params, split, progress=progress)
    results = self.summarize(ranks, split)
    if not choosing:
      single = self.single_edges(split)
      name = f'{progress}: single edges'
      results['single_edges'] = (
        single.evaluate(ranker, params, split, choosing=False, progress=name)
        if single
        else {}
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
    """Ranks the target of each path among the negatives of the path.

    Args:
      ranker: ranks the answers of queries.
      params: parameters on the devices, see `shards.placement`.
      split: `train`, `valid` or `test`.
      progress: label of the progress bar. Default: no bar.

    Returns:
      The ranks of the targets of the split's N paths, in the same order.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    sets = self.sets(split)
    paths = self.data.split(split)
    queries = paths_lib.queries_from_paths(
      paths, self.data.vocabulary, side='tail'
    )

    # Sort the paths so that paths with equal sets of answers tend to be in the
    # same batch. This saves time, because `EntitySets.mask` builds the mask of
    # each distinct set in a batch only once.
    order = np.lexsort((sets.answers.set_of, sets.last_relation))

    def negatives(rows: np.ndarray) -> np.ndarray:  # [B] -> bool [B, V]
      rows = order[rows]
      candidates = sets.candidate_mask[sets.last_relation[rows]]
      return candidates & ~sets.answers.mask(rows)

    ranks = ranker.rank_among(
      params, queries.take(order), negatives, progress=progress
    )
    return ranks.take(np.argsort(order))

  def sets(self, split: str) -> path_negatives.EvaluationSets:
    """Returns the negatives of the paths of a split.

    The first call for a split computes them. Later calls return the same
    object.
    """
    if split not in self._sets:
      self._sets[split] = path_negatives.evaluation_sets(self.data, split)
    return self._sets[split]

  def summarize(self, ranks: ranks_lib.Ranks, split: str) -> dict[str, Any]:
    """Computes the metrics of a split from its ranks.

    Args:
      ranks: the ranks of the split's N targets.
      split: `train`, `valid` or `test`.

    Returns:
      A dictionary of:
        `dataset`, `split`: the names of the data set and of the split.
        The metrics of `quantile_metrics` over all paths.
        `targets_out_of_reach`: the number of paths whose target cannot be
          reached along their relations, because train and this split lack
          edges.
        `by_length`: a dict from number of relations to the metrics of the paths
          of this length.
        `deduction`, `induction`: the metrics of the paths by deduction and of
          the paths by induction. They are missing if the data do not
          distinguish these paths.
    """
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
    """Returns the mean quantile, or 0 if there is no query with negatives."""
    metric: float = results.get('mean_quantile', 0.0)
    return metric

  def describe(self, results: dict[str, Any]) -> str:
    """Formats the main metrics in one line."""
    if 'mean_quantile' not in results:
      return f'no metrics: none of the {results["queries"]} paths has negatives'
    return (
      f'mean quantile {results["mean_quantile"]:.4f}, '
      f'hits@10 {results["hits@10"]:.4f}'
    )

  def format_table(self, results: dict[str, Any]) -> str:
    """Formats results as a table.

    The rows are: all paths, each path length, and deduction and induction if
    the results contain them. If the results contain `single_edges`, a second
    table with the metrics of link prediction follows.

    Args:
      results: the results of `evaluate`.

    Returns:
      Several lines of text, without a line end after the last.
    """
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
      'type-matching negatives; a tie counts as half\n' + '\n'.join(lines)
    )
    if results.get('single_edges'):
      table += '\n' + link_prediction.format_table(results['single_edges'])
    return table

  def single_edges(self, split: str) -> link_prediction.LinkPrediction | None:
    """Returns link prediction on the paths with a single relation.

    Args:
      split: the split to rank.

    Returns:
      The task, whose graph has the single edges of all splits. None if the
      split has no path with a single relation.
    """
    edges = self.data.single_edges()
    if not len(edges.split(split)):
      return None
    return link_prediction.LinkPrediction(edges)


def quantile_metrics(ranks: ranks_lib.Ranks) -> dict[str, Any]:
  """Computes the mean quantile and hits@10.

  Args:
    ranks: the ranks of N targets among their negatives.

  Returns:
    A dictionary of:
      `queries`: N.
      `trivial`: the number of queries without negatives.
      `mean_quantile`, `hits@10`: the means over all queries with negatives.
        They are missing if there is no such query.
  """
  negatives = ranks.candidates - 1
  ranked = negatives > 0
  metrics: dict[str, Any] = {
    'queries': len(negatives),
    'trivial': int((~ranked).sum()),
  }
  if ranked.any():
    above = (ranks.realistic - 1)[ranked]
    quantile = 1 - above / negatives[ranked]
    metrics['mean_quantile'] = float(quantile.mean())
    metrics['hits@10'] = float((above <= _MOST_ABOVE).mean())
  return metrics
