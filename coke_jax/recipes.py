"""Recipes: settings that gave the best results for their training time.

They differ from the paper's settings, which `config.default_config` returns.
`docs/learning.md` contains the measurements.
"""

import ml_collections

from coke_jax import config as config_lib

# With more entities than this number, `for_size` chooses `factorization`.
LARGE = 10_000
# With fewer training triples per entity than this number, the factorization
# model stays better than one block, however long the training is. This is so on
# WN18RR, which has 2 triples per entity, but not on CoDEx-M (11) and FB15k-237
# (19).
_DENSE = 5


def for_size(num_entities: int) -> ml_collections.ConfigDict:
  """Returns the recipe for a graph with a number of entities."""
  return factorization() if num_entities > LARGE else one_block()


def for_counts(
  num_entities: int, num_triples: int
) -> tuple[ml_collections.ConfigDict, ml_collections.ConfigDict | None]:
  """Returns the results of `for_size` and `with_more_time` for a graph."""
  return for_size(num_entities), with_more_time(num_entities, num_triples)


def with_more_time(
  num_entities: int, num_triples: int
) -> ml_collections.ConfigDict | None:
  """Returns the recipe that is better than `for_size` after a long training.

  Args:
    num_entities: the number of entities of the graph.
    num_triples: the number of its training triples.

  Returns:
    The recipe. None if `for_size` is the best choice for any time.
  """
  if num_entities > LARGE and num_triples >= _DENSE * num_entities:
    return one_block_of_many_entities()
  return None


def one_block() -> ml_collections.ConfigDict:
  """Returns the recipe for graphs with up to about ten thousand entities.

  The model has one block instead of twelve. It adds the complex product of the
  known entity and the relations to the input at MASK, the token in the place of
  the answer. It uses strong dropout on the input. The learning rate of the
  embeddings is ten times that of the other parameters.
  """
  config = _common()
  model, train = config.model, config.train
  model.num_layers = 1
  model.dropout = 0.1
  model.input_dropout = 0.5
  train.batch_size = 128
  train.num_epochs = 80.0
  train.learning_rate = 2e-3
  train.embedding_learning_rate_factor = 10.0
  train.target_mass = 0.9
  train.steps_per_call = 32
  return config


def factorization() -> ml_collections.ConfigDict:
  """Returns the recipe for graphs with tens of thousands of entities.

  The model has no blocks: it is ComplEx with the N3 penalty (Lacroix et al.
  2018), trained with Adagrad. A step only updates embeddings that its batch
  uses. In about an hour, `one_block_of_many_entities` can reach better results.
  """
  config = _common()
  _set_many_entities(config)
  model, train = config.model, config.train
  model.num_layers = 0
  model.dropout = 0.0
  model.input_norm = False
  model.embedding_stddev = 0.01
  model.composition_stddev = 0.01
  train.num_epochs = 20.0
  train.optimizer = 'adagrad'
  train.learning_rate = 0.1
  train.warmup_fraction = 0.0
  train.target_mass = 1.0
  train.n3_penalty = 0.05
  return config


def one_block_of_many_entities() -> ml_collections.ConfigDict:
  """Returns `one_block` with settings for tens of thousands of entities.

  It needs more time than `factorization`: about an hour for FB15k-237 on a CPU.
  """
  config = one_block()
  _set_many_entities(config)
  model, train = config.model, config.train
  model.output_dropout = 0.4
  train.num_epochs = 100.0
  train.learning_rate = 7e-4
  train.embedding_learning_rate_factor = 14.0
  return config


def paths() -> ml_collections.ConfigDict:
  """Returns the recipe for path queries on graphs with many entities.

  The model has no blocks. It compares the entities with the complex product of
  the known entity and all relations of the path. It is trained with Adagrad and
  with the N3 penalty on the entities. Every relation needs an inverse. For long
  trainings, set `train.walks_per_epoch`.
  """
  config = factorization()
  model, train = config.model, config.train
  model.composition_stddev = 1.0
  model.relation_directions = False
  model.invert_head_queries = True
  train.num_epochs = 2.0
  train.learning_rate = 0.2
  train.learning_rate_decay = 'none'
  train.n3_penalty = 0.05
  train.candidates = 2048
  train.validate_every_epochs = 0.5
  return config


def _set_many_entities(config: ml_collections.ConfigDict) -> None:
  """Makes a step fast, mainly by a softmax over a sample of the entities."""
  config.model.dtype = 'bfloat16'
  config.train.batch_size = 512
  config.train.candidates = 4096
  config.train.steps_per_call = 16


def _common() -> ml_collections.ConfigDict:
  config = config_lib.default_config()
  model, train = config.model, config.train
  model.composition = 'complex'
  model.relation_directions = True
  model.prediction_head = False
  model.embedding_stddev = 0.1
  model.kernel_stddev = 0.0
  train.rows = 'query'
  train.warmup_fraction = 0.05
  train.weight_decay = 0.0
  train.clip_norm = 0.0
  return config
