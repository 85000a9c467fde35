"""Small graphs, path data, configs, models and work folders for the tests.

Many tests use `TableModel` instead of CoKE. The scores of a `TableModel` are
sums of small integers. So ties are frequent, and a plain loop computes exactly
the same scores.
"""

import copy
import functools
import itertools
import os
import pathlib
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import parallel
from coke_jax.data import arrays, graph, paths, vocabulary, walks
from coke_jax.model import encoder, parameters
from coke_jax.predict import model as model_lib
from coke_jax.predict import parser, predictor
from coke_jax.storage import workdir

TESTS = pathlib.Path(__file__).resolve().parent
ENTITIES = tuple(f'e{i:02}' for i in range(20))
RELATIONS = ('likes', 'near')
SPLITS = graph.SPLITS


# ------------------------------------------------------------------------ data


def labels(
  entities: Sequence[str] | int, relations: Sequence[str] | int
) -> vocabulary.Vocabulary:
  """Returns a vocabulary.

  Args:
    entities: the labels, or their number. A number gives `e00`, `e01`, ...
    relations: the labels, or their number. A number gives `r0`, `r1`, ...
  """
  if isinstance(entities, int):
    entities = [f'e{i:02}' for i in range(entities)]
  if isinstance(relations, int):
    relations = [f'r{i}' for i in range(relations)]
  return vocabulary.Vocabulary(tuple(entities), tuple(relations))


def random_graph(
  *,
  seed: int = 3,
  sizes: tuple[int, int, int] = (50, 9, 9),
  entities: Sequence[str] | int = ENTITIES,
  relations: Sequence[str] | int = RELATIONS,
  unseen: int = 0,
  repeats: bool = True,
) -> graph.KnowledgeGraph:
  """Draws a graph whose triples are independent.

  Args:
    seed: the seed of the random numbers.
    sizes: the numbers of triples drawn for train, valid and test. If a number
      is 0, the split is empty, even with `repeats`.
    entities: the labels, or their number.
    relations: the labels, or their number.
    unseen: this many of the last entities are in no training triple.
    repeats: whether to add some duplicates to each split, some training triples
      to valid and test, and a triple of valid to test.
  """
  words = labels(entities, relations)
  generator = np.random.default_rng(seed)

  def draw(count, num_entities, *others):
    ends = [num_entities, words.num_relations, num_entities]
    triples = generator.integers(0, ends, (count, 3)).astype(np.int32)
    again = [triples[:2], *others] if repeats and count else []
    return np.concatenate([triples, *again])

  train = draw(sizes[0], words.num_entities - unseen)
  valid = draw(sizes[1], words.num_entities, train[:2])
  test = draw(sizes[2], words.num_entities, train[2:4], valid[:1])
  return graph.KnowledgeGraph('random', words, train, valid, test)


def random_paths(longest: int = 3) -> paths.PathData:
  """Samples paths of up to `longest` relations from `random_graph()`."""
  return walks.sample_path_data(
    random_graph(),
    seed=0,
    longest=longest,
    walks_per_train_triple=2,
    walks_per_evaluation_triple=2,
  )


def write_splits(
  folder: pathlib.Path, **splits: Iterable[Sequence[str]]
) -> pathlib.Path:
  """Writes `<split>.txt` for train, valid and test, and returns the folder.

  Args:
    folder: the folder. It is created if it is missing.
    **splits: labelled triples by split. Default: an empty file.
  """
  folder.mkdir(parents=True, exist_ok=True)
  for split in {**dict.fromkeys(SPLITS, ()), **splits}:
    lines = ('\t'.join(triple) + '\n' for triple in splits.get(split, ()))
    (folder / f'{split}.txt').write_bytes(''.join(lines).encode())
  return folder


