"""Methods of a trained model for questions about a whole graph."""

from collections.abc import Sequence

import numpy as np

from coke_jax.data import arrays, graph
from coke_jax.predict import embeddings, questions, records, validation
from coke_jax.predict import parser as parser_lib
from coke_jax.predict import predictor as predictor_lib
from coke_jax.predict.jobs import audit as audit_lib
from coke_jax.predict.jobs import discover as discover_lib
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.predict.jobs import relations as relations_lib
from coke_jax.predict.jobs import similar as similar_lib


class GraphMethods:
  """Methods of `model.Model` for questions about a whole graph.

  Attributes:
    data: labels and splits.
    parser: converts labels to ids.
    predictor: computes predictions for ids in batches.
  """

  data: arrays.DataSet
  parser: parser_lib.Parser
  predictor: predictor_lib.Predictor

  @property
  def num_layers(self) -> int:
    """Number of blocks in the encoder."""
    layers: int = self.predictor.scorer.model.num_layers
    return layers

  def embed_elements(self) -> embeddings.Static:
    """Returns the static embeddings of all entities and relations."""
    vocabulary = self.data.vocabulary
    count = vocabulary.num_entities + vocabulary.num_relations
    scorer = self.predictor.scorer
    table = np.array(
      scorer.model.apply({'params': scorer.params}, method='static_embeddings')
    )
    return embeddings.Static(
      vectors=table[:count],
      labels=vocabulary.token_labels[:count],
      num_entities=vocabulary.num_entities,
    )

  def discover(
    self,
    relations: str | Sequence[str] | None = None,
    *,
    top: int = 100,
    per_head: int | None = None,
    splits: Sequence[str] = graph.SPLITS,
    type_matching: bool = True,
    progress: bool = False,
  ) -> records.Records[discover_lib.NewFact]:
    """Finds the most plausible facts that are not known.

    The score of a fact is the probability of its tail, multiplied by the number
    of known tails of its head and relation. So questions with one and with many
    answers are comparable.

    Every entity is tried as the head of every relation. Facts from an entity to
    itself are left out if the relation has no such fact. If a relation is
    symmetric, only one direction of a new fact is returned.

    Args:
      relations: a relation or a list of relations. Default: all relations. The
        facts of an inverse relation are returned as facts of the relation that
        it inverts.
      top: the maximum number of facts.
      per_head: the maximum number of facts with the same head. Default: no
        limit.
      splits: the splits whose facts count as known. Facts of train always do.
      type_matching: whether to limit heads and tails to entities that occur in
        a known fact with the relation, on this side.
      progress: whether to show a progress bar.

    Returns:
      The facts, best first.

    Raises:
      QuestionError: a relation or split is unknown, or a number is below 1.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_splits(splits)
    return discover_lib.discover(
      self.predictor,
      top=validation.whole_number('top', top, least=1),
      relations=self._relations(relations),
      per_head=(
        None
        if per_head is None
        else validation.whole_number('per_head', per_head, least=1)
      ),
      splits=splits,
      type_matching=type_matching,
      progress=progress,
    )

  def audit(
    self,
    relations: str | Sequence[str] | None = None,
    *,
    top: int = 100,
    splits: Sequence[str] = graph.SPLITS,
    expected: int = 3,
    progress: bool = False,
  ) -> records.Records[audit_lib.Suspicion]:
    """Finds the known facts that the model considers least plausible.

    The score of a tail is its log-probability, plus the logarithm of the number
    of known tails. If it is the only one, a term is added that is low if this
    is rare for the relation; see `coke_jax.predict.jobs.audit`. The same holds
    for the head. Facts are ordered by the mean of both scores. Each distinct
    question is scored once.

    Args:
      relations: a relation or a list of relations. Default: all relations.
      top: the maximum number of facts.
      splits: the splits whose facts are audited. The known answers are those of
        all splits.
      expected: the maximum number of entities that are returned as expected
        instead of the head and of the tail.
      progress: whether to show a progress bar.

    Returns:
      The facts, least plausible first.

    Raises:
      QuestionError: a relation or split is unknown, `top` is below 1, or
        `expected` is below 0.
      NonFiniteError: a score is NaN or infinite.
    """
    validation.check_splits(splits)
    return audit_lib.audit(
      self.predictor,
      top=validation.whole_number('top', top, least=1),
      relations=self._relations(relations),
      splits=splits,
      expected=validation.whole_number('expected', expected, least=0),
      progress=progress,
    )

  def similar(
    self,
    entity: str,
    *,
    relation: str | None = None,
    side: str = 'head',
    top: int = 10,
    type_matching: bool = False,
  ) -> records.Records[similar_lib.Neighbor]:
    """Finds the entities with the nearest embeddings, by their cosine.

    Args:
      entity: the entity.
      relation: compares contextual embeddings: the hidden states at `?` in
        `(entity, relation, '?')`. Entities with the same answers are near.
        Default: compares static embeddings.
      side: the side of the entity. With `tail`, the sequence is
        `('?', relation, entity)`.
      top: the maximum number of entities.
      type_matching: whether to limit the entities to those that occur in a fact
        of any split with the relation, on this side. Needs a relation.

    Returns:
      The nearest entities, best first, without the entity itself.

    Raises:
      QuestionError: a label or side is unknown, `top` is below 1, or
        `type_matching` is set without a relation.
      NonFiniteError: a hidden state is NaN or infinite.
    """
    top = validation.whole_number('top', top, least=1)
    own = self.parser.entity(entity)
    (side,) = validation.sides(side, both=False)
    candidates = None
    if relation is None:
      if type_matching:
        raise questions.QuestionError(
          'type_matching is True: expected a relation'
        )
      table = self.embed_elements().entities
    else:
      index = self.parser.relation(relation)
      if type_matching:
        candidates = self.predictor.ends(
          questions.Question(own, (index,), side)
        )
      table = similar_lib.contextual(
        self.predictor, index, side, self.num_layers
      )
    return similar_lib.nearest(
      table, own, self.data.vocabulary.entities, top, candidates
    )

  def relations(
    self, head: str, tail: str, *, top: int = 10, new_only: bool = False
  ) -> records.Records[records.Prediction]:
    """Predicts the relations between two entities.

    `predict((head, '?', tail))` is the same. No model is trained to predict
    relations. The score of a relation is computed from the probabilities of the
    tail and of the head; see `coke_jax.predict.jobs.relations`.

    Args:
      head: the label of the head.
      tail: the label of the tail.
      top: the maximum number of relations.
      new_only: whether to remove the relations of facts of any split.

    Returns:
      The relations, best first. The probabilities of all relations have the
      sum 1.

    Raises:
      QuestionError: a label is unknown, or `top` is below 1.
      NonFiniteError: a score is NaN or infinite.
    """
    return self._between([(head, questions.UNKNOWN, tail)], top, new_only)[0]

  def _between(
    self,
    asked: Sequence[questions.Labels],
    top: int,
    new_only: bool,
    candidates: Sequence[str] | None = None,
  ) -> records.Records[records.Records[records.Prediction]]:
    """Predicts the relations of several questions `(head, '?', tail)`."""
    top = validation.whole_number('top', top, least=1)
    allowed = None
    if candidates is not None:
      validation.check_list('candidates', candidates)
      allowed = [self.parser.relation(label) for label in candidates]
    pairs = [
      (self.parser.entity(one[0]), self.parser.entity(one[2])) for one in asked
    ]
    return relations_lib.predict(
      self.predictor, pairs, top=top, new_only=new_only, relations=allowed
    )

  def _relations(self, labels: str | Sequence[str] | None) -> list[int] | None:
    """Returns the distinct base relations of labels, or None for None."""
    if labels is None:
      return None
    if isinstance(labels, str):
      labels = [labels]
    validation.check_list('relations', labels)
    relations = [self.parser.relation(label) for label in labels]
    return facts_lib.to_base(self.data, relations)
