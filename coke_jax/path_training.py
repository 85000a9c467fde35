"""Creates the source of sampled walks, and counts training instances."""

import ml_collections

from coke_jax import config as config_lib
from coke_jax.data import adjacency, arrays, fresh_walks, walk_edges
from coke_jax.data import paths as paths_lib
from coke_jax.data import vocabulary as vocabulary_lib


def make_walks(
  config: ml_collections.ConfigDict, data: paths_lib.PathData
) -> fresh_walks.FreshWalks | None:
  """Returns a source of `train.walks_per_epoch` walks. For 0, returns None.

  Raises:
    config.ConfigError: there is no training path with one relation, or the
      relation of such a path has no inverse.
  """
  number = config.train.walks_per_epoch
  if not number:
    return None
  message = f'config.train.walks_per_epoch is {number}: expected 0, because '
  edges = data.train.single_edges()
  if not len(edges):
    raise config_lib.ConfigError(
      f'{message}there is no training path with one relation'
    )
  missing = data.inverse[edges[:, 1]] == vocabulary_lib.NO_RELATION
  if missing.any():
    label = data.vocabulary.relations[edges[missing.argmax(), 1]]
    raise config_lib.ConfigError(
      f'{message}relation {label!r} has no inverse in the data'
    )
  return fresh_walks.FreshWalks(
    walk_edges.WalkEdges(
      adjacency.from_triples(edges, data.vocabulary.num_entities, data.inverse)
    ),
    data.vocabulary,
    config.data.max_path_length,
    number,
    both_sides=not config.model.invert_head_queries,
  )


def instances_per_epoch(
  config: ml_collections.ConfigDict, data: arrays.DataSet
) -> int:
  """Returns the number of training instances (query and answer) in an epoch.

  Args:
    config: valid settings.
    data: the data set of the config.
  """
  if not isinstance(data, paths_lib.PathData):
    return 2 * len(data.train)
  longest, walks = config.data.max_path_length, config.train.walks_per_epoch
  given = data.train.up_to(1 if walks else longest)
  return 2 * len(given) + fresh_walks.num_walks(
    walks, longest, config.train.batch_size
  )
