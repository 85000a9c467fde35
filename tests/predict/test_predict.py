"""Tests the methods of `Model`, often against plain Python loops."""

import contextlib
import itertools
from collections.abc import Iterator

import jax
import numpy as np
import pandas
import pytest
import small

import coke_jax
from coke_jax import parallel
from coke_jax.data import graph, inverses, paths
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.predict import model as model_lib
from coke_jax.storage import workdir

V = len(small.ENTITIES)


@pytest.fixture(scope='module')
def model():
  """Returns a model of triples with integer scores and many ties."""
  return small.table_model()


@pytest.fixture(scope='module')
def path_model():
  """Returns a model for paths of up to 2 relations. The data have up to 3."""
  return small.table_model(
    small.random_paths(), max_length=5, max_path_length=2
  )


def labelled(data, split):
  words = data.vocabulary
  return [
    (words.entities[h], words.relations[r], words.entities[t])
    for h, r, t in data.split(split).tolist()
  ]


def labelled_paths(data, split, longest):
  words, found = data.vocabulary, data.split(split)
  rows = [
    (
      words.entities[found.source[row]],
      *(words.relations[r] for r in found.relations[row, : found.length[row]]),
      words.entities[found.target[row]],
    )
    for row in range(len(found))
  ]
  return [row for row in rows if len(row) <= longest + 2]


def answers_by_hand(model, question, **options):
  """Returns the labels of answers, best first. Ties are ordered by id."""
  data, words = model.data, model.data.vocabulary
  scores, _ = small.scores_by_hand(model, question)
  allowed = set(words.entities)
  if options.get('candidates') is not None:
    allowed &= set(options['candidates'])
  if options.get('type_matching'):
    allowed &= small.ends(data, question, *small.SPLITS)
  if options.get('new_only'):
    allowed = {a for a in allowed if not small.known_in(data, question, a)}
  if options.get('exclude_own'):
    allowed -= {question[0], question[-1]}
  order = sorted(range(V), key=lambda entity: (-scores[entity], entity))
  return [words.entities[e] for e in order if words.entities[e] in allowed]


# --------------------------------------------------------------------- predict

PATH_QUESTIONS = [
  ('e03', 'likes', '**near', '?'),
  ('?', 'near', '**likes', 'e03'),
  ('e05', '**likes', '?'),
  ('?', 'near', 'near', 'e11'),
  ('e00', 'near', '**near', '?'),
]


@pytest.mark.parametrize('kind', ['triples', 'paths'])
def test_all_answers_equal_brute_force(model, path_model, kind):
  listed = small.every_question()
  if kind == 'paths':
    model, listed = path_model, PATH_QUESTIONS
  known = 0
  for question, answers in zip(
    listed, model.predict(listed, top=V), strict=True
  ):
    assert [a.label for a in answers] == answers_by_hand(model, question)
    assert [a.rank for a in answers] == list(range(1, V + 1))
    _, logs = small.scores_by_hand(model, question)
    ids = [model.data.vocabulary.entity_id(a.label) for a in answers]
    np.testing.assert_allclose([a.score for a in answers], logs[ids], rtol=1e-5)
    np.testing.assert_allclose(
      [a.probability for a in answers], np.exp(logs[ids]), rtol=1e-4
    )
    for answer in answers:
      expected = small.known_in(model.data, question, answer.label)
      assert answer.known_in == expected
      known += expected != ''
  assert known


def test_answers_are_known_from_every_split(model):
  found = {
    answer.known_in
    for answers in model.predict(small.every_question(), top=V)
    for answer in answers
  }
  assert found == {'', 'train', 'valid', 'test'}


@pytest.mark.parametrize(
  'flags', list(itertools.product([False, True], repeat=3)), ids=str
)
@pytest.mark.parametrize('kind', ['triples', 'paths'])
def test_restrictions_and_all_their_combinations(
  model, path_model, kind, flags
):
  listed = small.every_question()[:24]
  if kind == 'paths':
    model, listed = path_model, PATH_QUESTIONS
  names = ('new_only', 'exclude_own', 'type_matching')
  options = dict(zip(names, flags, strict=True))
  some = [small.ENTITIES[i] for i in (3, 3, 0, 11, 7, 16, 19, 5)]
  for candidates in (None, some, []):
    found = model.predict(listed, top=V, candidates=candidates, **options)
    for question, answers in zip(listed, found, strict=True):
      expected = answers_by_hand(
        model, question, candidates=candidates, **options
      )
      assert [a.label for a in answers] == expected
      assert [a.rank for a in answers] == list(range(1, len(expected) + 1))


