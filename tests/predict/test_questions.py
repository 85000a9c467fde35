"""Tests the conversion of labels to ids, and the errors for wrong labels."""

import numpy as np
import pytest

from coke_jax.data import vocabulary
from coke_jax.predict import known_facts, questions, validation
from coke_jax.predict import parser as parser_lib

WORDS = vocabulary.Vocabulary(('a', 'b', 'c'), ('r', 's'))
MASK, PAD = 5, 6


@pytest.fixture
def parser():
  return parser_lib.Parser(WORDS, 2)


def fields(question):
  return question.entity, question.relations, question.side


def test_questions(parser):
  assert fields(parser.question(('b', 's', '?'))) == (1, (1,), 'tail')
  assert fields(parser.question(['?', 'r', 's', 'c'])) == (2, (0, 1), 'head')


def test_facts(parser):
  fact = parser.fact(['a', 'r', 's', 'c'])
  assert fact == questions.Fact(('a', 'r', 's', 'c'), 0, (0, 1), 2)
  assert fields(fact.question('tail')) == (0, (0, 1), 'tail')
  assert fields(fact.question('head')) == (2, (0, 1), 'head')
  assert fact.answer('tail') == 2
  assert fact.answer('head') == 0


def test_sequences(parser):
  assert parser.sequence(('a', 'r', 'b')) == [0, 3, 1]
  assert parser.sequence(('a', 'r', 's', '?')) == [0, 3, 4, MASK]
  assert parser.sequence(('?', 's', 'c')) == [MASK, 4, 2]
  tokens = parser.tokens([[0, 3, 1], [0, 3, 4, MASK]], 5)
  assert tokens.dtype == np.int32
  assert tokens.tolist() == [[0, 3, 1, PAD, PAD], [0, 3, 4, MASK, PAD]]
  assert parser.tokens([], 5).shape == (0, 5)


def test_masked_sequences(parser):
  parsed = [parser.question(q) for q in (('b', 's', '?'), ('?', 'r', 's', 'c'))]
  made = questions.to_queries(parsed, np.array([2, 0], np.int32), WORDS, 4)
  assert made.tokens.tolist() == [[1, 4, MASK, PAD], [MASK, 3, 4, 2]]
  assert made.mask_position.tolist() == [2, 0]
  assert made.num_answers.tolist() == [1, 1]
  assert made.indices.tolist() == [2, 0]
  open_ended = questions.to_queries(parsed, np.zeros(0, np.int32), WORDS, 4)
  assert open_ended.num_answers.tolist() == [0, 0]
  nothing = questions.to_queries([], np.zeros(0, np.int32), WORDS, 4)
  assert nothing.tokens.shape == (0, 4)


def test_sides():
  assert validation.sides('both') == ('tail', 'head')
  assert validation.sides('head') == ('head',)


@pytest.mark.parametrize('method', ['question', 'fact', 'sequence'])
@pytest.mark.parametrize(
  ('labels', 'expected'),
  [
    ('a r b', 'is one string'),
    (('a', 'r'), 'expected an entity, one or more relations'),
    ((), 'expected an entity'),
    (
      ('a', 'r', 's', 'r', '?'),
      '3 relations: expected at most 2, as in training',
    ),
    (('a', '?', 'b'), 'in the place of a relation'),
    (('?', 'r', '?'), r"'\?' 'r' '\?': .*'\?'"),
    (
      ('a', 'r', '?', ''),
      r"'a' 'r' '\?' '': 4 labels, and the last one is empty",
    ),
    (('', 'r', '?'), '3 labels, and label 1 is empty'),
    (('a', '', '?'), '3 labels, and label 2 is empty'),
    (('a', 'r', ''), '3 labels, and the last one is empty'),
    (('a', 'R', '?'), "unknown relation 'R': did you mean 'r'"),
    (('a', 'b', '?'), "unknown relation 'b'"),
    (('A', 'r', 'r', '?'), r"'A' 'r' 'r' '\?': "),
    (('a', 'r', ['?']), 'expected a sequence of labels'),
    ({'a', 'r', '?'}, 'expected a sequence of labels'),
    (7, "7: expected a sequence of labels.* as a string: '7'$"),
    (('a', 10, '?'), "expected a sequence .* as a string: '10'$"),
    (('a', True, '?'), r"such as \('head', 'relation', '\?'\)$"),
  ],
)
def test_refusals(parser, method, labels, expected):
  with pytest.raises(questions.QuestionError, match=expected):
    getattr(parser, method)(labels)


