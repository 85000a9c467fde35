"""Models for tests that ask: small, never trained, and known by heart.

`TableModel` stands in for CoKE with scores that are sums of small integers, so
that ties are plenty and a plain loop gives the very same numbers; CoKE itself
comes with random parameters. Nothing here is compiled beforehand.
"""

import itertools

import jax
import numpy as np

from coke_jax import config as config_lib
from coke_jax import parallel, tasks
from coke_jax.data import graph, vocabulary, walks
from coke_jax.model import encoder
from coke_jax.predict import model as model_lib

ENTITIES = tuple(f'e{i:02}' for i in range(20))
RELATIONS = ('likes', 'near')
SPLITS = graph.SPLITS


def random_graph(entities=ENTITIES, relations=RELATIONS, seed=3):
  """Triples with duplicates, some of valid and test in another split, too."""
  generator = np.random.default_rng(seed)

  def draw(count, *others):
    ends = [len(entities), len(relations), len(entities)]
    triples = generator.integers(0, ends, (count, 3)).astype(np.int32)
    return np.concatenate([triples, triples[:2], *others])

  train = draw(50)
  valid = draw(9, train[:2])
  words = vocabulary.Vocabulary(tuple(entities), tuple(relations))
  return graph.KnowledgeGraph(
    'random', words, train, valid, draw(9, train[2:4], valid[:1])
  )


def random_paths(longest=3):
  return walks.sample_path_data(
    random_graph(),
    seed=0,
    longest=longest,
    walks_per_train_triple=2,
    walks_per_evaluation_triple=2,
  )


class TableModel:
  """Scores of integers; hidden states that tell token, position and layer.

  Attributes:
    traces: how often it was traced, that is, compiled.
  """

  num_layers = 2
  hidden_size = 3

  def __init__(self, words, max_length=3):
    self.num_entities = words.num_entities
    self.num_tokens = words.num_tokens
    self.max_length = max_length
    self.traces = 0

  def tables(self, levels=4, seed=0):
    """Parameters: for each of K places float32 [tokens, V], 0 .. levels - 1.

    Several arrays, because pmap takes its in_axes as those of single arrays
    when there are three arguments and three arrays in all.
    """
    shape = (self.num_tokens, self.num_entities)
    generator = np.random.default_rng(seed)
    return [
      generator.integers(0, levels, shape).astype(np.float32)
      for _ in range(self.max_length)
    ]

  def apply(self, variables, *arguments, method=None, layer=None):
    self.traces += 1
    if method == 'encode':
      (tokens,) = arguments
      place = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
      states = [tokens, place, np.full(tokens.shape, layer)]
      return jax.numpy.stack(states, axis=-1).astype(np.float32)
    tokens, position = arguments
    tables = variables['params']
    scores = sum(tables[k][tokens[:, k]] for k in range(tokens.shape[1]))
    return scores + position[:, None]


def table_model(data=None, max_length=3, max_path_length=1, levels=4):
  """A `model.Model` whose scores are those of a table."""
  data = data or random_graph()
  scored = TableModel(data.vocabulary, max_length)
  params = parallel.replicate(scored.tables(levels))
  return model_lib.Model(scored, params, data, max_path_length)


def with_labels(model, entities=ENTITIES, relations=RELATIONS):
  """The same triples and scores, what is compiled included, by other names."""
  renamed = model_lib.Model(
    model.encoder,
    model._scorer.params,
    random_graph(tuple(entities), tuple(relations)),
    1,
  )
  renamed._scorer = model._scorer
  return renamed


def small_config(kind='triples', length=1):
  config = config_lib.default_config()
  config.data.name = 'random'
  config.data.kind = kind
  config.data.max_path_length = length
  config.model.num_layers = 2
  config.model.hidden_size = 8
  config.model.num_heads = 2
  config.model.feed_forward_size = 8
  return config


def coke_params(model, seed=0):
  """Random parameters, large enough for scores to differ."""
  generator = np.random.default_rng(seed)
  shapes = jax.eval_shape(lambda: encoder.init_params(model, 0))
  return jax.tree.map(
    lambda leaf: generator.normal(0, 0.5, leaf.shape).astype(np.float32), shapes
  )


def coke_model(data=None, max_length=3, max_path_length=1):
  """A `model.Model` of a CoKE with random parameters."""
  data = data or random_graph()
  model = tasks.build_model(small_config(), data.vocabulary, max_length)
  params = parallel.replicate(coke_params(model))
  return model_lib.Model(model, params, data, max_path_length)


# ------------------------------------------------------------------ references


def scores_by_hand(model, question):
  """The table's scores of a question of labels, and their log-probabilities."""
  tables = [np.asarray(table) for table in model._scorer.params]
  words = model.data.vocabulary
  ids = [words.mask_id if label == '?' else None for label in question]
  for place, label in enumerate(question):
    if ids[place] is None:
      inner = 0 < place < len(question) - 1
      ids[place] = (
        words.num_entities + words.relations.index(label)
        if inner
        else words.entities.index(label)
      )
  position = question.index('?') if question[0] == '?' else len(question) - 1
  ids += [words.pad_id] * (model.width - len(ids))
  scores = [
    sum(float(tables[k][token, entity]) for k, token in enumerate(ids))
    + position
    for entity in range(words.num_entities)
  ]
  return scores, np.array(scores) - np.logaddexp.reduce(scores)


def facts(data, *splits):
  """The labelled triples of splits, in both directions where these have names.

  Of path data, the paths of one relation are facts.
  """
  words = data.vocabulary
  found = set()
  for split in splits:
    part = data.split(split)
    single = part if isinstance(part, np.ndarray) else part.single_edges()
    for head, relation, tail in single.tolist():
      names = [words.entities[head], words.relations[relation]]
      found.add((*names, words.entities[tail]))
      if hasattr(data, 'inverse'):
        back = words.relations[data.inverse[relation]]
        found.add((words.entities[tail], back, words.entities[head]))
  return found


def reached(edges, question):
  """The answers of a question by walking over labelled triples."""
  relations = question[1:-1]
  if question[0] == '?':
    here = {question[-1]}
    for relation in reversed(relations):
      here = {h for h, r, t in edges if r == relation and t in here}
  else:
    here = {question[0]}
    for relation in relations:
      here = {t for h, r, t in edges if r == relation and h in here}
  return here


def known_in(data, question, label):
  """The first split that knows an answer; valid and test build on train."""
  for split in SPLITS:
    if label in reached(facts(data, 'train', split), question):
      return split
  return ''


def ends(data, question, *splits):
  """The entities that stand beside the outermost relation, where `?` does."""
  edges = facts(data, 'train', *splits)
  if question[0] == '?':
    return {h for h, r, _ in edges if r == question[1]}
  return {t for _, r, t in edges if r == question[-2]}


def both_sides(fact):
  """The questions of a fact for its tail and its head."""
  return [(*fact[:-1], '?'), ('?', *fact[1:])]


def every_question(relations=RELATIONS, entities=ENTITIES):
  return [
    question
    for entity, relation in itertools.product(entities, relations)
    for question in ((entity, relation, '?'), ('?', relation, entity))
  ]
