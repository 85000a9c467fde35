"""Asking a trained model by label, against its own logits and plain sets."""

import dataclasses

import jax
import numpy as np
import pytest

import coke_jax
from coke_jax import config as config_lib
from coke_jax import predict, tasks, trainer, workdir
from coke_jax.data import graph, known, vocabulary, walks

ENTITIES = tuple(f'e{i:02}' for i in range(15))
RELATIONS = ('likes', 'near')


def random_graph():
  generator = np.random.default_rng(3)

  def draw(count):
    ends = [len(ENTITIES), len(RELATIONS), len(ENTITIES)]
    return generator.integers(0, ends, (count, 3)).astype(np.int32)

  labels = vocabulary.Vocabulary(ENTITIES, RELATIONS)
  return graph.KnowledgeGraph('random', labels, draw(40), draw(8), draw(8))


def small_config(kind, length):
  config = config_lib.default_config()
  config.data.name = 'random'
  config.data.kind = kind
  config.data.max_path_length = length
  config.model.num_layers = 1
  config.model.hidden_size = 8
  config.model.num_heads = 2
  config.model.feed_forward_size = 8
  config.train.batch_size = 16
  config.train.num_epochs = 0.5
  config.train.learning_rate = 1e-2
  return config


def train(folder, config, data):
  place = workdir.Workdir(folder)
  place.create(config, data)
  trainer.Trainer(config, tasks.make_task(config, data), place).run()
  return folder


@pytest.fixture(scope='module')
def triple_model(tmp_path_factory):
  folder = tmp_path_factory.mktemp('triples')
  config = small_config('triples', 1)
  return coke_jax.load(train(folder, config, random_graph()))


@pytest.fixture(scope='module')
def path_model(tmp_path_factory):
  folder = tmp_path_factory.mktemp('paths')
  data = walks.sample_path_data(
    random_graph(), seed=0, longest=3, walks_per_train_triple=2
  )
  return coke_jax.load(train(folder, small_config('walks', 2), data))


def log_probabilities(model, tokens, position):
  logits = model._model.apply(
    {'params': jax.device_get(model._params)},
    np.array([tokens], np.int32),
    np.array([position], np.int32),
  )
  return np.asarray(jax.nn.log_softmax(logits))[0]


def facts(data, split):
  return {
    (ENTITIES[h], RELATIONS[r], ENTITIES[t]) for h, r, t in data.split(split)
  }


@pytest.mark.parametrize('asks_head', [False, True])
def test_all_answers_to_a_triple_question(triple_model, asks_head):
  words = triple_model.data.vocabulary
  relation = words.num_entities + 1
  if asks_head:
    question = ('?', 'near', 'e03')
    scores = log_probabilities(triple_model, [words.mask_id, relation, 3], 0)
  else:
    question = ('e03', 'near', '?')
    scores = log_probabilities(triple_model, [3, relation, words.mask_id], 2)
  answers = triple_model.predict(question, top=100)
  order = np.argsort(-scores, kind='stable')
  assert [a.label for a in answers] == [ENTITIES[i] for i in order]
  assert [a.rank for a in answers] == list(range(1, 16))
  np.testing.assert_allclose(
    [a.score for a in answers], scores[order], rtol=1e-5
  )
  assert sum(a.probability for a in answers) == pytest.approx(1)
  for answer in answers:
    triple = tuple(answer.label if part == '?' else part for part in question)
    holding = [
      split for split in graph.SPLITS if triple in facts(random_graph(), split)
    ]
    assert answer.known_in == (holding[0] if holding else '')


def test_answers_can_be_restricted(triple_model):
  question = ('e01', 'likes', '?')
  every = triple_model.predict(question, top=100)
  new = triple_model.predict(question, top=100, new_only=True)
  assert [a.label for a in new] == [a.label for a in every if not a.known_in]
  assert [a.rank for a in new] == list(range(1, len(new) + 1))
  chosen = triple_model.predict(question, candidates=['e05', 'e09', 'e05'])
  assert {a.label for a in chosen} == {'e05', 'e09'}
  scores = {a.label: a.score for a in every}
  assert all(scores[a.label] == a.score for a in chosen)
  tails = {
    t
    for split in graph.SPLITS
    for _, r, t in facts(random_graph(), split)
    if r == 'likes'
  }
  matching = triple_model.predict(question, top=100, type_matching=True)
  assert {a.label for a in matching} == tails


def test_several_questions_keep_their_order(triple_model):
  questions = [(label, 'likes', '?') for label in ENTITIES]
  questions += [('?', 'near', label) for label in ENTITIES]
  together = triple_model.predict(questions, top=3)
  assert len(together) == 30
  for question, answers in zip(questions, together, strict=True):
    alone = triple_model.predict(question, top=3)
    assert [a.label for a in alone] == [a.label for a in answers]
  assert triple_model.predict([]) == []