def test_scores_do_not_depend_on_the_candidates(model):
  question = ('e01', 'likes', '?')
  every = {a.label: a.score for a in model.predict(question, top=V)}
  for answer in model.predict(question, top=V, new_only=True):
    assert answer.score == every[answer.label]


def test_top_beyond_all_entities(model):
  question = ('e01', 'likes', '?')
  assert len(model.predict(question, top=10**9)) == V
  assert len(model.predict(question)) == 10
  assert len(model.predict(question, top=np.int64(17))) == 17


def test_a_long_list_of_candidates(model):
  many = list(small.ENTITIES) * 5000
  question = ('e01', 'likes', '?')
  assert model.predict(question, candidates=many) == model.predict(question)


def test_one_question_or_several(model):
  one = ('e03', 'near', '?')
  alone = model.predict(one, top=3)
  assert isinstance(alone[0], coke_jax.Prediction)
  assert model.predict([one], top=3) == [alone]
  assert model.predict((one, one), top=3) == [alone, alone]
  assert model.predict(list(one), top=3) == alone
  assert model.predict([list(one)], top=3) == [alone]
  assert model.predict([]) == model.predict(()) == []


def test_labels_in_numpy_arrays(model):
  one = ('e03', 'near', '?')
  alone = model.predict(one, top=3)
  assert model.predict(np.array(one), top=3) == alone
  assert model.predict(np.array([one, one]), top=3) == [alone, alone]
  assert model.predict(np.array([one], dtype=object), top=3) == [alone]
  assert model.predict([np.array(one)], top=3) == [alone]
  assert model.predict(np.zeros((0, 3), dtype=np.str_)) == []
  some = np.array(['e03', 'e04'])
  assert {a.label for a in model.predict(one, candidates=some)} == set(some)
  ranked = model.rank(np.array([['e03', 'near', 'e04']]))
  assert ranked == model.rank(('e03', 'near', 'e04'))
  assert type(ranked[0].fact[0]) is str


@pytest.mark.parametrize('batch_size', [8, 13, 40])
def test_results_do_not_depend_on_the_batch_size(model, batch_size):
  listed = small.every_question()[:40]
  facts = [('e01', 'likes', label) for label in small.ENTITIES]
  params = parallel.replicate(model.encoder.tables)
  pieces = model_lib.Model(
    model.encoder, params, model.data, 1, batch_size=batch_size
  )
  assert pieces.batch_size == batch_size
  assert pieces.predict(listed, top=2) == model.predict(listed, top=2)
  assert pieces.rank(facts) == model.rank(facts)
  np.testing.assert_array_equal(pieces.score(facts), model.score(facts))
  np.testing.assert_array_equal(
    pieces.embed(facts).vectors, model.embed(facts).vectors
  )


# -------------------------------------------------------------- rank and score


def rank_by_hand(scores, gold, allowed):
  better = sum(scores[e] > scores[gold] for e in allowed if e != gold)
  equal = sum(scores[e] == scores[gold] for e in allowed if e != gold)
  return better, equal, len(allowed - {gold}) + 1


