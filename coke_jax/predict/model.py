"""A trained model for people: ask it by label, rank facts, look inside.

What it is for:

    model = coke_jax.load('runs/countries')
    model.predict(('France', 'official_language', '?'), top=5)
    model.rank([('France', 'borders', 'Spain')])
    model.embed([('France', 'borders', 'Spain')]).vectors
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from coke_jax.data import arrays, graph
from coke_jax.data import queries as queries_lib
from coke_jax.model import encoder as encoder_lib
from coke_jax.predict import embeddings, known_facts, questions, records, scorer

QuestionError = questions.QuestionError
Prediction = records.Prediction
Ranking = records.Ranking

Labels = questions.Labels
_EVERYONE = known_facts.Restriction()


class Model:
  """A trained model and the data it was trained on.

  The first question of a kind compiles; later ones do not, however many they
  are. Memory is bounded: questions are asked in batches.

  Attributes:
    data: labels and splits.
    max_path_length: relations in the longest question it was trained on.
    parser: reads labels, see `questions.Parser`.
  """

  def __init__(
    self, model: Any, params: Any, data: arrays.DataSet, max_path_length: int
  ):
    self.data = data
    self.max_path_length = max_path_length
    self.parser = questions.Parser(data.vocabulary, max_path_length)
    self._scorer = scorer.Scorer(model, params)
    self._known = known_facts.KnownAnswers(data)

  @property
  def encoder(self) -> encoder_lib.CoKE:
    """The Flax module."""
    return self._scorer.model

  @property
  def batch_size(self) -> int:
    """How many questions are asked at a time."""
    return self._scorer.batch_size

  @property
  def num_layers(self) -> int:
    """The blocks of the encoder."""
    layers: int = self.encoder.num_layers
    return layers

  def predict(
    self,
    question: Labels | Sequence[Labels],
    *,
    top: int = 10,
    new_only: bool = False,
    exclude_own: bool = False,
    type_matching: bool = False,
    candidates: Sequence[str] | None = None,
  ) -> Any:
    """The best answers to a question, or to each of several.

    Args:
      question: labels with `?` first or last, such as `('France', 'borders',
        '?')`, with several relations if the model was trained on paths; or a
        list of such.
      top: answers a question gets, at most.
      new_only: leave out answers that are known from any split.
      exclude_own: leave out the entity that the question names.
      type_matching: only entities that are found beside the question's
        outermost relation, on this side, in some fact.
      candidates: only these entities.

    Returns:
      `records.Records` of `Prediction`, best first; Records of such Records
      for several questions. Entities of equal score come in the order of their
      ids.

    Raises:
      QuestionError: an unknown label, no `?` at an end, or more relations than
        the model was trained on.
    """
    asked = questions.as_list(question)
    parsed = list(map(self.parser.question, asked))
    allowed = None
    if candidates is not None:
      questions.check_list('candidates', candidates)
      allowed = np.array([self.parser.entity(c) for c in candidates], np.int64)
    restriction = known_facts.Restriction(
      new_only=new_only,
      exclude_own=exclude_own,
      type_matching=type_matching,
      candidates=allowed,
    )
    answers = self.answer(parsed, top, restriction)
    return answers[0] if questions.is_one(question) else answers

  def answer(
    self,
    asked: Sequence[questions.Question],
    top: int,
    restriction: known_facts.Restriction = _EVERYONE,
  ) -> records.Records[records.Records[Prediction]]:
    """Like `predict`, of questions that were read before."""
    top = questions.whole_number('top', top, least=1)
    answers: records.Records[records.Records[Prediction]] = records.Records()
    top = min(top, self.data.vocabulary.num_entities)
    for start in range(0, len(asked), self.batch_size):
      part = list(asked[start : start + self.batch_size])
      facts = self._known.by_split(part)
      competing = None
      if not restriction.is_none:
        competing = self._known.competing(part, facts, restriction)
      entities, scores = self._scorer.best(self._queries(part), top, competing)
      known_in = known_facts.first_split(facts, entities)
      labels = self.data.vocabulary.entities
      answers += records.predictions(labels, entities, scores, known_in)
    return answers

  def rank(
    self,
    facts: Labels | Sequence[Labels],
    *,
    side: str = 'both',
    splits: Sequence[str] = graph.SPLITS,
    type_matching: bool = False,
  ) -> records.Records[Ranking]:
    """Where the ends of facts stand among entities not known to fit.

    With the defaults, ranks of triples are those of filtered link prediction.
    For paths, `side='tail', splits=('train', 'test'), type_matching=True` gives
    the ranks behind the quantiles of the test split.

    Args:
      facts: a triple or path of labels without `?`, or a list of such.
      side: the end to ask for: `head`, `tail` or `both`.
      splits: whose facts tell which entities are known to fit, and do not
        compete; those of train always do.
      type_matching: rank only among entities found beside the outermost
        relation, on this side, in some fact of `splits`.

    Returns:
      A record for each fact and side: of the first fact the tail and the head,
      then of the next.

    Raises:
      QuestionError: as in `predict`; a side or split there is not.
    """
    sides = questions.sides(side)
    parsed = list(map(self.parser.fact, questions.as_list(facts)))
    questions.check_list('splits', splits)
    for split in splits:
      if split not in graph.SPLITS:
        raise QuestionError(f'split {split!r}: expected some of {graph.SPLITS}')
    restriction = known_facts.Restriction(
      splits=tuple(splits), new_only=True, type_matching=type_matching
    )
    asked = [(fact, end) for fact in parsed for end in sides]
    rankings: records.Records[Ranking] = records.Records()
    for start in range(0, len(asked), self.batch_size):
      part = asked[start : start + self.batch_size]
      asking = [fact.question(end) for fact, end in part]
      gold = np.array([fact.answer(end) for fact, end in part], np.int32)
      facts_known = self._known.by_split(asking)
      competing = self._known.competing(asking, facts_known, restriction)
      ranks, scores = self._scorer.place(self._queries(asking, gold), competing)
      known_in = known_facts.first_split(facts_known, gold[:, None])[:, 0]
      for row, (fact, end) in enumerate(part):
        rankings.append(
          Ranking(
            fact=fact.labels,
            side=end,
            rank=float(ranks.realistic[row]),
            optimistic=int(ranks.optimistic[row]),
            pessimistic=int(ranks.pessimistic[row]),
            candidates=int(ranks.candidates[row]),
            score=float(scores[row]),
            probability=float(np.exp(scores[row])),
            known_in=str(known_in[row]),
          )
        )
    return rankings

  def score(
    self, facts: Labels | Sequence[Labels], *, side: str = 'tail'
  ) -> np.ndarray:
    """The log-probability of each fact's entity at one end, given the rest.

    Args:
      facts: a triple or path of labels without `?`, or a list of N such.
      side: `tail`, `head`, or `both` for the mean of the two.

    Returns:
      float32 [N].
    """
    sides = questions.sides(side)
    parsed = list(map(self.parser.fact, questions.as_list(facts)))
    total = np.zeros(len(parsed), dtype=np.float32)
    everyone = self.data.vocabulary.num_entities
    for end in sides:
      for start in range(0, len(parsed), self.batch_size):
        part = parsed[start : start + self.batch_size]
        queries = self._queries(
          [fact.question(end) for fact in part],
          np.array([fact.answer(end) for fact in part], np.int32),
        )
        competing = np.ones((len(part), everyone), dtype=bool)
        _, scores = self._scorer.place(queries, competing)
        total[start : start + len(part)] += scores
    return total / np.float32(len(sides))

  def embed(
    self, sequences: Labels | Sequence[Labels], *, layer: int | None = None
  ) -> embeddings.Contextual:
    """Contextual embeddings of every position of sequences.

    Args:
      sequences: a triple or path of labels, or a list of N such; `?` at one end
        stands for the masked entity.
      layer: after how many blocks: 0 is the input, `num_layers`, or None, the
        final hidden states.

    Returns:
      `vectors` float32 [N, K, D] and what they are of.

    Raises:
      QuestionError: as in `predict`; a layer there is not.
    """
    asked = map(self.parser.sequence, questions.as_list(sequences))
    tokens = self.parser.tokens(list(asked), self.width)
    vectors = [part for _, part in self.encode(tokens, layer)]
    return embeddings.Contextual(
      vectors=np.concatenate(vectors),
      tokens=tokens,
      labels=self.data.vocabulary.token_labels,
      layer=self.num_layers if layer is None else layer,
    )

  def embed_elements(self) -> embeddings.Static:
    """The static embeddings: the model's input for each entity and relation."""
    vocabulary = self.data.vocabulary
    count = vocabulary.num_entities + vocabulary.num_relations
    table = np.array(self._scorer.params['element_embedding'])
    return embeddings.Static(
      vectors=table[:count],
      labels=vocabulary.token_labels[:count],
      num_entities=vocabulary.num_entities,
    )

  def encode(
    self, tokens: np.ndarray, layer: int | None = None
  ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yields tokens [B, K] and their hidden states [B, K, D], by batches.

    States behind the end of a sequence are zero. No tokens are one batch of no
    rows.
    """
    layer = self.num_layers if layer is None else layer
    if layer not in range(self.num_layers + 1):
      raise QuestionError(
        f'layer is {layer}: expected 0 (the input) to {self.num_layers}'
      )
    if not len(tokens):
      shape = (*tokens.shape, self.encoder.hidden_size)
      yield tokens, np.zeros(shape, dtype=np.float32)
    for start in range(0, len(tokens), self.batch_size):
      part = tokens[start : start + self.batch_size]
      states = self._scorer.encode(part, layer)
      real = part != self.data.vocabulary.pad_id
      yield part, np.where(real[..., None], states, 0)

  @property
  def width(self) -> int:
    """Tokens in a row of the model's input: K."""
    width: int = self.encoder.max_length
    return width

  def _queries(
    self, asked: list[questions.Question], gold: np.ndarray | None = None
  ) -> queries_lib.Queries:
    answers = np.zeros(0, np.int32) if gold is None else gold
    return questions.to_queries(
      asked, answers, self.data.vocabulary, self.width
    )