def test_more_questions_than_a_batch(triple_model):
  questions = [(label, 'likes', '?') for label in ENTITIES]
  small = predict.Model(
    triple_model._model, triple_model._params, triple_model.data, 1
  )
  small._batch_size = 8
  for one, other in zip(
    small.predict(questions, top=2),
    triple_model.predict(questions, top=2),
    strict=True,
  ):
    assert [a.label for a in one] == [a.label for a in other]


def test_path_questions_and_what_is_known(path_model):
  words = path_model.data.vocabulary
  assert path_model.max_path_length == 2
  relations = ('likes', '**near')
  steps = [words.num_entities + words.relation_ids[r] for r in relations]
  tokens = [3, *steps, words.mask_id, words.pad_id]
  scores = log_probabilities(path_model, tokens, 3)
  answers = path_model.predict(('e03', *relations, '?'), top=100)
  assert [a.label for a in answers[:5]] == [
    ENTITIES[i] for i in np.argsort(-scores, kind='stable')[:5]
  ]
  triples = random_graph()

  def reached(*splits):
    edges = set().union(*(facts(triples, split) for split in splits))
    middle = {t for h, r, t in edges if (h, r) == ('e03', 'likes')}
    return {h for h, r, t in edges if r == 'near' and t in middle}

  for answer in answers:
    expected = ''
    if answer.label in reached('train'):
      expected = 'train'
    elif answer.label in reached('train', 'valid'):
      expected = 'valid'
    elif answer.label in reached('train', 'test'):
      expected = 'test'
    assert answer.known_in == expected
  backwards = path_model.predict(('?', 'near', '**likes', 'e03'), top=100)
  assert {a.label: a.known_in for a in backwards} == {
    a.label: a.known_in for a in answers
  }


@pytest.mark.parametrize(
  ('question', 'expected'),
  [
    (('e03', 'likse', '?'), "unknown relation 'likse': did you mean 'likes'"),
    (('E03', 'likes', '?'), "unknown entity 'E03': did you mean 'e03'"),
    (('e03', 'likes', 'e04'), r"expected '\?' at one end"),
    (('?', 'likes', '?'), r"expected '\?' at one end"),
    (('e03', '?', 'e04'), r"expected '\?' at one end"),
    (('e03', '?', '?'), 'never trained to predict a relation'),
    (('e03', '?'), 'expected an entity'),
    (('e03', 'likes', 'near', '?'), '2 relations.*at most 1'),
  ],
)
def test_questions_that_cannot_be_asked(triple_model, question, expected):
  with pytest.raises(predict.QuestionError, match=expected):
    triple_model.predict(question)


def test_longer_paths_than_trained_on_are_refused(path_model):
  question = ('e03', 'likes', 'near', 'likes', '?')
  with pytest.raises(predict.QuestionError, match=r'3 relations.*at most 2'):
    path_model.predict(question)


def test_parameters_that_are_not_numbers(triple_model):
  broken = jax.tree.map(lambda leaf: leaf * np.nan, triple_model._params)
  model = predict.Model(triple_model._model, broken, triple_model.data, 1)
  with pytest.raises(FloatingPointError, match='not finite'):
    model.predict(('e03', 'likes', '?'))


def test_equal_scores_come_by_id():
  scores = np.array([1.0, 2.0, 2.0, 0.5, 2.0, 1.0], np.float32)
  every = np.ones(6, bool)
  assert predict._best(scores, every, 2) == [(1, 1), (2, 2)]
  assert predict._best(scores, every, 4) == [(1, 1), (2, 2), (3, 4), (4, 0)]
  assert predict._best(scores, every & False, 4) == []


def test_type_matching_ends_of_both_sides():
  data = random_graph()
  facts_of = known.KnownAnswers(data)
  heads = known.Question(0, (1,), asks_head=True)
  rows = data.triples(*graph.SPLITS)
  assert facts_of.ends(heads).tolist() == sorted(
    {int(h) for h, r, _ in rows if r == 1}
  )
  tails = dataclasses.replace(heads, asks_head=False)
  assert facts_of.ends(tails).tolist() == sorted(
    {int(t) for _, r, t in rows if r == 1}
  )


def test_loading_says_what_is_missing(tmp_path):
  with pytest.raises(workdir.WorkdirError, match=r'no config\.json'):
    coke_jax.load(tmp_path / 'nowhere')
  config = small_config('triples', 1)
  (tmp_path / 'new').mkdir()
  workdir.Workdir(tmp_path / 'new').create(config, random_graph())
  with pytest.raises(Exception, match='no checkpoint yet'):
    coke_jax.load(tmp_path / 'new')


def test_predictions_compile_once(triple_model):
  calls = []
  original = triple_model._model.apply
  question = ('e03', 'likes', '?')
  triple_model.predict(question)
  object.__setattr__(
    triple_model._model,
    'apply',
    lambda *args, **kwargs: calls.append(1) or original(*args, **kwargs),
  )
  try:
    triple_model.predict(question)
    triple_model.predict([('?', 'near', 'e03')] * 3)
  finally:
    object.__delattr__(triple_model._model, 'apply')
  assert not calls  # nothing was traced again
