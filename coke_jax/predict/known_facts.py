"""Which answers of a question are facts already: in train, valid or test.

An answer of a question of several hops counts as known where a split's graph,
walked along the question's relations, arrives at it.
"""

import dataclasses

import numpy as np

from coke_jax.data import adjacency as adjacency_lib
from coke_jax.data import arrays, graph
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.predict import questions as questions_lib


@dataclasses.dataclass(frozen=True, eq=False)
class Restriction:
  """Which entities are let compete for an answer; all unless said otherwise.

  Attributes:
    splits: whose facts count below, besides those of train.
    new_only: not the entities that these facts give as answers.
    exclude_own: not the entity that the question names.
    type_matching: only entities that stand beside the question's outermost
      relation, on this side, in one of these facts.
    candidates: only these entity ids.
  """

  splits: tuple[str, ...] = graph.SPLITS
  new_only: bool = False
  exclude_own: bool = False
  type_matching: bool = False
  candidates: np.ndarray | None = None

  @property
  def is_none(self) -> bool:
    """Whether all entities compete."""
    flags = self.new_only or self.exclude_own or self.type_matching
    return not flags and self.candidates is None


Facts = dict[str, adjacency_lib.EntitySets]  # known answers of B questions


class KnownAnswers:
  """The facts of a data set, for looking up the answers of questions."""

  def __init__(self, data: arrays.DataSet):
    vocabulary = data.vocabulary
    num_relations = vocabulary.num_relations
    # Every relation gets an inverse of its own, on top of those that path data
    # have: heads are found by walking backwards.
    self._backwards = np.arange(num_relations, 2 * num_relations)
    inverse = np.concatenate([self._backwards, np.arange(num_relations)])
    own_inverse = np.full(num_relations, vocabulary_lib.NO_RELATION, np.int32)
    if isinstance(data, paths_lib.PathData):
      own_inverse = data.inverse
    self._graphs: dict[str, adjacency_lib.Adjacency] = {}
    self._ends: dict[tuple[int, tuple[str, ...]], np.ndarray] = {}
    train = _edges(data, 'train', own_inverse)
    for split in graph.SPLITS:
      edges = train
      if split != 'train':
        edges = np.concatenate([train, _edges(data, split, own_inverse)])
      self._graphs[split] = adjacency_lib.from_triples(
        edges, vocabulary.num_entities, inverse.astype(np.int32)
      )

  def answers(
    self, questions: list[questions_lib.Question], split: str
  ) -> adjacency_lib.EntitySets:
    """The known answers of each question by train and one split's facts.

    Args:
      questions: N questions of any lengths.
      split: `train`, or a split whose facts are added to those of train.

    Returns:
      The sets of N questions.
    """
    longest = max((len(one.relations) for one in questions), default=1)
    shape = (len(questions), longest)
    relations = np.full(shape, vocabulary_lib.NO_RELATION, dtype=np.int32)
    for row, question in enumerate(questions):
      steps: np.ndarray = np.array(question.relations, dtype=np.int32)
      if question.asks_head:
        steps = self._backwards[steps[::-1]]
      relations[row, : len(steps)] = steps
    source = np.array([question.entity for question in questions], np.int32)
    return self._graphs[split].traverse(source, relations)

  def ends(
    self,
    question: questions_lib.Question,
    splits: tuple[str, ...] = graph.SPLITS,
  ) -> np.ndarray:
    """The entities that could answer by type: sorted ids.

    Those that stand at the unknown end of some fact, of train or the given
    splits, with the question's relation next to it.
    """
    relation = question.relations[-1]
    if question.asks_head:
      relation = int(self._backwards[question.relations[0]])
    key = (relation, splits)
    if key not in self._ends:
      found = [self._graphs[split].candidates(relation) for split in splits]
      self._ends[key] = np.unique(np.concatenate(found))
    return self._ends[key]

  def by_split(self, questions: list[questions_lib.Question]) -> Facts:
    """The known answers of each question, by `train`, `valid` and `test`."""
    return {split: self.answers(questions, split) for split in graph.SPLITS}

  def competing(
    self,
    questions: list[questions_lib.Question],
    facts: Facts,
    restriction: Restriction,
  ) -> np.ndarray:
    """Which entities are let compete: bool [B, V].

    Args:
      questions: B questions.
      facts: their answers `by_split`.
      restriction: what is asked for.
    """
    splits = tuple(dict.fromkeys(['train', *restriction.splits]))
    num_entities = self._graphs['train'].num_entities
    competing = np.ones((len(questions), num_entities), dtype=bool)
    if restriction.candidates is not None:
      competing[:] = False
      competing[:, restriction.candidates] = True
    if restriction.type_matching:
      ends = np.zeros_like(competing)
      for row, question in enumerate(questions):
        ends[row, self.ends(question, splits)] = True
      competing &= ends
    if restriction.new_only:
      rows = np.arange(len(questions))
      for split in splits:
        competing &= ~facts[split].mask(rows)
    if restriction.exclude_own:
      own = [question.entity for question in questions]
      competing[np.arange(len(questions)), own] = False
    return competing


def first_split(facts: Facts, entities: np.ndarray) -> np.ndarray:
  """The first split that knows each answer: text [B, k], empty if none does.

  Args:
    facts: the answers of B questions, see `KnownAnswers.by_split`.
    entities: int32 [B, k].
  """
  count = entities.shape[1]
  found = np.full(entities.shape, '', dtype='<U5')
  for split in reversed(graph.SPLITS):
    sets = facts[split]
    repeated = dataclasses.replace(sets, set_of=np.repeat(sets.set_of, count))
    holds = repeated.contains(entities.reshape(-1)).reshape(entities.shape)
    found[holds] = split
  return found


def _edges(
  data: arrays.DataSet, split: str, own_inverse: np.ndarray
) -> np.ndarray:
  """The facts of a split, in both directions where both have a name.

  Returns:
    int32 [edges, 3] head, relation, tail.
  """
  if isinstance(data, graph.KnowledgeGraph):
    return data.split(split)
  edges = data.split(split).single_edges()
  back = edges[:, ::-1].copy()
  back[:, 1] = own_inverse[edges[:, 1]]
  return np.concatenate([edges, back[back[:, 1] != vocabulary_lib.NO_RELATION]])