@pytest.mark.parametrize('splits', [small.SPLITS, ('train', 'valid'), ()])
def test_ranks_equal_link_prediction_and_brute_force(model, splits):
  data, words = model.data, model.data.vocabulary
  facts = labelled(data, 'test')
  assert len(set(facts)) < len(facts)
  filtered = tuple(dict.fromkeys(['train', *splits]))
  ranker = ranker_lib.Ranker(model.encoder, 8 * parallel.num_devices())
  expected = link_prediction.LinkPrediction(data).rank(
    ranker, parallel.replicate(model.encoder.tables), 'test', filtered
  )
  ranked = model.rank(facts, splits=splits)
  assert [r.side for r in ranked] == ['tail', 'head'] * len(facts)
  known = small.facts(data, *filtered)
  ties = 0
  for number, one in enumerate(ranked):
    fact, is_head = facts[number // 2], number % 2
    place = number // 2 + is_head * len(facts)
    assert one.fact == fact
    assert one.rank == expected.realistic[place]
    assert one.optimistic == expected.optimistic[place]
    assert one.pessimistic == expected.pessimistic[place]
    assert one.candidates == expected.candidates[place]
    question = small.both_sides(fact)[is_head]
    scores, logs = small.scores_by_hand(model, question)
    gold = words.entity_id(fact[0 if is_head else -1])
    allowed = {
      words.entity_id(label)
      for label in set(words.entities) - small.reached(known, question)
    }
    better, equal, candidates = rank_by_hand(scores, gold, allowed)
    assert one.optimistic == better + 1
    assert one.pessimistic == better + equal + 1
    assert one.candidates == candidates
    assert one.score == pytest.approx(logs[gold], rel=1e-5)
    assert one.probability == pytest.approx(np.exp(logs[gold]), rel=1e-4)
    assert one.known_in == small.known_in(
      data, question, fact[0 if is_head else -1]
    )
    ties += equal
  assert ties


@pytest.mark.parametrize('split', ['valid', 'test'])
def test_ranks_of_paths_equal_path_queries(path_model, split):
  data = path_model.data
  task = path_queries.PathQueries(data, 2)
  ranker = ranker_lib.Ranker(path_model.encoder, 8 * parallel.num_devices())
  params = parallel.replicate(path_model.encoder.tables)
  expected = task.rank(ranker, params, split)
  expected = expected.take(data.split(split).length <= 2)
  ranked = path_model.rank(
    labelled_paths(data, split, 2),
    side='tail',
    splits=('train', split),
    type_matching=True,
  )
  assert len(ranked) > 10
  assert [r.rank for r in ranked] == expected.realistic.tolist()
  assert [r.candidates for r in ranked] == expected.candidates.tolist()
  assert [r.optimistic for r in ranked] == expected.optimistic.tolist()


def test_heads_have_the_candidates_of_tails_of_the_inverse_path(path_model):
  data = path_model.data
  marker = '**'
  for fact in labelled_paths(data, 'test', 2)[:10]:
    back = [inverses.invert(r, marker) for r in reversed(fact[1:-1])]
    (head,) = path_model.rank(fact, side='head', type_matching=True)
    (tail,) = path_model.rank(
      (fact[-1], *back, fact[0]), side='tail', type_matching=True
    )
    assert head.candidates == tail.candidates
    assert head.known_in == tail.known_in


@pytest.mark.parametrize('kind', ['table', 'coke'])
def test_predict_rank_and_score_agree(model, kind):
  if kind == 'coke':
    model = small.coke_model()
  facts = labelled(model.data, 'test')[:8]
  both = np.zeros((len(facts), 2))
  for column, side in enumerate(('tail', 'head')):
    scores = model.score(facts, side=side)
    assert scores.dtype == np.float32
    assert scores.shape == (len(facts),)
    listed = [small.both_sides(fact)[column] for fact in facts]
    predicted = model.predict(listed, top=V)
    for row, one in enumerate(model.rank(facts, side=side)):
      label = facts[row][-1 if side == 'tail' else 0]
      found = {a.label: a for a in predicted[row]}[label]
      assert found.score == pytest.approx(one.score, rel=1e-5, abs=1e-5)
      assert scores[row] == pytest.approx(one.score, rel=1e-5, abs=1e-5)
      assert found.known_in == one.known_in != ''
      new = [
        a.label for a in predicted[row] if not a.known_in or a.label == label
      ]
      assert one.optimistic <= new.index(label) + 1 <= one.pessimistic
    both[:, column] = scores
  np.testing.assert_allclose(
    model.score(facts, side='both'), both.mean(axis=1), rtol=1e-5, atol=1e-6
  )
  assert model.score([]).shape == (0,)
  assert model.rank([]) == []


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
  ('question', 'expected'),
  [
    (('e03', 'likse', '?'), "unknown relation 'likse': did you mean 'likes'"),
    (('E03', 'likes', '?'), "unknown entity 'E03': did you mean 'e03'"),
    (('e03', 'likes', 'e04'), r"expected '\?' at one end"),
    (('?', 'likes', '?'), r"expected '\?' at one end"),
    (('e03', '?', '?'), 'in the place of a relation'),
    (('e03', '?', 'E04'), "unknown entity 'E04': did you mean 'e04'"),
    ([('e03', '?', 'e04'), ('e03', 'near', '?')], 'questions of one kind'),
    (('e03', '?'), 'expected an entity'),
    (('?',), 'expected an entity'),
    (('e03', 'likes', 'near', '?'), '2 relations.*at most 1'),
    (('e03', 3, '?'), 'expected a sequence of labels'),
    (('e03', None, '?'), 'expected a sequence of labels'),
    ('e03 likes ?', 'is one string'),
    (['e03 likes ?', 'e04 likes ?'], 'expected an entity'),
    ([('e03', 'likes', '?'), 'e04'], "'e04' is one string"),
    ([('e03', 'likes', '?'), None], 'None: expected a sequence of labels'),
    ([('e03', 'likes', '?'), 3], '3: expected a sequence of labels'),
    ([()], 'expected an entity'),
    (None, 'None: expected a sequence of labels'),
    (3, '3: expected a sequence of labels'),
    (np.arange(3), 'expected a sequence of labels'),
    ((b'e03', b'likes', b'?'), 'expected a sequence of labels'),
  ],
)
def test_invalid_questions(model, question, expected):
  with pytest.raises(coke_jax.QuestionError, match=expected):
    model.predict(question)


