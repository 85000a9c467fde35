"""Ranks a split, and finds the relations or paths with the lowest metrics."""

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from coke_jax.data import graph as graph_lib
from coke_jax.data import grouping
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.evaluate import ranks as ranks_lib
from coke_jax.predict import known_facts, load, predictor, questions
from coke_jax.report import content

_MOST_HARD = 8  # maximum number of hard relations or paths
_FEWEST_QUERIES = 10  # minimum number of queries, see `_fewest`
_EXAMPLES = 3  # maximum number of examples of a hard relation or path
_BEFORE = 3  # maximum number of entities in `content.Example.before`


class _Draft(NamedTuple):
  """An example without the entities that are ranked before its answer."""

  fact: tuple[str, ...]
  question: questions.Question
  rank: float
  candidates: int
  better: int


# Converts the index of a query to the labels of its fact, and its question.
_Describe = Callable[[int], tuple[tuple[str, ...], questions.Question]]


def rank(
  loaded: load.Loaded, split: str, *, progress: bool = False
) -> content.Ranking:
  """Ranks a split, and finds its hardest relations or paths.

  Args:
    loaded: the model and its task.
    split: `train`, `valid` or `test`. The split must contain queries.
    progress: whether to show progress bars.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  started = time.monotonic()
  scorer = loaded.model.predictor.scorer
  ranker = ranker_lib.Ranker(
    scorer.model,
    loaded.config.evaluate.batch_size,
    placement=scorer.placement,
  )
  label = f'ranking {split}' if progress else ''
  task: Any = loaded.task
  ranks = task.rank(ranker, scorer.params, split, progress=label)
  results = task.summarize(ranks, split)
  if isinstance(task, link_prediction.LinkPrediction):
    results['filter'] = list(graph_lib.SPLITS)
  else:
    single = task.single_edges(split)
    results['single_edges'] = (
      single.evaluate(
        ranker,
        scorer.params,
        split,
        choosing=False,
        progress=label and f'{label}: single edges',
      )
      if single
      else {}
    )
  results['step'] = loaded.step
  seconds = time.monotonic() - started
  if isinstance(task, link_prediction.LinkPrediction):
    hardest, fewest = _hard_relations(loaded, ranks, results, split)
  else:
    hardest, fewest = _hard_paths(loaded, ranks, split)
  return content.Ranking(split, results, hardest, fewest, seconds)


def _hard_relations(
  loaded: load.Loaded,
  ranks: ranks_lib.Ranks,
  results: dict[str, Any],
  split: str,
) -> tuple[tuple[content.HardQueries, ...], int]:
  """Finds the relations with the lowest MRR.

  Returns:
    The relations.
    The minimum number of queries of a relation.
  """
  data: Any = loaded.task.data
  words = data.vocabulary
  triples = data.split(split)
  relation = np.tile(triples[:, 1], 2)
  parts = results['by_relation']
  fewest = _fewest(part['queries'] for part in parts.values())
  chosen = sorted(
    (label for label, part in parts.items() if part['queries'] >= fewest),
    key=lambda label: parts[label]['both']['mrr'],
  )[:_MOST_HARD]

  def describe(row: int) -> tuple[tuple[str, ...], questions.Question]:
    side = 'tail' if row < len(triples) else 'head'
    head, one, tail = triples[row % len(triples)].tolist()
    known = head if side == 'tail' else tail
    labels = (words.entities[head], words.relations[one], words.entities[tail])
    return labels, questions.Question(known, (one,), side)

  drafts = [
    _worst(
      np.flatnonzero(relation == words.relation_ids[label]),
      ranks.realistic,
      ranks,
      describe,
    )
    for label in chosen
  ]
  examples = _complete(
    loaded.model.predictor, drafts, known_facts.Restriction(new_only=True)
  )
  return tuple(
    content.HardQueries(
      (label,),
      parts[label]['category'],
      parts[label]['queries'],
      {
        'MRR': parts[label]['both']['mrr'],
        'head MRR': parts[label]['head']['mrr'],
        'tail MRR': parts[label]['tail']['mrr'],
        'hits@10': parts[label]['both']['hits@10'],
      },
      some,
    )
    for label, some in zip(chosen, examples, strict=True)
  ), fewest


def _hard_paths(
  loaded: load.Loaded, ranks: ranks_lib.Ranks, split: str
) -> tuple[tuple[content.HardQueries, ...], int]:
  """Finds the sequences of relations with the lowest mean quantile.

  Returns:
    The sequences of relations.
    The minimum number of queries of a sequence.
  """
  data: Any = loaded.task.data
  words, paths = data.vocabulary, data.split(split)
  group, num_groups = grouping.group_rows(
    paths.relations - vocabulary_lib.NO_RELATION
  )
  negatives = ranks.candidates - 1
  counts = np.bincount(group[negatives > 0], minlength=num_groups)
  if not counts.any():
    return (), 0
  fewest = _fewest(counts.tolist())
  badness = (ranks.realistic - 1) / np.maximum(negatives, 1)
  total = np.bincount(group, badness, minlength=num_groups)
  mean = total / np.maximum(counts, 1)
  large = np.flatnonzero(counts >= fewest)
  chosen = large[np.argsort(-mean[large], kind='stable')][:_MOST_HARD]

  def relations_of(row: int) -> tuple[int, ...]:
    return tuple(paths.relations[row, : paths.length[row]].tolist())

  def describe(row: int) -> tuple[tuple[str, ...], questions.Question]:
    steps = relations_of(row)
    labels = (
      words.entities[paths.source[row]],
      *(words.relations[step] for step in steps),
      words.entities[paths.target[row]],
    )
    return labels, questions.Question(int(paths.source[row]), steps, 'tail')

  rows_of = [np.flatnonzero((group == one) & (negatives > 0)) for one in chosen]
  examples = _complete(
    loaded.model.predictor,
    [_worst(rows, badness, ranks, describe) for rows in rows_of],
    known_facts.Restriction(
      splits=('train', split), new_only=True, type_matching=True
    ),
  )
  found = []
  for rows, some in zip(rows_of, examples, strict=True):
    metrics = path_queries.quantile_metrics(ranks.take(rows))
    found.append(
      content.HardQueries(
        tuple(words.relations[step] for step in relations_of(rows[0])),
        '',
        len(rows),
        {
          'mean quantile': metrics['mean_quantile'],
          'hits@10': metrics['hits@10'],
        },
        some,
      )
    )
  return tuple(found), fewest


def _fewest(counts: Iterable[int]) -> int:
  """Returns `_FEWEST_QUERIES`, or the highest count if all are lower."""
  return min(_FEWEST_QUERIES, max(counts))


def _worst(
  rows: np.ndarray,
  badness: np.ndarray,
  ranks: ranks_lib.Ranks,
  describe: _Describe,
) -> list[_Draft]:
  """Returns the worst queries, at most one for each question.

  Args:
    rows: the indices of the queries to choose from.
    badness: float64 [N], a number for each query. A higher number is worse.
    ranks: the ranks of the N queries.
    describe: returns the labels of a query's fact, and its question.
  """
  found: dict[Any, _Draft] = {}
  for row in rows[np.argsort(-badness[rows], kind='stable')].tolist():
    better = int(ranks.better[row])
    if not better or len(found) == _EXAMPLES:
      break
    fact, question = describe(row)
    found.setdefault(
      (question.entity, question.relations, question.side),
      _Draft(
        fact,
        question,
        float(ranks.realistic[row]),
        int(ranks.candidates[row]),
        better,
      ),
    )
  return list(found.values())


def _complete(
  predictor: predictor.Predictor,
  drafts: Sequence[Sequence[_Draft]],
  restriction: known_facts.Restriction,
) -> list[tuple[content.Example, ...]]:
  """Adds to each example the entities that are ranked before its answer."""
  asked = [one.question for some in drafts for one in some]
  answers = iter(predictor.answer(asked, _BEFORE, restriction))
  return [
    tuple(
      content.Example(
        one.fact,
        one.question.side,
        one.rank,
        one.candidates,
        tuple(found.label for found in next(answers)[: one.better]),
      )
      for one in some
    )
    for some in drafts
  ]
