"""Methods of a trained model for questions about a whole graph."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, graph
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.predict import parser as parser_lib
from coke_jax.predict import predictor as predictor_lib
from coke_jax.predict import questions, records, validation
from coke_jax.predict.jobs import audit as audit_lib
from coke_jax.predict.jobs import calibrate as calibrate_lib
from coke_jax.predict.jobs import discover as discover_lib
from coke_jax.predict.jobs import facts as facts_lib


class GraphMethods:
  """Methods of `model.Model` for questions about a whole graph.

  Attributes:
    data: labels and splits.
    max_path_length: maximum number of relations in a training path.
    parser: converts labels to ids.
    predictor: computes predictions for ids in batches.
    calibration: converts scores to probabilities. None if no calibration is
      stored with the model and `calibrate` has not been called.
  """

  data: arrays.DataSet
  max_path_length: int
  parser: parser_lib.Parser
  predictor: predictor_lib.Predictor
  calibration: calibrate_lib.Calibration | None = None

  def evaluate(
    self, split: str = 'test', *, progress: bool = False
  ) -> dict[str, Any]:
    """Computes the metrics of a split, as `coke evaluate` does.

    Args:
      split: `train`, `valid` or `test`.
      progress: whether to show a progress bar.

    Returns:
      The content of `results.json` without `step`. For triples, `both`, `head`
      and `tail` are the filtered metrics, such as `mrr` and `hits@10`. For
      paths, the main metric is `mean_quantile`.

    Raises:
      QuestionError: the split is unknown or empty.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_splits((split,))
    if not len(self.data.split(split)):
      raise questions.QuestionError(
        f'split is {split!r}: expected a split that is not empty'
      )
    task: link_prediction.LinkPrediction | path_queries.PathQueries
    if isinstance(self.data, graph.KnowledgeGraph):
      task = link_prediction.LinkPrediction(self.data)
    else:
      task = path_queries.PathQueries(self.data, self.max_path_length)
    scorer = self.predictor.scorer
    return task.evaluate(
      ranker_lib.Ranker(scorer.model, placement=scorer.placement),
      scorer.params,
      split,
      choosing=False,
      progress=f'ranking {split}' if progress else '',
    )

  def discover(
    self,
    relations: str | Sequence[str] | None = None,
    *,
    top: int = 100,
    per_head: int | None = None,
    splits: Sequence[str] = graph.SPLITS,
    type_matching: bool = True,
    progress: bool = False,
  ) -> records.Records[discover_lib.NewFact]:
    """Finds the most plausible facts that are not known.

    Facts are ordered by the probability of the tail, multiplied by the number
    of known tails of the head and relation. This makes questions with one
    answer and questions with many answers comparable.

    All plausible heads of each relation are tried. If a relation has no known
    fact from an entity to itself, new facts of this kind are left out. If a
    relation is symmetric, only the better of (h, r, t) and (t, r, h) is
    returned.

    Args:
      relations: a relation or a list of relations. Default: all relations. An
        inverse relation is replaced by the relation that it inverts.
      top: the maximum number of facts.
      per_head: the maximum number of facts with the same head. Default: no
        limit.
      splits: the splits whose facts count as known. Facts of train always
        count.
      type_matching: whether to limit heads to the known heads of the relation,
        and tails to its known tails. An exception is a relation such as
        `capital`, with only one tail for nearly all heads. Its heads are the
        entities without a known tail that are expected to have a tail, see
        `plausible_entities`. If nearly all tails have only one head, the tails
        are limited in the same way. With False, every entity is tried.
      progress: whether to show a progress bar.

    Returns:
      The facts, best first.

    Raises:
      QuestionError: a relation or split is unknown, or a number is below 1.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_splits(splits)
    return discover_lib.discover(
      self.predictor,
      top=validation.whole_number('top', top, least=1),
      relations=self._relations(relations),
      per_head=(
        None
        if per_head is None
        else validation.whole_number('per_head', per_head, least=1)
      ),
      splits=splits,
      type_matching=type_matching,
      progress=progress,
    )

  def audit(
    self,
    relations: str | Sequence[str] | None = None,
    *,
    top: int = 100,
    splits: Sequence[str] = graph.SPLITS,
    entities: str | Sequence[str] | None = None,
    expected: int = 3,
    progress: bool = False,
    judges: Iterable[audit_lib.Judge] = (),
  ) -> records.Records[audit_lib.Suspicion]:
    """Finds the known facts that the model considers least plausible.

    The score of a tail is its log-probability, plus the logarithm of the number
    of known tails of its head and relation. If there is only one known tail, a
    negative term is added. This term is lowest for relations whose heads rarely
    have a single tail, see `coke_jax.predict.jobs.audit`. The head's score is
    computed in the same way. Facts are ordered by the mean of both scores.

    Args:
      relations: a relation or a list of relations. Default: all relations.
      top: the maximum number of facts.
      splits: the splits whose facts are audited. Known answers are counted in
        all splits.
      entities: an entity or a list of entities. Only facts with one of them are
        audited. Default: all entities.
      expected: the maximum number of entities in `expected_heads` and in
        `expected_tails`.
      progress: whether to show a progress bar.
      judges: models that were trained without the facts that they score, see
        `coke_jax.cross_audit`. All other arguments are checked before the first
        judge is requested. Default: this model scores all facts.

    Returns:
      The facts, least plausible first.

    Raises:
      QuestionError: a relation, entity or split is unknown; `top` is below 1;
        or `expected` is below 0.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_splits(splits)
    if isinstance(entities, str):
      entities = [entities]
    if entities is not None:
      validation.check_list('entities', entities)
    return audit_lib.audit(
      self.predictor,
      top=validation.whole_number('top', top, least=1),
      relations=self._relations(relations),
      splits=splits,
      entities=None
      if entities is None
      else [self.parser.entity(label) for label in entities],
      expected=validation.whole_number('expected', expected, least=0),
      progress=progress,
      judges=judges,
    )

  def calibrate(self, split: str = 'valid') -> calibrate_lib.Calibration:
    """Fits a function from scores to the probability that an answer is correct.

    Stores the function in `self.calibration` for `probability`.

    Args:
      split: the split to fit to, `valid` or `test`.

    Returns:
      The calibration. Its method `threshold` returns score thresholds.

    Raises:
      QuestionError: `split` is neither `valid` nor `test`, or all its facts are
        in train.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_evaluation_split(split)
    self.calibration = calibrate_lib.fit(self.predictor, split)
    return self.calibration

  def probability(
    self,
    facts: questions.Labels | Sequence[questions.Labels],
    side: str = 'tail',
  ) -> np.ndarray:
    """Computes calibrated probabilities that facts are correct.

    Args:
      facts: a triple or path of labels without `?`, or a list of N facts.
      side: the end to predict, `head` or `tail`.

    Returns:
      float64 [N]. N is 1 for a single fact.

    Raises:
      QuestionError: a label or side is unknown, or the model has no
        calibration.
      NonFiniteError: a score is NaN or infinite.
    """
    (side,) = validation.sides(side, both=False)
    parsed = list(map(self.parser.fact, validation.as_list(facts)))
    scores = calibrate_lib.score_facts(self.predictor, parsed, side)
    return self._calibration().probability(scores)

  def reliability(
    self, split: str = 'test', bins: int = 10
  ) -> records.Records[calibrate_lib.ReliabilityBin]:
    """Compares calibrated probabilities with the shares of correct answers.

    Args:
      split: `valid` or `test`. Use a split that `calibrate` did not use.
      bins: the number of intervals of equal width.

    Returns:
      The intervals that contain candidates, in ascending order.

    Raises:
      QuestionError: `split` is neither `valid` nor `test`, `bins` is below 1,
        or the model has no calibration.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_evaluation_split(split)
    bins = validation.whole_number('bins', bins, least=1)
    return records.Records(
      calibrate_lib.reliability(
        self.predictor, self._calibration(), split, bins
      )
    )

  def _calibration(self) -> calibrate_lib.Calibration:
    if self.calibration is None:
      raise questions.QuestionError(
        'the model has no calibration: expected a call of calibrate()'
      )
    return self.calibration

  def _relations(self, labels: str | Sequence[str] | None) -> list[int] | None:
    """Returns the distinct base relations of labels. Returns None for None."""
    if labels is None:
      return None
    if isinstance(labels, str):
      labels = [labels]
    validation.check_list('relations', labels)
    relations = [self.parser.relation(label) for label in labels]
    return facts_lib.to_base(self.data, relations)
