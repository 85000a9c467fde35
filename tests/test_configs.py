"""Checks every file of configs/, and the validation of configs."""

import importlib.util
import pathlib

import jax
import pytest

from coke_jax import config as config_lib
from coke_jax import tasks
from coke_jax.data import benchmarks, vocabulary
from coke_jax.model import parameters

FOLDER = pathlib.Path(__file__).resolve().parents[1] / 'configs'

# The data set of each config, and its number of parameters in millions. The
# numbers of fb15k, fb15k237, wn18 and wn18rr are those of the paper.
CONFIGS = {
  'codex_m': ('CoDEx-M', 9.93),
  'codex_s': ('CoDEx-S', 6.57),
  'countries': ('countries', 4.09),
  'countries_paths': ('countries', 1.04),
  'example': ('countries', 0.49),
  'fb15k': ('FB15k', 10.58),
  'fb15k237': ('FB15k-237', 10.19),
  'fb15k237_cpu': ('FB15k-237', 4.51),
  'kinship': ('Kinship', 2.32),
  'nations': ('Nations', 2.36),
  'own_graph': ('mine', 1.09),
  'own_large_graph': ('mine', 0.57),
  'pathquery_fb': ('PathQueryFB', 22.52),
  'pathquery_fb_cpu': ('PathQueryFB', 38.54),
  'pathquery_wn': ('PathQueryWN', 13.14),
  'pathquery_wn_cpu': ('PathQueryWN', 9.93),
  'umls': ('UMLS', 4.89),
  'wikidata5m': ('Wikidata5M', 593.11),
  'wn18': ('WN18', 16.92),
  'wn18rr': ('WN18RR', 16.92),
  'wn18rr_cpu': ('WN18RR', 42.06),
}
# The number of blocks, dropout, target mass and number of epochs of a config.
# The values for path queries are from the authors' implementation. All other
# values are from the paper.
PUBLISHED = {
  'fb15k': (12, 0.2, 0.8, 400),
  'wn18': (12, 0.2, 0.2, 600),
  'fb15k237': (12, 0.5, 0.25, 500),
  'wn18rr': (12, 0.3, 0.15, 1000),
  'pathquery_wn': (6, 0.1, 1.0, 5),
  'pathquery_fb': (6, 0.1, 1.0, 10),
}


def load(name):
  spec = importlib.util.spec_from_file_location(name, FOLDER / f'{name}.py')
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  assert f'--config=configs/{name}.py' in module.__doc__
  return module.get_config()


def test_every_config_is_listed():
  assert {path.stem for path in FOLDER.glob('*.py')} == set(CONFIGS)


@pytest.mark.parametrize('name', sorted(CONFIGS))
def test_config(name):
  config = load(name)
  config_lib.validate(config)
  assert config_lib.from_dict(config.to_dict()).to_dict() == config.to_dict()
  dataset, millions = CONFIGS[name]
  assert config.data.name == dataset
  # Configs for users' own graphs are tested with the sizes of CoDEx-S.
  published = benchmarks.BENCHMARKS['CoDEx-S' if dataset == 'mine' else dataset]
  relations = [f'r{index}' for index in range(published.relations)]
  # The published number of relations of path data includes the inverses.
  if config.data.kind == 'paths':
    relations = relations[::2]
  if config.data.kind != 'triples':
    relations += [f'**{label}' for label in relations]
  labels = vocabulary.Vocabulary(
    ('entity',) * published.entities, tuple(relations)
  )
  coke = tasks.build_model(config, labels, config.data.max_path_length + 2)
  shapes = jax.eval_shape(lambda: parameters.init_params(coke, 0))
  assert round(parameters.count_parameters(shapes) / 1e6, 2) == millions


@pytest.mark.parametrize('name', sorted(PUBLISHED))
def test_published_settings(name):
  config = load(name)
  assert PUBLISHED[name] == (
    config.model.num_layers,
    config.model.dropout,
    config.train.target_mass,
    config.train.num_epochs,
  )
  assert config.model.hidden_size == 256
  assert config.model.num_heads == 4
  assert config.model.feed_forward_size == 512
  assert config.train.rows == 'instance'
  paths = config.data.kind == 'paths'
  assert config.train.batch_size == (2048 if paths else 512)
  assert config.train.learning_rate == (3e-4 if paths else 5e-4)


def test_the_error_lists_all_wrong_values():
  config = config_lib.default_config()
  config.train.target_mass = 0.0
  config.model.num_heads = 3
  config.data.max_path_length = 2
  with pytest.raises(config_lib.ConfigError) as caught:
    config_lib.validate(config)
  for part in ('target_mass is 0.0', 'num_heads is 3', 'max_path_length is 2'):
    assert part in str(caught.value)


def test_every_field_is_described():
  described = config_lib.describe()
  assert {field for field, _, _ in described} == set(
    config_lib.flatten(config_lib.default_config())
  )
  assert all(len(comment) > 20 for _, _, comment in described)


@pytest.mark.parametrize(
  ('field', 'value'),
  [
    ('train.num_epochs', float('inf')),
    ('train.learning_rate', float('nan')),
    ('train.weight_decay', float('inf')),
    ('train.seed', -1),
    ('train.seed', 2**32),
    ('data.walks_seed', -1),
    ('data.inverse_marker', ''),
    ('data.relation_delimiter', ''),
    ('train.clip_norm', -1.0),
    ('train.warmup_fraction', 1.5),
    ('model.dropout', 1.0),
    ('model.dtype', 'float16'),
    ('evaluate.batch_size', -1),
    ('train.choose_by', ''),
    ('train.choose_by', 'side'),
    ('train.choose_by', 'tails'),
    ('data.name', 'a\udcff'),
  ],
)
def test_a_wrong_value_is_an_error(field, value):
  config = config_lib.default_config()
  config.update_from_flattened_dict({field: value})
  with pytest.raises(config_lib.ConfigError, match=f'config.{field} is'):
    config_lib.validate(config)


def test_checkpoints_for_paths_are_chosen_by_all_queries():
  config = config_lib.default_config()
  for chosen in ('both', 'head', 'tail', 'both r', 'tail a relation'):
    config.train.choose_by = chosen
    config_lib.validate(config)
  config.data.kind = 'paths'
  with pytest.raises(config_lib.ConfigError, match='choose_by is'):
    config_lib.validate(config)


def test_early_stopping_needs_validations():
  config = config_lib.default_config()
  config.train.early_stopping_validations = 3
  config_lib.validate(config)
  config.train.validate_every_epochs = 0
  with pytest.raises(
    config_lib.ConfigError, match='validate_every_epochs is 0'
  ):
    config_lib.validate(config)


def test_a_mistyped_field_in_a_config_file_is_an_error():
  config = config_lib.default_config()
  with pytest.raises(AttributeError, match='num_epoch'):
    config.train.num_epoch = 2
