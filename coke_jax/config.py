"""Every setting, with its default and a comment; and what is a valid one."""

import inspect
import math
import re

import ml_collections

from coke_jax import errors


class ConfigError(errors.CokeError, ValueError):
  """A setting that cannot be, with what was expected."""


KINDS = ('triples', 'paths', 'walks')
ROWS = ('instance', 'query')
DTYPES = ('float32', 'bfloat16')

# Fields that may change between two runs of one work folder: they decide how
# fast a run goes and what it says, not which parameters come out.
RUNTIME_FIELDS = (
  'train.checkpoint_every_minutes',
  'train.log_every_steps',
  'train.tensorboard',
  'evaluate.batch_size',
  'compilation_cache_dir',
)


def default_config() -> ml_collections.ConfigDict:
  """The paper's setting for link prediction, on the graph that ships with us.

  Files in `configs/` start from this and change what differs.
  """
  config = ml_collections.ConfigDict()

  config.data = data = ml_collections.ConfigDict()
  # A known data set, or any name for your own graph in `data.dir`.
  data.name = 'countries'
  # What the files hold and what is learned from them. 'triples': link
  # prediction on triples. 'paths': path queries on files of paths. 'walks':
  # path queries on paths sampled from files of triples by random walks.
  data.kind = 'triples'
  # Folder with the train, valid and test files. Empty: $COKE_DATA_DIR/<name>,
  # then the user cache, then a download.
  data.dir = ''
  # The order of head, relation and tail on a line.
  data.columns = 'head relation tail'
  # The text between two columns.
  data.delimiter = '\t'
  # Whether the first line of each file names the columns (triples).
  data.header = False
  # The text between two relations of a path (paths, walks).
  data.relation_delimiter = ','
  # The text before a relation that is walked against its direction (paths,
  # walks).
  data.inverse_marker = '**'
  # Relations in the longest path to train on (paths, walks); triples: 1.
  # Evaluation asks the paths of all lengths that the files hold.
  data.max_path_length = 1
  # Decides the sampled paths (walks).
  data.walks_seed = 0
  # Walks for each training triple (walks); repeated ones are dropped.
  data.walks_per_train_triple = 20
  # Walks for each triple of valid and of test (walks); likewise.
  data.walks_per_evaluation_triple = 4

  config.model = model = ml_collections.ConfigDict()
  # Transformer blocks (paper: L).
  model.num_layers = 12
  # Width of embeddings and hidden states (paper: D).
  model.hidden_size = 256
  # Attention heads (paper: A); divides the hidden size.
  model.num_heads = 4
  # Width inside the feed-forward layers (paper: 2 D).
  model.feed_forward_size = 512
  # Dropout rate on embeddings, attention weights and both sublayer outputs.
  model.dropout = 0.1
  # Operands of the products with weights and embeddings: float32, or bfloat16
  # (accumulated in float32). Parameters, attention scores, layer norms and
  # softmaxes are float32 either way.
  model.dtype = 'float32'
  # Recompute blocks in the backward pass: less memory, about a third slower.
  model.remat = False

  config.train = train = ml_collections.ConfigDict()
  # Passes over the training set; each asks for both ends of every triple or
  # path once. May be a fraction.
  train.num_epochs = 500.0
  # Rows in a batch, over all devices together.
  train.batch_size = 512
  # Peak of the learning rate: linear warm-up, then linear decay to 0.
  train.learning_rate = 5e-4
  # The part of all steps in which the learning rate rises.
  train.warmup_fraction = 0.1
  # Probability mass ON the target entity (the paper's epsilon); the rest is
  # spread evenly over all other entities. 1 is the plain cross-entropy.
  train.target_mass = 0.8
  # Decoupled weight decay on all parameters, scaled by the learning rate.
  train.weight_decay = 0.01
  # Gradients are scaled down to this global norm; 0: never.
  train.clip_norm = 1.0
  # What a row of a batch is. 'instance': a masked sequence with one answer, as
  # in the paper. 'query': a distinct masked sequence with all its training
  # answers at the cost of one encoder pass; an epoch has the same gradient in
  # fewer, larger steps of the same cost (FB15k-237: 151,199 rows, 296 steps of
  # 512, instead of 544,230 rows and 1,063 steps).
  train.rows = 'instance'
  # Rows with more answers than this are cut into several ('query' only).
  train.max_answers_per_row = 64
  # The weight of a distinct query in the loss is its number of training answers
  # to this power ('query' only). 1: every answer weighs the same, as in the
  # paper; 0: every query does, however many answers it has.
  train.query_weight_power = 1.0
  # Steps that the devices do at a call, without the host: less overhead on all
  # devices (12 blocks on a CPU: 15 % of the time), but a signal to stop is only
  # answered between calls. Path queries: also how many batches of one length
  # follow each other.
  train.steps_per_call = 8
  # Decides initial parameters, the order of the data and dropout.
  train.seed = 0
  # Rank the valid split after every n epochs and at the end, and keep the best
  # checkpoint (by filtered MRR, paths: by mean quantile). May be a fraction; 0:
  # only at the end.
  train.validate_every_epochs = 10.0
  # Stop when this many validations in a row brought nothing better; 0: never.
  train.early_stopping_validations = 0
  # Besides those at validations, a checkpoint after every n minutes.
  train.checkpoint_every_minutes = 10.0
  # Steps between two lines in metrics.jsonl; the device is only waited for
  # then.
  train.log_every_steps = 100
  # Also write TensorBoard events; needs `pip install '.[tensorboard]'`.
  train.tensorboard = False

  config.evaluate = evaluate = ml_collections.ConfigDict()
  # Queries ranked at a time, over all devices together; memory grows with this
  # times the number of entities. 0: as many as keep the scores below 64 MiB a
  # device, at most 1024.
  evaluate.batch_size = 0

  # Folder of jax's persistent compilation cache: the second start of a run
  # skips most of the compile time. Empty: off.
  config.compilation_cache_dir = ''
  return config.lock()  # a mistyped field is an error, also in config files


