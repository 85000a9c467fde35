"""Compares calibrations with loops over all candidates."""

import json

import numpy as np
import pytest
import sklearn.isotonic
import small

import coke_jax
from coke_jax import parallel
from coke_jax.predict import calibration_files
from coke_jax.predict.jobs import calibrate


@pytest.fixture(scope='module')
def model():
  return small.table_model()


def candidates_by_hand(model, split):
  """Returns the scores of all candidates, and whether they are correct."""
  train = small.facts(model.data, 'train')
  own = small.facts(model.data, split)
  everything = small.facts(model.data, *small.SPLITS)
  scores, correct = [], []
  for question in small.every_question():
    right = small.reached(own, question) - small.reached(train, question)
    if not right:
      continue
    _, logs = small.scores_by_hand(model, question)
    number = len(small.reached(train, question))
    hidden = small.reached(everything, question) - right
    for label, score in zip(small.ENTITIES, logs, strict=True):
      if label not in hidden:
        scores.append(score + np.log(number or 1))
        correct.append(label in right)
  return np.array(scores), np.array(correct)


def binned(scores):
  """Returns the lower end of the bin of each score."""
  return np.floor(scores * 64 + 1e-6) / 64


@pytest.mark.parametrize('split', ['valid', 'test'])
def test_isotonic_regression(model, split):
  scores, correct = candidates_by_hand(model, split)
  found = model.calibrate(split)
  assert found.split == split
  assert sum(found.candidates) == len(scores)
  assert sum(found.correct) == correct.sum()
  reference = sklearn.isotonic.IsotonicRegression()
  expected = reference.fit_transform(binned(scores), correct.astype(float))
  # Rounding cannot move the middle of a bin to another bin.
  got = found.probability(binned(scores) + 0.5 / 64)
  np.testing.assert_allclose(got, expected, atol=1e-6)
  shares = np.array(found.correct) / np.array(found.candidates)
  assert (np.diff(shares) > 0).all()


def test_thresholds():
  found = calibrate.Calibration(
    'valid', (-9.0, -4.0, -1.0, 0.5), (0, 10, 30, 10), (900, 90, 60, 10)
  )
  assert found.threshold(1) == 0.5
  assert found.threshold(0.57) == -1.0
  assert found.threshold(0.58) == 0.5
  assert found.threshold(0.3) == -4.0
  assert found.threshold(0) == -9.0
  assert (
    calibrate.Calibration('test', (0.0,), (1,), (2,)).threshold(0.6) is None
  )
  got = found.probability(np.array([[-20, -9, -4.1], [-4, 0, 9]]))
  expected = [[0, 0, 0], [10 / 90, 0.5, 1]]
  np.testing.assert_allclose(got, expected)


def test_reliability(model):
  fitted = model.calibrate('valid')
  scores, correct = candidates_by_hand(model, 'test')
  predicted = fitted.probability(binned(scores))
  found = model.reliability('test', bins=4)
  assert sum(one.count for one in found) == len(scores)
  for one in found:
    inside = (predicted >= one.low) & (predicted < one.high)
    if one.high == 1:
      inside |= predicted == 1
    assert one.count == inside.sum()
    assert one.observed == pytest.approx(correct[inside].mean())
    assert one.predicted == pytest.approx(predicted[inside].mean())


def test_a_calibration_fits_its_own_split(model):
  model.calibrate('valid')
  for one in model.reliability('valid'):
    assert one.predicted == pytest.approx(one.observed)


@pytest.mark.parametrize('side', ['head', 'tail'])
def test_probabilities_of_facts(model, side):
  fitted = model.calibrate()
  facts = sorted(small.facts(model.data, 'train', 'valid'))
  train = small.facts(model.data, 'train')
  got = model.probability(facts, side)
  for fact, probability in zip(facts, got, strict=True):
    question = ('?', *fact[1:]) if side == 'head' else (*fact[:2], '?')
    answer = fact[0] if side == 'head' else fact[2]
    number = len(small.reached(train, question) - {answer})
    _, logs = small.scores_by_hand(model, question)
    score = logs[small.ENTITIES.index(answer)] + np.log(number or 1)
    around = fitted.probability(score + np.array([-1e-5, 0, 1e-5]))
    assert around[0] <= probability <= around[2]


def test_files(model, tmp_path):
  fitted = model.calibrate()
  params = model.predictor.scorer.params
  assert calibration_files.read(tmp_path, params) is None
  path = calibration_files.write(tmp_path, fitted, params)
  assert calibration_files.read(tmp_path, params) == fitted
  other = parallel.replicate([table + 1 for table in model.encoder.tables])
  assert calibration_files.read(tmp_path, other) is None
  content = json.loads(path.read_text())
  damages = [
    [],
    {**content, 'format': 2},
    {**content, 'lower': content['lower'][1:]},
    {**content, 'lower': [], 'correct': [], 'candidates': []},
    {**content, 'correct': ['many'] * len(content['correct'])},
    {name: content[name] for name in content if name != 'candidates'},
  ]
  for damaged in damages:
    path.write_text(json.dumps(damaged))
    with pytest.raises(calibration_files.CalibrationError, match='calibration'):
      calibration_files.read(tmp_path, params)
  path.write_text('{')
  with pytest.raises(coke_jax.CokeError, match='cannot be read'):
    calibration_files.read(tmp_path, params)


def test_mistakes():
  model = small.table_model()
  for call in (
    lambda: model.probability(('e03', 'near', 'e04')),
    model.reliability,
    lambda: model.calibrate('train'),
  ):
    with pytest.raises(coke_jax.QuestionError, match='expected'):
      call()
  empty = small.table_model(small.random_graph(sizes=(50, 0, 9)))
  with pytest.raises(coke_jax.QuestionError, match='all facts are in train'):
    empty.calibrate()
