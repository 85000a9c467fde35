"""Finds the answers to a question that are known from train, valid or test.

An answer is known if the facts of a split contain a path from the entity of the
question to the answer, along the relations of the question. A path in valid or
test may also contain facts of train.
"""

import dataclasses

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import arrays, entity_sets, graph
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import questions as questions_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Restriction:
  """Filters candidate answers. Default: every entity is a candidate.

  Attributes:
    splits: the splits whose facts count as known. Facts of train always count.
      Default: all splits.
    new_only: whether known answers are removed. Default: no.
    exclude_own: whether the entity of the question is removed. Default: no.
    type_matching: whether the candidates are limited to the known tails of the
      relation before `?`, or the known heads of the relation after `?`.
      Default: no.
    candidates: int64 [M], the entity ids that the candidates are limited to.
      Default: all entities.
  """

  splits: tuple[str, ...] = graph.SPLITS
  new_only: bool = False
  exclude_own: bool = False
  type_matching: bool = False
  candidates: np.ndarray | None = None

  @property
  def is_none(self) -> bool:
    """Whether every entity is a candidate."""
    flags = self.new_only or self.exclude_own or self.type_matching
    return not flags and self.candidates is None


# The known answers to B questions, by split.
Answers = dict[str, entity_sets.EntitySets]


class KnownAnswers:
  """Finds the answers to questions in the facts of a data set."""

  def __init__(self, data: arrays.DataSet):
    vocabulary = data.vocabulary
    num_relations = vocabulary.num_relations
    # Heads are found along inverse relations. Here, relation r has the inverse
    # r + R, even if the path data contain another inverse.
    self._backwards = np.arange(num_relations, 2 * num_relations)
    inverse = np.concatenate([self._backwards, np.arange(num_relations)])
    own_inverse = np.full(num_relations, vocabulary_lib.NO_RELATION, np.int32)
    if isinstance(data, paths_lib.PathData):
      own_inverse = data.inverse
    self._graphs: dict[str, adjacency_lib.Adjacency] = {}
    self._ends: dict[tuple[int, tuple[str, ...]], np.ndarray] = {}
    for split in graph.SPLITS:
      self._graphs[split] = adjacency_lib.from_triples(
        _edges(data, split, own_inverse),
        vocabulary.num_entities,
        inverse.astype(np.int32),
        None if split == 'train' else self._graphs['train'],
      )

  def answers(
    self, questions: list[questions_lib.Question], split: str
  ) -> entity_sets.EntitySets:
    """Finds the answers to questions that are known from train and a split.

    Args:
      questions: B questions with any numbers of relations.
      split: `train`, or the split whose facts are added to those of train.

    Returns:
      B sets: the answers to each question.
    """
    longest = max((len(one.relations) for one in questions), default=1)
    shape = (len(questions), longest)
    relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
    for row, question in enumerate(questions):
      steps: np.ndarray = np.array(question.relations, dtype=np.int32)
      if question.side == 'head':
        steps = self._backwards[steps[::-1]]
      relations[row, : len(steps)] = steps
    source = np.array([question.entity for question in questions], np.int32)
    return self._graphs[split].traverse(source, relations)

  def ends(
    self,
    question: questions_lib.Question,
    splits: tuple[str, ...] = graph.SPLITS,
  ) -> np.ndarray:
    """Finds the known heads or tails of the relation next to `?`.

    Args:
      question: the question.
      splits: the splits whose facts are used, at least one. The facts of train
        are always used.

    Returns:
      int32 [M], sorted entity ids. If the tail is unknown, the known tails of
      the last relation. If the head is unknown, the known heads of the first
      relation.
    """
    relation = question.relations[-1]
    if question.side == 'head':
      relation = int(self._backwards[question.relations[0]])
    key = (relation, splits)
    if key not in self._ends:
      found = [self._graphs[split].candidates(relation) for split in splits]
      self._ends[key] = np.unique(np.concatenate(found))
    return self._ends[key]

  def by_split(self, questions: list[questions_lib.Question]) -> Answers:
    """Finds the known answers to questions for each split."""
    return {split: self.answers(questions, split) for split in graph.SPLITS}

  def candidates(
    self,
    questions: list[questions_lib.Question],
    answers: Answers,
    restriction: Restriction,
  ) -> np.ndarray:
    """Finds the candidates that a restriction allows.

    Args:
      questions: B questions.
      answers: the known answers to the questions, from `by_split`.
      restriction: the restriction.

    Returns:
      bool [B, V], the candidates of each question.
    """
    splits = tuple(dict.fromkeys(['train', *restriction.splits]))
    num_entities = self._graphs['train'].num_entities
    candidates = np.ones((len(questions), num_entities), dtype=bool)
    if restriction.candidates is not None:
      candidates[:] = False
      candidates[:, restriction.candidates] = True
    if restriction.type_matching:
      ends = np.zeros_like(candidates)
      for row, question in enumerate(questions):
        ends[row, self.ends(question, splits)] = True
      candidates &= ends
    if restriction.new_only:
      rows = np.arange(len(questions))
      for split in splits:
        candidates &= ~answers[split].mask(rows)
    if restriction.exclude_own:
      own = [question.entity for question in questions]
      candidates[np.arange(len(questions)), own] = False
    return candidates


def first_split(answers: Answers, entities: np.ndarray) -> np.ndarray:
  """Finds the first of train, valid and test in which each answer is known.

  Args:
    answers: known answers to B questions, see `KnownAnswers.by_split`.
    entities: int32 [B, k], k answers to each question.

  Returns:
    Text [B, k], the name of a split, or empty if the answer is not known.
  """
  count = entities.shape[1]
  found = np.full(entities.shape, '', dtype='<U5')
  for split in reversed(graph.SPLITS):
    sets = answers[split]
    repeated = dataclasses.replace(sets, set_of=np.repeat(sets.set_of, count))
    holds = repeated.contains(entities.reshape(-1)).reshape(entities.shape)
    found[holds] = split
  return found


def _edges(
  data: arrays.DataSet, split: str, own_inverse: np.ndarray
) -> np.ndarray:
  """Returns the facts of a split, int32 [edges, 3]: head, relation, tail.

  In path data, the facts are the paths with a single relation. If this relation
  has an inverse, the reversed path is also a fact.
  """
  if isinstance(data, graph.KnowledgeGraph):
    return data.split(split)
  edges = data.split(split).single_edges()
  back = edges[:, ::-1].copy()
  back[:, 1] = own_inverse[edges[:, 1]]
  return np.concatenate([edges, back[back[:, 1] != vocabulary_lib.NO_RELATION]])
