"""Creates the data set, task and model that a config describes.

There are two tasks: link prediction on triples, and answering path queries. A
task provides the data set, the training queries and the evaluation protocol.
"""

import logging
import time
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import ml_collections

from coke_jax import config as config_lib
from coke_jax import path_training
from coke_jax.data import (
  arrays,
  benchmarks,
  fresh_walks,
  graph_cache,
  inverses,
  label_checks,
  path_cache,
  queries,
  source_files,
  triple_files,
  walks,
)
from coke_jax.data import graph as graph_lib
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib
from coke_jax.evaluate import link_prediction, path_queries
from coke_jax.evaluate import ranker as ranker_lib
from coke_jax.model import encoder, ensemble
from coke_jax.shards import placement


class Task(Protocol):
  """A learning task: `LinkPrediction` or `PathQueries`."""

  @property
  def data(self) -> arrays.DataSet:
    """The labels and splits."""

  @property
  def max_length(self) -> int:
    """Maximum number of tokens in a sequence of training or evaluation."""

  def training_queries(self) -> queries.Queries:
    """Returns the training queries. Each query has one answer."""

  @property
  def walks(self) -> fresh_walks.FreshWalks | None:
    """The source of the walks that are sampled in each epoch, or None."""

  def evaluate(
    self,
    ranker: ranker_lib.Ranker,
    params: Any,
    split: str,
    *,
    choosing: bool,
    progress: str = '',
  ) -> dict[str, Any]:
    """Evaluates a split and returns the content of `results.json`.

    `LinkPrediction.evaluate` describes the arguments.
    """

  def choosing_metric(self, results: dict[str, Any]) -> float:
    """Returns the metric for choosing the best checkpoint; higher is better."""

  def describe(self, results: dict[str, Any]) -> str:
    """Formats the main metrics of a validation as one line."""

  def format_table(self, results: dict[str, Any]) -> str:
    """Formats the results as a table."""


def make_task(config: ml_collections.ConfigDict, data: arrays.DataSet) -> Task:
  """Creates the task of a config and its data set.

  Raises:
    config.ConfigError: `train.choose_by` names a relation that is not in the
      valid split, or `path_training.make_walks` fails.
  """
  if isinstance(data, paths_lib.PathData):
    return path_queries.PathQueries(
      data, config.data.max_path_length, path_training.make_walks(config, data)
    )
  side, _, relation = config.train.choose_by.partition(' ')
  index = data.vocabulary.relation_ids.get(relation, -1)
  if relation and not (data.valid[:, 1] == index).any():
    raise config_lib.ConfigError(
      f'config.train.choose_by is {config.train.choose_by!r}: expected a '
      'relation of the valid split'
    )
  return link_prediction.LinkPrediction(data, side=side, relation=relation)


def read_data(config: ml_collections.ConfigDict) -> arrays.DataSet:
  """Finds and reads the data set of a config, and prints its counts.

  Raises:
    text_files.DataError: the data set cannot be found or read, or it is a
      benchmark whose counts differ from the published ones.
  """
  settings = config.data
  folder = benchmarks.locate(settings.name, settings.dir or None)
  started = time.monotonic()
  data: arrays.DataSet
  if settings.kind == 'paths':
    data = path_cache.read_paths_cached(
      folder, settings.name, path_format(config)
    )
  else:
    data = graph_cache.read_graph_cached(
      folder,
      settings.name,
      triple_files.TripleFormat(
        tuple(settings.columns.split()), settings.delimiter, settings.header
      ),
    )
  benchmarks.check_counts(
    settings.name,
    entities=data.vocabulary.num_entities,
    relations=data.vocabulary.num_relations,
    **{split: len(data.split(split)) for split in graph_lib.SPLITS},
  )
  seconds = time.monotonic() - started
  print(f'read {folder} in {seconds:.1f} s\n{data.summary()}')
  delimiter = '' if settings.kind == 'triples' else settings.relation_delimiter
  for warning in label_checks.warnings(data, relation_delimiter=delimiter):
    logging.warning('%s: %s', folder, warning)
  if settings.kind == 'walks':
    data = walks.sample_path_data(
      data,  # type: ignore[arg-type]  # This is a graph.
      seed=settings.walks_seed,
      longest=max(settings.max_path_length, 2),
      walks_per_train_triple=settings.walks_per_train_triple,
      walks_per_evaluation_triple=settings.walks_per_evaluation_triple,
      inverse_marker=settings.inverse_marker,
    )
    print(f'sampled paths from it\n{data.summary()}')
  return data


