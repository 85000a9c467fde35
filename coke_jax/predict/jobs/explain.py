"""Finds the known facts that support a fact: paths and similar facts."""

import copy
import dataclasses
from collections.abc import Sequence

import numpy as np

from coke_jax.data import graph
from coke_jax.predict import predictor, questions
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.predict.jobs import path_search

Triple = tuple[str, str, str]


@dataclasses.dataclass(frozen=True)
class Path:
  """A path of known facts from the head to the tail of a fact.

  Attributes:
    facts: one to three known facts. Successive facts share an entity.
    text: the path as text, such as `Kenya -borders-> Uganda -region-> Africa`.
      An arrow to the left, such as `<-borders-`, means that the path follows a
      fact from its tail to its head.
    score: the logarithm of `probability`.
    probability: the probability of the last entity, given the first entity and
      the relations of the path. If the path is longer than the training paths,
      or a relation with an arrow to the left has no inverse relation, the
      probabilities of the single steps are multiplied. Otherwise, the whole
      path is one query.
  """

  facts: tuple[Triple, ...]
  text: str
  score: float
  probability: float


@dataclasses.dataclass(frozen=True)
class SimilarFact:
  """A known fact with the same relation as the explained fact.

  Attributes:
    fact: the labels of head, relation and tail.
    similarity: the mean of two cosines of static embeddings: the cosine of the
      heads of both facts, and the cosine of the tails.
  """

  fact: Triple
  similarity: float


@dataclasses.dataclass(frozen=True)
class Explanation:
  """Known facts that support a fact.

  Attributes:
    fact: the labels of head, relation and tail.
    score: log-probability of the tail, given head and relation.
    probability: the softmax of the model's scores over all entities.
    known_in: the first split that contains the fact. Empty if no split does.
    paths: the paths with the highest scores, best first. Empty if there is no
      path of up to three known facts.
    similar: the most similar known facts of the relation, best first.
    complete: whether all paths were found. False if a limit of `path_search`
      was reached.
  """

  fact: Triple
  score: float
  probability: float
  known_in: str
  paths: tuple[Path, ...]
  similar: tuple[SimilarFact, ...]
  complete: bool