def config(**groups: Mapping[str, Any]) -> ml_collections.ConfigDict:
  """Returns a config that trains one small block for three epochs.

  Args:
    **groups: changed fields by group, for example `train={'rows': 'query'}`.
  """
  made = config_lib.default_config()
  made.data.name = 'random'
  made.model.num_layers = 1
  made.model.hidden_size = 8
  made.model.num_heads = 2
  made.model.feed_forward_size = 16
  made.train.batch_size = 16
  made.train.num_epochs = 3
  made.train.validate_every_epochs = 1
  made.train.checkpoint_every_minutes = 0.0
  made.train.log_every_steps = 1
  made.update(groups)
  return made


def create_workdir(
  folder: pathlib.Path,
  settings: ml_collections.ConfigDict | None = None,
  data: arrays.DataSet | None = None,
) -> workdir.Workdir:
  """Creates the work folder of a run that has no checkpoint yet."""
  created = workdir.Workdir(folder)
  with created.locked():
    created.create(settings or config(), data or random_graph())
  return created


# ---------------------------------------------------------------------- models


def coke(
  num_entities: int = len(ENTITIES),
  num_relations: int = len(RELATIONS),
  **changes: Any,
) -> encoder.CoKE:
  """Returns a CoKE of two blocks for triples, without dropout."""
  settings: dict[str, Any] = {
    'num_entities': num_entities,
    'num_tokens': num_entities + num_relations + 2,
    'pad_id': num_entities + num_relations + 1,
    'max_length': 3,
    'num_layers': 2,
    'hidden_size': 8,
    'num_heads': 2,
    'feed_forward_size': 16,
    'dropout': 0.0,
  }
  return encoder.CoKE(**{**settings, **changes})


def random_params(model: encoder.CoKE, seed: int = 0, scale: float = 0.5):
  """Draws float32 parameters from a normal distribution.

  With the default scale, scores differ between entities.
  """
  generator = np.random.default_rng(seed)

  def draw(leaf):
    values = generator.standard_normal(leaf.shape, dtype=np.float32)
    # Multiply in place, because some tests have gigabytes of parameters.
    values *= scale
    return values

  return jax.tree.map(draw, parameters.param_shapes(model))


def apply(model, params, *arguments, rngs=None, **options):
  """Compiles `model.apply({'params': params}, ...)`, and calls it.

  Args:
    model: a Flax module.
    params: its parameters.
    *arguments: arrays.
    rngs: keys of random numbers by name. Default: none.
    **options: constants, such as `train` and `method`.
  """
  return _apply(model, tuple(options.items()), params, arguments, rngs)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _apply(model, options, params, arguments, rngs):
  return model.apply({'params': params}, *arguments, rngs=rngs, **dict(options))


class TableModel:
  """A model whose score is a sum of small integers.

  The score of a candidate is the position of the mask, plus
  `tables[k][token, candidate]` for the token at each position k. The hidden
  state of a token is the vector [token, position, layer]. The static embeddings
  are `tables[0]`.

  Attributes:
    tables: the parameters: for each of K positions, a float32 array [tokens, V]
      of integers from 0 to `levels` - 1. Fewer levels give more ties. A single
      array for all positions would trigger the known issue in
      `parallel.map_devices`.
    traces: the number of calls of `apply`. Each compilation calls it once.
  """

  num_layers = 2
  hidden_size = 3

  def __init__(
    self,
    words: vocabulary.Vocabulary,
    max_length: int = 3,
    levels: int = 4,
    seed: int = 0,
  ):
    self.num_entities = words.num_entities
    self.num_tokens = words.num_tokens
    self.max_length = max_length
    self.traces = 0
    shape = (self.num_tokens, self.num_entities)
    generator = np.random.default_rng(seed)
    self.tables = [
      generator.integers(0, levels, shape).astype(np.float32)
      for _ in range(max_length)
    ]

  def apply(self, variables, *arguments, method=None, layer=None):
    self.traces += 1
    if method == 'encode':
      (tokens,) = arguments
      place = np.broadcast_to(np.arange(tokens.shape[1]), tokens.shape)
      states = [tokens, place, np.full(tokens.shape, layer)]
      return jax.numpy.stack(states, axis=-1).astype(np.float32)
    tables = variables['params']
    if method == 'static_embeddings':
      return tables[0]
    tokens, position = arguments
    scores = sum(tables[k][tokens[:, k]] for k in range(tokens.shape[1]))
    return scores + position[:, None]