def data_sources(config: ml_collections.ConfigDict) -> source_files.Sources:
  """Returns the SHA-256 of each data file by role, see `source_files.find`.

  Raises:
    text_files.DataError: the data set cannot be found or read.
  """
  settings = config.data
  folder = benchmarks.locate(settings.name, settings.dir or None)
  paths = settings.kind == 'paths'
  files = source_files.find(folder, paths=paths)
  return source_files.Sources(source_files.digests(files))


def source_changes(
  config: ml_collections.ConfigDict, sources: source_files.Sources
) -> list[str]:
  """Describes which data files of a run have changed.

  Args:
    config: the settings of the run, which name the folder of the files. They
      are not used if `sources` contains paths.
    sources: the files from which the data of the run were read.

  Returns:
    One line for each changed file. The list is empty if a file is missing or
    unreadable.
  """
  if not sources.digests:
    return []
  if sources.paths:
    return source_files.changes_of_paths(sources)
  settings = config.data
  return source_files.changes(
    settings.name,
    settings.dir or None,
    paths=settings.kind == 'paths',
    expected=sources.digests,
  )


def path_format(config: ml_collections.ConfigDict) -> paths_lib.PathFormat:
  """Returns the format of path files that a config describes."""
  settings = config.data
  return paths_lib.PathFormat(
    settings.delimiter, settings.relation_delimiter, settings.inverse_marker
  )


def build_model(
  config: ml_collections.ConfigDict,
  vocabulary: vocabulary_lib.Vocabulary,
  max_length: int = 3,
) -> ensemble.Encoder:
  """Builds the encoder or ensemble that a config describes, without parameters.

  Args:
    config: valid settings.
    vocabulary: the labels of the data set.
    max_length: maximum number of tokens in a sequence, see `Task.max_length`.
      Default: 3, the length of triples.

  Raises:
    config.ConfigError: JAX computes with 64 bits; or a relation has no inverse,
      and `model.invert_head_queries` is True.
  """
  if jax.config.read('jax_enable_x64'):
    raise config_lib.ConfigError(
      'jax_enable_x64 (JAX_ENABLE_X64) is on: expected off, because models '
      'have parameters of 32 bits'
    )
  settings = config.model
  member = encoder.CoKE(
    num_entities=vocabulary.num_entities,
    num_tokens=vocabulary.num_tokens,
    pad_id=vocabulary.pad_id,
    max_length=max_length,
    num_layers=settings.num_layers,
    hidden_size=settings.hidden_size,
    num_heads=settings.num_heads,
    feed_forward_size=settings.feed_forward_size,
    dropout=settings.dropout,
    dtype=jnp.dtype(settings.dtype),
    remat=settings.remat,
    composition=settings.composition,
    relation_directions=settings.relation_directions,
    inverse=_inverse(config, vocabulary),
    prediction_head=settings.prediction_head,
    input_norm=settings.input_norm,
    input_dropout=(
      settings.dropout if settings.input_dropout < 0 else settings.input_dropout
    ),
    output_dropout=settings.output_dropout,
    embedding_stddev=settings.embedding_stddev,
    composition_stddev=settings.composition_stddev,
    kernel_stddev=settings.kernel_stddev,
  )
  if settings.num_members == 1:
    return member
  return ensemble.Ensemble(member, settings.num_members)


def _inverse(
  config: ml_collections.ConfigDict, vocabulary: vocabulary_lib.Vocabulary
) -> tuple[int, ...]:
  """Returns the inverse of each relation, or () if the model needs none."""
  if not config.model.invert_head_queries:
    return ()
  marker = config.data.inverse_marker
  inverse = inverses.inverse_relations(vocabulary, marker)
  missing = inverse == vocabulary_lib.NO_RELATION
  if missing.any():
    label = vocabulary.relations[missing.argmax()]
    raise config_lib.ConfigError(
      'config.model.invert_head_queries is True: expected False, because there '
      f'is no relation {inverses.invert(label, marker)!r}, the inverse of '
      f'{label!r}'
    )
  return tuple(inverse.tolist())


def build_placement(
  config: ml_collections.ConfigDict, model: ensemble.Encoder
) -> placement.Placement:
  """Returns the distribution of a model's parameters over the devices.

  Args:
    config: valid settings.
    model: the encoder that the config describes.
  """
  return placement.make(model, cut=config.shard_vocabulary)