def test_questions_in_tables_arrays_and_generators(model):
  rows = [('e03', 'likes', '?'), ('?', 'near', 'e11')]
  table = pandas.DataFrame(rows, columns=['head', 'relation', 'tail'])
  expected = model.predict(rows)
  for several in (
    table,
    table.to_numpy(),
    pandas.Series(rows),
    (row for row in rows),
    (iter(row) for row in rows),
    [row for _, row in table.iterrows()],
  ):
    assert model.predict(several) == expected
  for one in (table.loc[0], np.array(rows[0]), iter(rows[0])):
    assert model.predict(one) == expected[0]
  facts = pandas.DataFrame([('e03', 'likes', 'e04'), ('e05', 'near', 'e06')])
  listed = facts.to_numpy().tolist()
  assert model.rank(facts) == model.rank(listed)
  assert model.score(facts).tolist() == model.score(listed).tolist()
  assert (model.embed(facts).tokens == model.embed(listed).tokens).all()
  empty = table[:0]
  assert model.predict(empty) == []
  columns = ['question', 'label', 'rank', 'score', 'probability', 'known_in']
  for none in (empty, [], iter([])):
    assert model.predict(none).to_pandas().columns.tolist() == columns
  assert 'fact' in model.rank([]).to_pandas().columns
  for wrong in (np.array(5), np.array('e03'), {'e03': 'likes'}, {*rows}, 5):
    with pytest.raises(coke_jax.QuestionError, match='expected a sequence'):
      model.predict(wrong)


def test_columns_with_usual_names_are_read_by_name(model):
  rows = [('e03', 'likes', 'e04'), ('e05', 'near', 'e06')]
  ordered = pandas.DataFrame(rows, columns=['head', 'relation', 'tail'])
  mixed = ordered[['tail', 'head', 'relation']]
  renamed = mixed.set_axis(['Object', 'subject', 'predicate'], axis=1)
  given = [
    mixed,
    renamed,
    mixed.to_records(index=False),
    list(mixed.to_records(index=False)),
    [row for _, row in mixed.iterrows()],
    mixed.itertuples(index=False),
  ]
  with contextlib.suppress(ImportError):
    import polars

    given.append(polars.DataFrame(mixed.to_dict('list')))
  for table in given:
    listed = list(table) if isinstance(table, Iterator) else table
    assert model.rank(listed) == model.rank(rows)
    assert model.score(listed).tolist() == model.score(rows).tolist()
  assert model.rank(mixed.loc[0]) == model.rank(rows[0])
  questions = mixed.assign(tail='?')
  expected = model.predict(
    [(head, relation, '?') for head, relation, _ in rows]
  )
  assert model.predict(questions) == expected
  # `x` is not a usual name, so columns are read by position.
  other = ordered.set_axis(['tail', 'relation', 'x'], axis=1)
  assert model.rank(other) == model.rank(rows)
  wrong = mixed.assign(year=1999)
  for ask in (model.predict, model.rank, model.score, model.embed):
    with pytest.raises(coke_jax.QuestionError, match="has 'year' besides"):
      ask(wrong)


@pytest.mark.parametrize('top', [0, -1, 2.5, '3', None, float('nan')])
@pytest.mark.parametrize('listed', [('e03', 'likes', '?'), []])
def test_invalid_numbers_of_answers(model, top, listed):
  with pytest.raises(coke_jax.QuestionError, match=r'top is .*at least 1'):
    model.predict(listed, top=top)


