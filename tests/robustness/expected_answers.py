"""Compares the answers of a server with those of `Model.predict`."""

import math
import random
from collections.abc import Sequence
from typing import Any

import coke_jax
from coke_jax.data import paths as paths_lib
from coke_jax.predict import model as model_lib
from coke_jax.predict import records

TOP = 5  # number of answers that a server returns to each question

Question = tuple[str, ...]


class Answers:
  """Questions, and the answers of `Model.predict` to them.

  Attributes:
    questions: the questions.
  """

  def __init__(self, model: model_lib.Model, questions: Sequence[Question]):
    """Answers the questions."""
    self.questions = list(questions)
    # The batch size can change the order of equally probable answers, so more
    # answers are kept than a server returns.
    found = model.predict(self.questions, top=2 * TOP)
    self._expected = dict(zip(self.questions, found, strict=True))

  def draw(self, generator: random.Random) -> Question:
    """Draws a question."""
    return generator.choice(self.questions)

  def differing(self, other: 'Answers') -> float:
    """Returns the share of questions whose best probability differs by > 1%."""
    different = [
      not math.isclose(
        self._expected[one][0].probability,
        other._expected[one][0].probability,
        rel_tol=0.01,
      )
      for one in self.questions
    ]
    return sum(different) / len(different)

  def problem(self, question: Question, got: Any) -> str:
    """Compares the answers of a server with those of the model.

    Args:
      question: the question.
      got: the server's answers, decoded from JSON.

    Returns:
      A description of the first difference, or an empty text.
    """
    expected: list[records.Prediction] = self._expected[question]
    probability = {one.label: one.probability for one in expected}
    if [one['rank'] for one in got] != list(range(1, TOP + 1)):
      return f'{question}: the answers are {got}: expected ranks 1 to {TOP}'
    for answer, other in zip(got, expected, strict=False):
      for wanted in (other.probability, probability.get(answer['label'], -1.0)):
        if not math.isclose(answer['probability'], wanted, rel_tol=1e-3):
          return f'{question}: an answer is {answer}: expected {other}'
    return ''


def of_example_model(count: int, seed: int) -> Answers:
  """Draws questions from training paths of the example model. Answers them.

  Args:
    count: the number of questions.
    seed: the seed.
  """
  model = coke_jax.load(coke_jax.EXAMPLE_MODEL)
  generator = random.Random(seed)
  words = model.data.vocabulary
  paths = model.data.train
  assert isinstance(paths, paths_lib.PathSet)
  questions: list[Question] = []
  for row in generator.sample(range(len(paths.source)), count):
    relations = [
      words.relations[one] for one in paths.relations[row] if one >= 0
    ]
    if generator.random() < 0.5:
      questions.append((words.entities[paths.source[row]], *relations, '?'))
    else:
      questions.append(('?', *relations, words.entities[paths.target[row]]))
  return Answers(model, questions)
