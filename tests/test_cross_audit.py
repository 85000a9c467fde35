"""Tests `cross_audit`, and the division of facts into folds."""

import shutil

import numpy as np
import pytest
import small

import coke_jax
from coke_jax import cross_audit, errors
from coke_jax.data import folds, splitting, text_files
from coke_jax.predict import load
from coke_jax.predict.jobs import audit, facts
from coke_jax.storage import workdir
from coke_jax.training import run


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  """Returns the work folder of a trained model."""
  folder = tmp_path_factory.mktemp('trained') / 'run'
  config = small.config(model={'num_layers': 0}, train={'num_epochs': 1.0})
  run.train_and_evaluate(config, folder, data=small.random_graph())
  return folder


def test_a_fact_is_scored_with_the_model_of_its_fold(trained, tmp_path):
  data = small.random_graph()
  shutil.copytree(trained, tmp_path / 'run')
  found = cross_audit.audit(tmp_path / 'run', 3, top=1000, expected=2)
  known = facts.known(data)
  number = {
    triple: row for row, triple in enumerate(map(tuple, known.triples.tolist()))
  }
  words = data.vocabulary
  own = load.load(tmp_path / 'run')
  assert len(found) == len(known.triples) == len({one.fact for one in found})
  assert [one.score for one in found] == sorted(one.score for one in found)
  fold = folds.assign(known.triples, known.split == 0, 3, 0)
  everything = np.ones(len(fold), dtype=bool)
  scores, parts = {folds.ALWAYS: own}, tmp_path / 'run/audit_3_folds_seed_0'
  for part in range(3):
    scores[part] = load.load(parts / str(part))
    trained = {*map(tuple, scores[part].data.train.tolist())}
    in_fold = {*map(tuple, known.triples[fold == part].tolist())}
    assert not trained & in_fold
    assert trained | in_fold >= {*map(tuple, data.train.tolist())}
    # The model was trained on every entity and relation that occurs in the
    # training facts of the fold.
    for column in (0, 1, 2):
      missing = {
        t[column] for t in in_fold & {*map(tuple, data.train.tolist())}
      }
      seen = {t[0] for t in trained} | {t[2] for t in trained}
      assert missing <= ({t[1] for t in trained} if column == 1 else seen)
  expected = {
    part: audit.plausibility(model.predictor, known, everything).mean(axis=1)
    for part, model in scores.items()
  }
  for one in found:
    head, relation, tail = one.fact
    row = number[
      words.entities.index(head),
      words.relations.index(relation),
      words.entities.index(tail),
    ]
    assert one.score == pytest.approx(expected[fold[row]][row], rel=1e-4)
    # All known tails are left out, also those of facts in other folds.
    for label in one.expected_tails:
      assert not small.known_in(data, (head, relation, '?'), label)
  # A second audit does not train the models again.
  before = sorted(path.stat().st_mtime_ns for path in parts.rglob('metrics*'))
  assert cross_audit.audit(tmp_path / 'run', 3, top=5, expected=0)[0].fact == (
    found[0].fact
  )
  after = sorted(path.stat().st_mtime_ns for path in parts.rglob('metrics*'))
  assert before == after
  assert workdir.Workdir(parts / '0').exists


@pytest.mark.parametrize(
  ('options', 'message'),
  [
    ({'top': 0}, 'top is 0'),
    ({'relations': 'unknown'}, 'unknown'),
    ({'folds': 1}, 'folds is 1: expected a whole number of at least 2'),
  ],
)
def test_mistakes_are_found_before_any_training(trained, options, message):
  with pytest.raises(errors.CokeError, match=message):
    cross_audit.audit(trained, **options)
  assert not list(trained.glob('audit*'))


def test_a_run_for_paths_is_refused():
  with pytest.raises(cross_audit.CrossAuditError, match='link prediction'):
    cross_audit.audit(coke_jax.EXAMPLE_MODEL)


@pytest.mark.parametrize('number', [2, 3, 5])
def test_folds_keep_equal_and_reversed_facts_together(number):
  data = small.random_graph(seed=number)
  triples = np.concatenate([data.train, data.valid, data.train[:, ::-1]])
  triples[len(data.train) + len(data.valid) :, 1] = data.train[:, 1]
  in_train = np.arange(len(triples)) < len(data.train)
  fold = folds.assign(triples, in_train, number, 1)
  group, _ = splitting.groups(triples, 'symmetric')
  together = {}
  for one, part, learned in zip(group, fold, in_train, strict=True):
    if learned and part != folds.ALWAYS:
      assert together.setdefault(one, part) == part
  assert set(fold.tolist()) <= {folds.ALWAYS, *range(number)}


def test_more_folds_than_training_facts_are_an_error():
  triples = np.array([[0, 0, 1], [1, 0, 2], [2, 0, 0]])
  in_train = np.array([True, True, False])
  folds.assign(triples, in_train, 2, 0)
  with pytest.raises(
    text_files.DataError, match='folds is 3: expected at most'
  ):
    folds.assign(triples, in_train, 3, 0)


def test_fewer_than_two_folds_are_an_error():
  triples = small.random_graph().train
  for wrong in (1, '3', 2.5, None):
    with pytest.raises(text_files.DataError, match='number of at least 2'):
      folds.assign(triples, np.ones(len(triples), bool), wrong, 0)
  for wrong in (-1, '0'):
    with pytest.raises(text_files.DataError, match=r'seed is .* at least 0'):
      folds.assign(triples, np.ones(len(triples), bool), 2, wrong)