@pytest.mark.parametrize(
  ('candidates', 'expected'),
  [
    ('e03', "candidates are 'e03': expected a list"),
    (['e03', 'e99'], "unknown entity 'e99'"),
    (['likes'], "unknown entity 'likes'"),
    ([3], '3: expected a label'),
    ([None], 'None: expected a label'),
    ([['e03']], 'expected a label'),
    (3, 'candidates are 3: expected a list'),
  ],
)
def test_invalid_candidates(model, candidates, expected):
  with pytest.raises(coke_jax.QuestionError, match=expected):
    model.predict(('e03', 'likes', '?'), candidates=candidates)


@pytest.mark.parametrize(
  ('options', 'expected'),
  [
    ({'side': 'left'}, "side is 'left'.*'head', 'tail' or 'both'"),
    ({'side': None}, 'side is None'),
    ({'splits': ('train', 'dev')}, "split 'dev'.*valid"),
    ({'splits': 'test'}, "splits are 'test': expected a list"),
  ],
)
def test_invalid_options_of_rank(model, options, expected):
  with pytest.raises(coke_jax.QuestionError, match=expected):
    model.rank(('e03', 'likes', 'e04'), **options)


def test_facts_contain_no_unknown(model):
  with pytest.raises(coke_jax.QuestionError, match=r"no '\?'"):
    model.rank(('e03', 'likes', '?'))
  with pytest.raises(coke_jax.QuestionError, match=r"no '\?'"):
    model.score([('e03', 'likes', 'e04'), ('?', 'likes', 'e03')])


def test_longer_paths_than_trained_on_are_an_error(path_model):
  assert path_model.max_path_length == 2
  assert path_model.width == 5  # The data have paths of 3 relations.
  question = ('e03', 'likes', 'near', 'likes', '?')
  with pytest.raises(coke_jax.QuestionError, match=r'3 relations.*at most 2'):
    path_model.predict(question)


# ---------------------------------------------------------------------- loading


def test_loading_errors_name_what_is_missing(tmp_path):
  with pytest.raises(workdir.WorkdirError, match=r'no config\.json'):
    coke_jax.load(tmp_path / 'nowhere')
  small.create_workdir(tmp_path / 'new')
  with pytest.raises(Exception, match='no checkpoint yet'):
    coke_jax.load(tmp_path / 'new')
  (tmp_path / 'model.zip').write_bytes(b'')
  with pytest.raises(workdir.WorkdirError, match=r'model\.zip: is a file'):
    coke_jax.load(tmp_path / 'model.zip')


def test_numbers_of_64_bits_are_refused():
  jax.config.update('jax_enable_x64', True)
  try:
    with pytest.raises(coke_jax.CokeError, match='JAX_ENABLE_X64'):
      coke_jax.load(coke_jax.EXAMPLE_MODEL)
    with pytest.raises(coke_jax.CokeError, match='JAX_ENABLE_X64'):
      coke_jax.train([('a', 'r', 'b')], progress=False)
  finally:
    jax.config.update('jax_enable_x64', False)


@pytest.mark.parametrize(
  ('kind', 'configured', 'in_data', 'expected'),
  [
    ('triples', 1, 1, 1),
    ('paths', 1, 3, 1),
    ('paths', 2, 3, 2),
    ('paths', 5, 3, 3),  # The longest path in the data has 3 relations.
    ('paths', 5, 1, 1),
  ],
)
def test_the_longest_path_a_loaded_model_was_trained_on(
  tmp_path, monkeypatch, kind, configured, in_data, expected
):
  data = small.random_graph()
  if kind == 'paths':
    sampled = small.random_paths()
    data = paths.PathData(
      'random',
      sampled.vocabulary,
      sampled.inverse,
      **{s: sampled.split(s).up_to(in_data) for s in graph.SPLITS},
      deduction={},
    )
  settings = small.config(data={'kind': kind, 'max_path_length': configured})
  small.create_workdir(tmp_path, settings, data)

  def zeros(self, shapes):
    return jax.tree.map(
      lambda leaf: np.zeros(leaf.shape, leaf.dtype), shapes
    ), 0

  monkeypatch.setattr(workdir.Workdir, 'best_params', zeros)
  loaded = coke_jax.load(tmp_path)
  assert loaded.max_path_length == expected
  question = ('e03', *['likes'] * (expected + 1), '?')
  with pytest.raises(coke_jax.QuestionError, match=f'at most {expected}'):
    loaded.predict(question)
