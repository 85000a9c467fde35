"""Converts scores to the probabilities that answers are correct.

The score of an answer is its log-probability, plus the logarithm of the number
of answers to the question that are known from train. The calibration uses the
facts of one split that are not in train. Each of these facts gives a question
for its tail and a question for its head. The candidates for a question are all
entities except the known answers from other splits. A candidate is correct if
it completes a fact of the split. Isotonic regression finds the share of correct
candidates as a function of the score.

So the probabilities are valid for questions with at least one correct answer
that is not in train. The split must contain all such answers.
"""

import dataclasses

import numpy as np

from coke_jax.data import graph
from coke_jax.predict import predictor, questions, validation
from coke_jax.predict.jobs import facts as facts_lib

# The precisions for which thresholds of the score are shown.
PRECISIONS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)

# The scores from -50 to 22 are counted in bins of width 1 / 64. Only the number
# of scores in each bin is kept, so the memory does not depend on the number of
# candidates.
_LOWEST = -50.0
_WIDTH = 1 / 64
_BINS = 4608


@dataclasses.dataclass(frozen=True)
class ReliabilityBin:
  """The candidates whose calibrated probabilities are in an interval.

  Attributes:
    low: the lower end of the interval.
    high: the upper end of the interval.
    predicted: the mean calibrated probability of the candidates.
    observed: the share of correct candidates.
    count: the number of candidates.
  """

  low: float
  high: float
  predicted: float
  observed: float
  count: int


@dataclasses.dataclass(frozen=True)
class Calibration:
  """The share of correct candidates as a step function of the score.

  Attributes:
    split: the split that the function was fitted to.
    lower: the lowest score of each step, ascending. The first step also
      contains all lower scores.
    correct: the number of correct candidates in each step.
    candidates: the number of candidates in each step.
  """

  split: str
  lower: tuple[float, ...]
  correct: tuple[int, ...]
  candidates: tuple[int, ...]

  def probability(self, scores: np.ndarray) -> np.ndarray:
    """Converts scores to calibrated probabilities.

    Args:
      scores: floats of any shape, for example `NewFact.score`. The module
        defines scores.

    Returns:
      float64 with the shape of `scores`.
    """
    share = np.array(self.correct) / np.array(self.candidates)
    step = np.searchsorted(np.array(self.lower), scores, side='right') - 1
    return share[np.maximum(step, 0)]

  def threshold(self, precision: float) -> float | None:
    """Returns the lowest score from which the precision is high enough.

    Args:
      precision: minimum share of correct candidates, 0 to 1.

    Returns:
      A score s. Among the candidates of the split with a score of at least s,
      the share of correct candidates is at least `precision`. None if no score
      is sufficient.
    """
    correct = np.cumsum(self.correct[::-1])
    sufficient = correct >= precision * np.cumsum(self.candidates[::-1])
    if not sufficient[0]:
      return None
    # A lower step has a lower share, so each further step lowers the precision.
    return self.lower[::-1][int(np.flatnonzero(sufficient)[-1])]


def fit(predictor: predictor.Predictor, split: str) -> Calibration:
  """Fits a calibration to a split.

  Args:
    predictor: predicts with the model.
    split: `valid` or `test`.

  Raises:
    questions.QuestionError: all facts of the split are in train.
    errors.NonFiniteError: a score is NaN or infinite.
  """
  correct, candidates = _count(predictor, split)
  used = np.flatnonzero(candidates)
  if not correct.any():
    raise questions.QuestionError(
      f'split {split!r}: all facts are in train: expected a split with facts '
      'that are not in train'
    )
  # Imported here, because the import takes a tenth of the time that `coke`
  # needs to start.
  import scipy.optimize

  fitted = scipy.optimize.isotonic_regression(
    correct[used] / candidates[used], weights=candidates[used]
  )
  first = fitted.blocks[:-1]
  return Calibration(
    split,
    tuple((_LOWEST + _WIDTH * used[first]).tolist()),
    tuple(np.add.reduceat(correct[used], first).tolist()),
    tuple(np.add.reduceat(candidates[used], first).tolist()),
  )


def reliability(
  predictor: predictor.Predictor,
  calibration: Calibration,
  split: str,
  bins: int,
) -> list[ReliabilityBin]:
  """Compares calibrated probabilities with the shares of correct candidates.

  Args:
    predictor: predicts with the model.
    calibration: the calibration.
    split: `valid` or `test`.
    bins: the number of intervals of equal width.

  Returns:
    The intervals that contain candidates, in ascending order.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  correct, candidates = _count(predictor, split)
  lower = _LOWEST + _WIDTH * np.arange(_BINS)
  predicted = calibration.probability(lower)
  place = np.minimum((predicted * bins).astype(np.int64), bins - 1)
  count = np.bincount(place, candidates, minlength=bins)
  hits = np.bincount(place, correct, minlength=bins)
  total = np.bincount(place, predicted * candidates, minlength=bins)
  return [
    ReliabilityBin(
      low=row / bins,
      high=(row + 1) / bins,
      predicted=float(total[row] / count[row]),
      observed=float(hits[row] / count[row]),
      count=int(count[row]),
    )
    for row in np.flatnonzero(count).tolist()
  ]


def score_facts(
  predictor: predictor.Predictor,
  parsed: list[questions.Fact],
  side: str,
) -> np.ndarray:
  """Computes the scores of the heads or tails of N facts.

  Args:
    predictor: predicts with the model.
    parsed: the facts.
    side: `head` or `tail`.

  Returns:
    float32 [N]. A fact is not counted as a known answer to its own question.

  Raises:
    errors.NonFiniteError: a score is NaN or infinite.
  """
  known = predictor.known([fact.question(side) for fact in parsed], 'train')
  answers = np.array([fact.answer(side) for fact in parsed], np.int32)
  number = known.sizes - known.contains(answers)
  logs = np.log(np.maximum(number, 1)).astype(np.float32)
  return predictor.score(parsed, side) + logs


def _count(
  predictor: predictor.Predictor, split: str
) -> tuple[np.ndarray, np.ndarray]:
  """Counts candidates by their score.

  Returns:
    The number of correct candidates in each bin: int64 [bins].
    The number of candidates in each bin: int64 [bins].
  """
  data = predictor.data
  facts = facts_lib.known(data)
  in_train = facts.split == graph.SPLITS.index('train')
  wanted = facts.are_in(facts_lib.known(data, (split,))) & ~in_train
  correct = np.zeros(_BINS, np.int64)
  candidates = np.zeros(_BINS, np.int64)
  for side in validation.SIDES:
    asked = facts_lib.questions(facts, side).with_any(wanted)
    for rows, scores in facts_lib.score(
      predictor.scorer, asked.relation, asked.entity, side, data.vocabulary
    ):
      low, high = asked.indptr[rows.start], asked.indptr[rows.stop]
      counts = np.diff(asked.indptr[rows.start : rows.stop + 1])
      row = np.repeat(np.arange(len(scores)), counts)
      fact = asked.fact[low:high]
      known = np.bincount(row, in_train[fact], minlength=len(scores))
      scores += np.log(np.maximum(known, 1))[:, None].astype(np.float32)
      bins = ((scores - _LOWEST) / _WIDTH).astype(np.int32)
      np.clip(bins, 0, _BINS - 1, out=bins)
      answer = bins[row, asked.answers[low:high]]
      candidates += np.bincount(bins.reshape(-1), minlength=_BINS)
      candidates -= np.bincount(answer[~wanted[fact]], minlength=_BINS)
      correct += np.bincount(answer[wanted[fact]], minlength=_BINS)
  return correct, candidates
