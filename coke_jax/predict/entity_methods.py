"""Methods of a trained model for questions about some entities and facts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays
from coke_jax.predict import (
  embeddings,
  questions,
  records,
  validation,
)
from coke_jax.predict import parser as parser_lib
from coke_jax.predict import predictor as predictor_lib
from coke_jax.predict.jobs import explain as explain_lib
from coke_jax.predict.jobs import facts as facts_lib
from coke_jax.predict.jobs import relations as relations_lib
from coke_jax.predict.jobs import similar as similar_lib


class EntityMethods:
  """Methods of `model.Model` for questions about some entities and facts.

  Attributes:
    data: labels and splits.
    max_path_length: maximum number of relations in a training path.
    parser: converts labels to ids.
    predictor: computes predictions for ids in batches.
  """

  data: arrays.DataSet
  max_path_length: int
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
      scorer.model.apply(
        {'params': scorer.whole_params()}, method='static_embeddings'
      )
    )
    return embeddings.Static(
      vectors=table[:count],
      labels=vocabulary.token_labels[:count],
      num_entities=vocabulary.num_entities,
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
      entity: the label of the entity.
      relation: a relation for contextual embeddings. The embedding of an entity
        is then the hidden state at `?` in `(entity, relation, '?')`. Entities
        with similar answers have similar hidden states. Default: static
        embeddings.
      side: the side of the entity. With `tail`, the sequence is
        `('?', relation, entity)`.
      top: the maximum number of entities.
      type_matching: whether to limit the result to entities that are on the
        side `side` of `relation` in a fact of any split. Requires `relation`.

    Returns:
      The nearest entities, best first. The entity itself is left out.

    Raises:
      QuestionError: a label or side is unknown; `top` is below 1; or
        `type_matching` is True and `relation` is None.
      NonFiniteError: a hidden state is NaN or infinite.
    """
    top = validation.whole_number('top', top, least=1)
    own = self.parser.entity(entity)
    (side,) = validation.sides(side, both=False)
    candidates = None
    if relation is None:
      if type_matching:
        raise questions.QuestionError(
          'type_matching is True and relation is None: expected a relation'
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

    `predict((head, '?', tail))` returns the same result. The model is trained
    to predict entities. So the score of a relation is computed from the
    probabilities of the tail and of the head, see
    `coke_jax.predict.jobs.relations`.

    Args:
      head: the label of the head.
      tail: the label of the tail.
      top: the maximum number of relations.
      new_only: whether to remove relations that link head and tail in any
        split.

    Returns:
      The relations, best first. The probabilities of all relations have the
      sum 1.

    Raises:
      QuestionError: a label is unknown, or `top` is below 1.
      NonFiniteError: a score is NaN or infinite.
    """
    return self._between([(head, questions.UNKNOWN, tail)], top, new_only)[0]

  def explain(
    self,
    facts: questions.Labels | Sequence[questions.Labels],
    *,
    top: int = 10,
    similar: int = 3,
  ) -> Any:
    """Finds known facts that support facts or predictions.

    For each fact, finds the paths of up to three known facts from the head to
    the tail, ordered by their probability. Also finds the known facts with the
    same relation whose entities are most similar. The explained fact itself is
    left out.

    Args:
      facts: a triple of labels, or a list of triples.
      top: the maximum number of paths.
      similar: the maximum number of similar facts.

    Returns:
      For a single fact, an `Explanation`. Its `paths` are empty if there is no
      path. For a list of facts, `Records` of `Explanation`.

    Raises:
      QuestionError: a label is unknown; a fact has several relations or
        contains `?`; or `top` or `similar` is below 0.
      NonFiniteError: a score is NaN or infinite.
    """
    top = validation.whole_number('top', top, least=0)
    similar = validation.whole_number('similar', similar, least=0)
    facts = validation.materialize(facts)
    parsed = [self.base_fact(one) for one in validation.as_list(facts)]
    explainer = explain_lib.Explainer(
      self.predictor, self.embed_elements().entities, self.max_path_length
    )
    found = records.Records(
      explainer.explain(fact, top=top, similar=similar) for fact in parsed
    )
    return found[0] if validation.is_single(facts) else found

  def base_fact(self, labels: questions.Labels) -> questions.Fact:
    """Converts a triple to ids.

    If the relation is the inverse of a base relation, the result is the
    reversed triple with the base relation.

    Raises:
      QuestionError: a label is unknown or `?`, or there are several relations.
    """
    fact = self.parser.fact(labels)
    if len(fact.relations) > 1:
      raise questions.QuestionError(
        f'{validation.short_labels(labels)}: {len(fact.relations)} relations: '
        'expected one'
      )
    (base,) = facts_lib.to_base(self.data, fact.relations)
    if base == fact.relations[0]:
      return fact
    return questions.Fact(fact.labels, fact.tail, (base,), fact.head)

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
