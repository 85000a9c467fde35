"""Validation of settings."""

import math
from typing import Any

import ml_collections

from coke_jax import errors

KINDS = ('triples', 'paths', 'walks')
OPTIMIZERS = ('adam', 'adagrad')
DECAYS = ('linear', 'none')
ROWS = ('instance', 'query')
DTYPES = ('float32', 'bfloat16')
COMPOSITIONS = ('', 'complex', 'rotation')

# Settings that may change when a run continues. They affect the speed and the
# log of the run. They change the trained parameters only by rounding.
RUNTIME_FIELDS = (
  'train.checkpoint_every_minutes',
  'train.log_every_steps',
  'train.tensorboard',
  'evaluate.batch_size',
  'shard_vocabulary',
  'compilation_cache_dir',
)


class ConfigError(errors.CokeError, ValueError):
  """A setting or flag is not valid, or needs a package that is missing."""


def validate(config: ml_collections.ConfigDict) -> None:
  """Checks the value of every setting.

  Raises:
    ConfigError: a value is not valid. The message has one line per invalid
      field.
  """
  if not isinstance(config, ml_collections.ConfigDict):
    raise ConfigError(
      f'config is of type {type(config).__name__}: expected a ConfigDict of '
      'ml_collections'
    )
  flat, wrong = flatten(config), []

  def expect(field: str, holds: bool, expectation: str) -> None:
    if not holds:
      wrong.append(f'config.{field} is {flat[field]!r}: expected {expectation}')

  data, model, train = config.data, config.model, config.train
  for field, value in flat.items():
    if isinstance(value, str):
      # Python turns bytes of arguments that are not UTF-8 into surrogates.
      # Surrogates cannot be written to a file.
      text = value.encode(errors='ignore').decode()
      expect(field, value == text, 'text in UTF-8')
  for field, value in flat.items():
    if isinstance(value, float):
      expect(field, math.isfinite(value), 'a finite number')
  for field in (
    'data.walks_seed',
    'data.walks_per_train_triple',
    'data.walks_per_evaluation_triple',
    'train.weight_decay',
    'train.clip_norm',
    'train.validate_every_epochs',
    'train.early_stopping_validations',
    'train.checkpoint_every_minutes',
    'evaluate.batch_size',
  ):
    expect(field, flat[field] >= 0, 'at least 0')
  expect('model.num_layers', model.num_layers >= 0, 'at least 0')
  for field in ('num_members', 'hidden_size', 'feed_forward_size'):
    expect(f'model.{field}', model[field] >= 1, 'at least 1')
  for field in ('batch_size', 'max_answers_per_row', 'steps_per_call'):
    expect(f'train.{field}', train[field] >= 1, 'at least 1')
  expect('train.log_every_steps', train.log_every_steps >= 1, 'at least 1')
  for field in ('n3_penalty', 'dura_penalty'):
    expect(f'train.{field}', train[field] >= 0, 'at least 0')
    expect(
      f'train.{field}',
      train[field] == 0 or bool(model.composition),
      '0 unless model.composition is set',
    )
  expect('train.candidates', train.candidates >= 0, 'at least 0')
  shards = config.shard_vocabulary
  expect(
    'shard_vocabulary',
    not shards or model.num_members == 1,
    'False if model.num_members is above 1',
  )
  expect(
    'shard_vocabulary',
    not shards
    or train.n3_penalty == train.dura_penalty == 0
    or train.candidates > 0,
    'False if train.candidates is 0 and one of train.n3_penalty and '
    'train.dura_penalty is above 0',
  )
  expect('train.vocabulary_chunk', train.vocabulary_chunk >= -1, 'at least -1')
  for field in ('num_epochs', 'learning_rate'):
    expect(f'train.{field}', train[field] > 0, 'above 0')
  for field in ('delimiter', 'relation_delimiter', 'inverse_marker'):
    expect(f'data.{field}', bool(data[field]), 'at least one character')
  expect('data.name', bool(data.name), 'a name')
  expect('data.kind', data.kind in KINDS, f'one of {KINDS}')
  expect(
    'data.columns',
    sorted(data.columns.split()) == ['head', 'relation', 'tail'],
    "the words head, relation and tail in the order of the files' columns",
  )
  expect(
    'data.max_path_length',
    data.max_path_length >= 1
    and (data.kind != 'triples' or data.max_path_length == 1),
    "1 if data.kind is 'triples', otherwise at least 1",
  )
  expect(
    'model.invert_head_queries',
    not model.invert_head_queries or data.kind != 'triples',
    "False if data.kind is 'triples'",
  )
  expect(
    'train.walks_per_epoch',
    train.walks_per_epoch == 0
    or (train.walks_per_epoch > 0 and data.max_path_length > 1),
    '0 if data.max_path_length is 1, otherwise at least 0',
  )
  expect(
    'model.num_heads',
    model.num_heads >= 1 and model.hidden_size % model.num_heads == 0,
    f'a divisor of model.hidden_size ({model.hidden_size})',
  )
  for field in ('dropout', 'output_dropout'):
    expect(f'model.{field}', 0 <= model[field] < 1, f'0 <= {field} < 1')
  expect(
    'model.input_dropout',
    model.input_dropout < 1,
    '0 <= input_dropout < 1, or a negative number to use the value of '
    'model.dropout',
  )
  for field in ('embedding_stddev', 'composition_stddev'):
    expect(f'model.{field}', model[field] > 0, 'above 0')
  expect('model.kernel_stddev', model.kernel_stddev >= 0, 'at least 0')
  expect(
    'model.composition',
    model.composition in COMPOSITIONS,
    f'one of {COMPOSITIONS}',
  )
  expect(
    'model.hidden_size',
    model.hidden_size % 2 == 0 or not model.composition,
    "an even number if model.composition is 'complex' or 'rotation'",
  )
  expect(
    'train.embedding_learning_rate_factor',
    train.embedding_learning_rate_factor > 0,
    'above 0',
  )
  expect('model.dtype', model.dtype in DTYPES, f'one of {DTYPES}')
  expect('train.seed', 0 <= train.seed < 2**32, '0 to 2**32 - 1')
  expect('train.warmup_fraction', 0 <= train.warmup_fraction <= 1, '0 to 1')
  expect(
    'train.target_mass', 0 < train.target_mass <= 1, '0 < target_mass <= 1'
  )
  expect(
    'train.rare_answer_weight',
    0 < train.rare_answer_weight <= 1,
    '0 < rare_answer_weight <= 1',
  )
  expect(
    'train.optimizer', train.optimizer in OPTIMIZERS, f'one of {OPTIMIZERS}'
  )
  expect(
    'train.learning_rate_decay',
    train.learning_rate_decay in DECAYS,
    f'one of {DECAYS}',
  )
  expect('train.rows', train.rows in ROWS, f'one of {ROWS}')
  expect(
    'train.choose_by',
    train.choose_by.partition(' ')[0] in ('both', 'head', 'tail'),
    "'both', 'head' or 'tail', optionally followed by a space and a relation",
  )
  expect(
    'train.choose_by',
    train.choose_by == 'both' or data.kind == 'triples',
    "'both' unless data.kind is 'triples'",
  )
  expect(
    'train.early_stopping_validations',
    train.early_stopping_validations == 0 or train.validate_every_epochs > 0,
    '0 if train.validate_every_epochs is 0',
  )
  if wrong:
    raise ConfigError('\n'.join(wrong))


def differences(
  saved: ml_collections.ConfigDict, given: ml_collections.ConfigDict
) -> list[str]:
  """Returns an error message for each setting that differs.

  Args:
    saved: the settings of a run.
    given: the settings to compare. Fields in `RUNTIME_FIELDS` are ignored.
  """
  old, new = flatten(saved), flatten(given)
  return [
    f'{field} is {new.get(field)!r}: expected {old.get(field)!r}'
    for field in sorted(old.keys() | new.keys())
    if field not in RUNTIME_FIELDS and old.get(field) != new.get(field)
  ]


def flatten(config: ml_collections.ConfigDict) -> dict[str, Any]:
  """Returns a dict of all fields, such as {'train.batch_size': 512, ...}."""
  flat: dict[str, Any] = {}
  for key, value in config.items():
    if isinstance(value, ml_collections.ConfigDict):
      flat.update({f'{key}.{k}': v for k, v in flatten(value).items()})
    else:
      flat[key] = value
  return flat