def test_an_integer_is_not_a_label(parser):
  for find in (parser.entity, parser.relation):
    with pytest.raises(questions.QuestionError, match=r"as a string: '3'$"):
      find(np.int64(3))


def test_the_question_is_in_the_message(parser):
  with pytest.raises(questions.QuestionError) as caught:
    parser.question(('a\t', 's', 'x"'))
  assert r"""'a\t' 's' 'x"'""" in str(caught.value)


def test_both_ends_masked(parser):
  with pytest.raises(questions.QuestionError, match='both entities masked'):
    parser.sequence(('?', 'r', '?'))


@pytest.mark.parametrize(
  'labels',
  [
    ('x' * 10**6, 'r', '?'),
    ('a', 'x' * 10**6, '?'),
    ('a', *['r'] * 10**6, '?'),
    ('x' * 10**6,),
    'x' * 10**6,
    ('a', 'r', b'x' * 10**6),
    ('a', list(range(10**6)), '?'),
  ],
)
@pytest.mark.parametrize('method', ['question', 'fact', 'sequence'])
def test_messages_about_long_labels_are_short(parser, method, labels):
  with pytest.raises(questions.QuestionError) as caught:
    getattr(parser, method)(labels)
  assert len(str(caught.value)) < 1500


def test_hints_can_be_left_out(parser):
  for hints, expected in ((True, True), (False, False)):
    with pytest.raises(questions.QuestionError) as caught:
      parser.question(('A', 'r', '?'), hints=hints)
    assert ('did you mean' in str(caught.value)) == expected


def test_an_entity_with_the_label_of_the_unknown():
  words = vocabulary.Vocabulary(('?', 'a', 'b'), ('r',))
  parser = parser_lib.Parser(words, 1)
  # In a question, fact or sequence, `?` is the unknown, never entity 0.
  assert fields(parser.question(('?', 'r', 'a'))) == (1, (0,), 'head')
  assert fields(parser.question(('a', 'r', '?'))) == (1, (0,), 'tail')
  with pytest.raises(questions.QuestionError, match='at one end'):
    parser.question(('?', 'r', '?'))
  for labels in (('?', 'r', 'a'), ('a', 'r', '?')):
    with pytest.raises(questions.QuestionError, match='expected a fact'):
      parser.fact(labels)
  assert parser.entity('?') == 0
  assert parser.sequence(('?', 'r', 'a'))[0] == words.mask_id


def test_a_relation_with_the_label_of_the_unknown():
  words = vocabulary.Vocabulary(('a', 'b'), ('?', 'r'))
  parser = parser_lib.Parser(words, 2)
  assert fields(parser.question(('a', '?', '?'))) == (0, (0,), 'tail')
  assert fields(parser.question(('?', '?', 'b'))) == (1, (0,), 'head')
  assert fields(parser.question(('a', 'r', '?', '?'))) == (0, (1, 0), 'tail')
  assert parser.fact(('a', '?', 'b')).relations == (0,)
  assert parser.sequence(('?', '?', 'b')) == [words.mask_id, 2, 1]


def test_one_or_several():
  one = ('a', 'r', '?')
  assert validation.as_list(one) == validation.as_list([one]) == [one]
  assert validation.as_list([]) == []
  assert validation.is_single(one)
  assert validation.is_single('text')
  assert not validation.is_single([one])
  assert not validation.is_single([])
  assert validation.as_list(iter([one])) == [one]
  for wrong in (None, 3, {one}):
    with pytest.raises(questions.QuestionError, match='or a list of such'):
      validation.as_list(wrong)


@pytest.mark.parametrize('number', [1, 7, np.int32(7), True])
def test_whole_numbers(number):
  assert validation.whole_number('top', number, 1) == int(number)


def test_the_default_restriction_is_none():
  assert known_facts.Restriction().is_none
  assert known_facts.Restriction(splits=('train',)).is_none
  assert not known_facts.Restriction(candidates=np.zeros(0, np.int64)).is_none
  for flag in ('new_only', 'exclude_own', 'type_matching'):
    assert not known_facts.Restriction(**{flag: True}).is_none