class Explainer:
  """Explains facts with one model and its known facts."""

  def __init__(
    self,
    predictor: predictor.Predictor,
    embeddings: np.ndarray,
    max_path_length: int,
  ):
    """Prepares the graph of known facts.

    Args:
      predictor: predicts with the model.
      embeddings: float32 [V, D], the static embeddings of the entities.
      max_path_length: maximum number of relations in a training path.
    """
    self._predictor = predictor
    self._facts = facts_lib.known(predictor.data)
    self._words = predictor.data.vocabulary
    self._graph = path_search.Graph(self._facts, self._words.num_entities)
    length = np.linalg.norm(embeddings, axis=1, keepdims=True)
    self._unit = embeddings / np.maximum(length, np.finfo(np.float32).tiny)
    self._max_path_length = max_path_length

  def with_predictor(self, predictor: predictor.Predictor) -> 'Explainer':
    """Returns a copy that uses another predictor of the same model."""
    other = copy.copy(self)
    other._predictor = predictor
    return other

  def explain(
    self, fact: questions.Fact, *, top: int, similar: int
  ) -> Explanation:
    """Explains a fact with one relation.

    Args:
      fact: the fact. Its relation is not an inverse relation.
      top: the maximum number of paths.
      similar: the maximum number of similar facts.

    Raises:
      errors.NonFiniteError: a score is NaN or infinite.
    """
    triple = (fact.head, fact.relations[0], fact.tail)
    paths, complete = path_search.find(
      self._graph, fact.head, fact.tail, triple
    )
    scores, products = self._scores(paths)
    # Two paths with the same relations have equal scores if each whole path is
    # one query. Order such paths by the product of the probabilities of the
    # steps.
    best = np.lexsort((-products, -scores))[:top].tolist()
    own = float(self._predictor.score([fact], 'tail')[0])
    known = np.flatnonzero((self._facts.triples == triple).all(axis=1))
    return Explanation(
      fact=self._labels(triple),
      score=own,
      probability=float(np.exp(own)),
      known_in=graph.SPLITS[self._facts.split[known[0]]] if len(known) else '',
      paths=tuple(self._path(paths[row], float(scores[row])) for row in best),
      similar=self._similar(triple, similar),
      complete=complete,
    )

  def _scores(
    self, paths: Sequence[path_search.Path]
  ) -> tuple[np.ndarray, np.ndarray]:
    """Computes the scores of N paths.

    Returns:
      float64 [N], the scores, see `Path`.
      float64 [N], the sums of the log-probabilities of the steps.
    """
    edges = sorted(
      {edge for path in paths for edge in path}, key=dataclasses.astuple
    )
    scores = dict(zip(edges, self._edge_scores(edges), strict=True))
    products = np.array(
      [sum(scores[edge] for edge in path) for path in paths], np.float64
    )
    found = products.copy()
    if self._max_path_length > 1:
      whole: dict[tuple[int, ...], list[int]] = {}
      for row, path in enumerate(paths):
        relations = self._relations(path)
        if relations is not None:
          whole.setdefault(relations, []).append(row)
      asked = [
        questions.Fact(
          (), paths[rows[0]][0].source, relations, paths[rows[0]][-1].target
        )
        for relations, rows in whole.items()
      ]
      own = self._predictor.score(asked, 'tail')
      for score, rows in zip(own, whole.values(), strict=True):
        found[rows] = score
    return found, products

  def _relations(self, path: path_search.Path) -> tuple[int, ...] | None:
    """Returns a path's relations, or None if the path cannot be one query."""
    inverse = getattr(self._predictor.data, 'inverse', None)
    if len(path) > self._max_path_length or inverse is None:
      return None
    relations = tuple(
      int(inverse[edge.relation]) if edge.backwards else edge.relation
      for edge in path
    )
    return None if min(relations) < 0 else relations

  def _edge_scores(self, edges: Sequence[path_search.Edge]) -> np.ndarray:
    """Computes the log-probabilities of the targets of N edges: float64 [N].

    Each distinct question is scored once.
    """
    scores = np.zeros(len(edges))
    for side, backwards in {'tail': False, 'head': True}.items():
      asked: dict[tuple[int, int], list[int]] = {}
      for row, edge in enumerate(edges):
        if edge.backwards == backwards:
          asked.setdefault((edge.source, edge.relation), []).append(row)
      pairs = np.array(list(asked), np.int64).reshape(-1, 2)
      members = list(asked.values())
      for rows, found in facts_lib.score(
        self._predictor.scorer, pairs[:, 1], pairs[:, 0], side, self._words
      ):
        for place, group in enumerate(members[rows]):
          targets = [edges[row].target for row in group]
          scores[group] = found[place, targets]
    return scores

  def _similar(
    self, triple: tuple[int, int, int], count: int
  ) -> tuple[SimilarFact, ...]:
    head, relation, tail = triple
    others = self._facts.of(relation)
    others = others[(others != triple).any(axis=1)]
    unit = self._unit
    similarity = (
      unit[others[:, 0]] @ unit[head] + unit[others[:, 2]] @ unit[tail]
    ) / 2
    best = np.argsort(-similarity, kind='stable')[:count]
    return tuple(
      SimilarFact(self._labels(others[row].tolist()), float(similarity[row]))
      for row in best
    )

  def _path(self, path: path_search.Path, score: float) -> Path:
    """Adds labels to a path."""
    words = self._words
    text = words.entities[path[0].source]
    for edge in path:
      relation = words.relations[edge.relation]
      arrow = f'<-{relation}-' if edge.backwards else f'-{relation}->'
      text += f' {arrow} {words.entities[edge.target]}'
    return Path(
      tuple(self._labels(edge.triple) for edge in path),
      text,
      score,
      float(np.exp(score)),
    )

  def _labels(self, triple: Sequence[int]) -> Triple:
    head, relation, tail = triple
    words = self._words
    return words.entities[head], words.relations[relation], words.entities[tail]