def table_model(
  data: arrays.DataSet | None = None,
  max_length: int = 3,
  max_path_length: int = 1,
) -> model_lib.Model:
  """Returns a `Model` whose scores are those of a `TableModel`."""
  data = data or random_graph()
  scored = TableModel(data.vocabulary, max_length)
  params = parallel.replicate(scored.tables)
  return model_lib.Model(scored, params, data, max_path_length)


def coke_model(
  data: arrays.DataSet | None = None,
  max_length: int = 3,
  max_path_length: int = 1,
) -> model_lib.Model:
  """Returns a `Model` of a CoKE with the parameters of `random_params`."""
  data = data or random_graph()
  words = data.vocabulary
  model = coke(words.num_entities, words.num_relations, max_length=max_length)
  params = parallel.replicate(random_params(model))
  return model_lib.Model(model, params, data, max_path_length)


def with_labels(
  model: model_lib.Model,
  entities: Sequence[str] = ENTITIES,
  relations: Sequence[str] = RELATIONS,
) -> model_lib.Model:
  """Returns a copy of a model of `random_graph()` with other labels.

  The copy shares the compiled programs of the model.
  """
  renamed = copy.copy(model)
  renamed.data = random_graph(entities=entities, relations=relations)
  renamed.parser = parser.Parser(renamed.data.vocabulary, model.max_path_length)
  renamed.predictor = predictor.Predictor(model.predictor.scorer, renamed.data)
  return renamed


def run_script(
  path: str | os.PathLike[str], *arguments: object, devices: int
) -> None:
  """Runs a Python file in a separate process.

  Args:
    path: the file.
    *arguments: the arguments of the file.
    devices: the number of CPU devices of the process.

  Raises:
    subprocess.CalledProcessError: the file ends with an error.
  """
  subprocess.run(
    [sys.executable, path, *map(str, arguments)],
    env={
      **os.environ,
      'JAX_PLATFORMS': 'cpu',
      'PYTHONPATH': os.pathsep.join(
        filter(None, [str(TESTS), os.environ.get('PYTHONPATH')])
      ),
      'XLA_FLAGS': f'{os.environ.get("XLA_FLAGS", "")} '
      f'--xla_force_host_platform_device_count={devices}',
    },
    check=True,
    timeout=300,
  )


# ------------------------------------------------------------------ references


def scores_by_hand(model, question):
  """Returns the scores [V] of a table model, and their log-softmax [V]."""
  tables = model.encoder.tables
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
  """Returns the labelled triples of splits.

  For path data, returns the paths with a single relation, and the inverses.
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
  """Returns the answers to a question, found by walks over labelled triples."""
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
  """Returns the first split in which a label is a known answer, or ''.

  A path may combine edges of this split and of train.
  """
  for split in SPLITS:
    if label in reached(facts(data, 'train', split), question):
      return split
  return ''


def ends(data, question, *splits):
  """Returns the candidates for `?` under type matching.

  A candidate is at the position of `?` in a triple of train or `splits`. The
  relation of this triple is the one next to `?`.
  """
  edges = facts(data, 'train', *splits)
  if question[0] == '?':
    return {h for h, r, _ in edges if r == question[1]}
  return {t for _, r, t in edges if r == question[-2]}


def both_sides(fact):
  """Returns the questions whose answers are a fact's tail and head."""
  return [(*fact[:-1], '?'), ('?', *fact[1:])]


def every_question(relations=RELATIONS, entities=ENTITIES):
  """Returns all questions with a single relation, for the tail and the head."""
  return [
    question
    for entity, relation in itertools.product(entities, relations)
    for question in ((entity, relation, '?'), ('?', relation, entity))
  ]
