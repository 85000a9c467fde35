"""Tests of records and their conversion to tables."""

import dataclasses
import pickle
import sys

import numpy as np
import pandas
import pytest

from coke_jax.predict import records

LABELS = ('a', 'b', 'c')


def two_questions():
  """Returns the answers to two questions. The second has a single answer."""
  entities = np.array([[2, 0], [1, 0]], np.int32)
  scores = np.array([[-0.5, -2.0], [-0.25, -np.inf]], np.float32)
  known_in = np.array([['train', ''], ['test', '']])
  return records.Records(
    records.predictions(LABELS, entities, scores, known_in)
  )


def test_answers_end_after_the_last_candidate():
  first, second = two_questions()
  assert first == [
    records.Prediction('c', 1, -0.5, pytest.approx(np.exp(-0.5)), 'train'),
    records.Prediction('a', 2, -2.0, pytest.approx(np.exp(-2.0)), ''),
  ]
  assert [answer.label for answer in second] == ['b']


def test_fields_are_plain_python():
  for answer in two_questions()[0]:
    types = [type(value) for value in dataclasses.astuple(answer)]
    assert types == [str, int, float, float, str]


def test_a_record_cannot_be_changed():
  with pytest.raises(dataclasses.FrozenInstanceError):
    two_questions()[0][0].rank = 3


def test_a_table_of_one_question():
  table = two_questions()[0].to_pandas()
  assert isinstance(table, pandas.DataFrame)
  assert table.columns.tolist() == [
    'label',
    'rank',
    'score',
    'probability',
    'known_in',
  ]
  assert table['label'].tolist() == ['c', 'a']
  assert table['score'].tolist() == [-0.5, -2.0]


def test_a_table_of_several_questions_numbers_them():
  table = two_questions().to_pandas()
  assert table.columns[0] == 'question'
  assert table['question'].tolist() == [0, 0, 1]
  assert table['label'].tolist() == ['c', 'a', 'b']


def test_a_table_of_rankings():
  ranking = records.Ranking(
    ('a', 'r', 'b'), 'tail', 1.5, 1, 2, 3, -1.0, 0.4, 'valid'
  )
  table = records.Records([ranking, ranking]).to_pandas()
  assert table['fact'].tolist() == [('a', 'r', 'b')] * 2
  assert table['rank'].tolist() == [1.5, 1.5]
  assert len(table.columns) == len(dataclasses.fields(ranking))


def test_empty_tables():
  assert len(records.Records().to_pandas()) == 0
  assert len(records.Records([records.Records()]).to_pandas()) == 0
  names = two_questions()[0].to_pandas().columns.tolist()
  empty = two_questions()[0][2:]
  assert empty.to_pandas().columns.tolist() == names
  for inner in ([], [empty, empty]):
    nested = records.Records(inner, records.Prediction, nested=True)
    for table in (nested.to_pandas(), nested[:1].to_pandas()):
      assert table.columns.tolist() == ['question', *names]
      assert len(table) == 0
  again = pickle.loads(pickle.dumps(nested))
  assert again.to_pandas().columns.tolist() == ['question', *names]


def test_without_pandas(monkeypatch):
  monkeypatch.setitem(sys.modules, 'pandas', None)
  with pytest.raises(ImportError, match='pip install pandas'):
    two_questions().to_pandas()


def test_a_slice_still_makes_a_table():
  one = records.Prediction('a', 1, -0.5, 0.6, '')
  part = records.Records([one, one, one])[1:]
  assert isinstance(part, records.Records)
  assert len(part.to_pandas()) == 2
  assert part[0] is one