def describe() -> list[tuple[str, str, str]]:
  """(field, default, comment) of every field, as `default_config` says it."""
  fields, comment = [], []
  for line in inspect.getsource(default_config).splitlines():
    line = line.strip()
    if line.startswith('# '):
      comment.append(line[2:])
      continue
    assigned = re.fullmatch(r'(\w+)\.(\w+) = (.+)', line)
    if assigned and comment:
      group, name, default = assigned.groups()
      field = name if group == 'config' else f'{group}.{name}'
      fields.append((field, default, ' '.join(comment)))
    comment = []
  return fields


def validate(config: ml_collections.ConfigDict) -> None:
  """Checks every value.

  Raises:
    ConfigError: names each wrong field, its value and what was expected.
  """
  wrong: list[str] = []

  def expect(field: str, holds: bool, expectation: str) -> None:
    if not holds:
      value = flatten(config)[field]
      wrong.append(f'config.{field} is {value!r}: expected {expectation}')

  data, model, train = config.data, config.model, config.train
  for field, value in flatten(config).items():
    if isinstance(value, float):
      expect(field, math.isfinite(value), 'a finite number')
  columns = sorted(data.columns.split())
  expect('data.name', bool(data.name), 'a name')
  expect(
    'data.columns',
    columns == ['head', 'relation', 'tail'],
    "head, relation and tail in the files' order, between spaces",
  )
  for field in ('delimiter', 'relation_delimiter', 'inverse_marker'):
    expect(f'data.{field}', bool(data[field]), 'at least one character')
  for field in ('num_layers', 'hidden_size', 'num_heads', 'feed_forward_size'):
    expect(f'model.{field}', model[field] >= 1, 'at least 1')
  expect(
    'model.num_heads',
    model.num_heads >= 1 and model.hidden_size % model.num_heads == 0,
    f'a divisor of model.hidden_size ({model.hidden_size})',
  )
  expect('model.dropout', 0 <= model.dropout < 1, '0 <= dropout < 1')
  expect('model.dtype', model.dtype in DTYPES, f'one of {DTYPES}')
  expect('data.kind', data.kind in KINDS, f'one of {KINDS}')
  expect(
    'data.max_path_length',
    data.max_path_length >= 1
    and (data.kind != 'triples' or data.max_path_length == 1),
    "1 for data.kind 'triples', else at least 1",
  )
  for field in ('walks_per_train_triple', 'walks_per_evaluation_triple'):
    expect(f'data.{field}', data[field] >= 0, 'at least 0')
  expect('train.num_epochs', train.num_epochs > 0, 'above 0')
  for field in ('batch_size', 'max_answers_per_row', 'steps_per_call'):
    expect(f'train.{field}', train[field] >= 1, 'at least 1')
  expect('train.log_every_steps', train.log_every_steps >= 1, 'at least 1')
  expect('train.learning_rate', train.learning_rate > 0, 'above 0')
  expect('train.warmup_fraction', 0 <= train.warmup_fraction <= 1, '0 to 1')
  expect(
    'train.target_mass',
    0 < train.target_mass <= 1,
    'the mass on the target entity, above 0 and at most 1',
  )
  expect('train.rows', train.rows in ROWS, f'one of {ROWS}')
  expect(
    'train.query_weight_power',
    train.rows == 'query' or train.query_weight_power == 1,
    "1 unless train.rows is 'query'",
  )
  for field in (
    'weight_decay',
    'clip_norm',
    'validate_every_epochs',
    'early_stopping_validations',
    'checkpoint_every_minutes',
  ):
    expect(f'train.{field}', train[field] >= 0, 'at least 0')
  expect('train.seed', 0 <= train.seed < 2**32, '0 to 2**32 - 1')
  expect('data.walks_seed', data.walks_seed >= 0, 'at least 0')
  expect(
    'train.early_stopping_validations',
    train.early_stopping_validations == 0 or train.validate_every_epochs > 0,
    '0 when train.validate_every_epochs is 0: nothing could stop early',
  )
  expect('evaluate.batch_size', config.evaluate.batch_size >= 0, 'at least 0')
  if wrong:
    raise ConfigError('\n'.join(wrong))


def flatten(config: ml_collections.ConfigDict) -> dict[str, object]:
  """The fields by their full name: {'train.batch_size': 512, ...}."""
  flat: dict[str, object] = {}
  for key, value in config.items():
    if isinstance(value, ml_collections.ConfigDict):
      flat.update({f'{key}.{k}': v for k, v in flatten(value).items()})
    else:
      flat[key] = value
  return flat


def from_dict(saved: dict) -> ml_collections.ConfigDict:
  """A config from its JSON form; fields added since then get their default.

  Raises:
    ConfigError: a field that no config has, or of the wrong type.
  """
  config = default_config()
  try:
    config.update(saved)
    validate(config)
  except (KeyError, AttributeError, TypeError) as error:
    raise ConfigError(f'not a config of this version: {error}') from error
  return config


def differences(
  saved: ml_collections.ConfigDict, given: ml_collections.ConfigDict
) -> list[str]:
  """Fields, other than RUNTIME_FIELDS, in which two configs differ."""
  old, new = flatten(saved), flatten(given)
  return [
    f'{field}: {old.get(field)!r} there, {new.get(field)!r} given'
    for field in sorted(old.keys() | new.keys())
    if field not in RUNTIME_FIELDS and old.get(field) != new.get(field)
  ]
