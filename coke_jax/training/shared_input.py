"""Sends the settings and data of process 0 to all processes, see `hosts`.

Only process 0 reads files, so other hosts need no copy of the files.
"""

import json
from typing import Any

import jax
import ml_collections
import numpy as np

from coke_jax import config as config_lib
from coke_jax import hosts, parallel
from coke_jax.data import arrays
from coke_jax.data import vocabulary as vocabulary_lib

_LABELS = 'labels'


def share(
  config: ml_collections.ConfigDict | None, data: arrays.DataSet | None
) -> tuple[ml_collections.ConfigDict, arrays.DataSet]:
  """Returns, in all processes, the settings and data of process 0.

  Args:
    config: the settings in process 0. Other processes ignore this argument.
    data: the data set in process 0. Other processes ignore this argument.
  """
  config = share_config(config)
  if hosts.num_processes() == 1:
    assert data is not None
    return config, data
  _connect_devices()
  name, shapes, packed = '', {}, {}
  if hosts.is_main():
    assert data is not None
    words = data.vocabulary
    labels = json.dumps([words.entities, words.relations]).encode()
    packed = {
      **arrays.to_arrays(data),
      _LABELS: np.frombuffer(labels, dtype=np.uint8),
    }
    shapes = {
      key: (array.dtype.str, array.shape) for key, array in packed.items()
    }
    name = data.name
  name, shapes = hosts.broadcast([name, shapes])
  if not hosts.is_main():
    packed = {
      key: np.empty(shape, dtype) for key, (dtype, shape) in shapes.items()
    }
  received: dict[str, Any] = {
    key: parallel.broadcast(packed[key]) for key in shapes
  }
  entities, relations = json.loads(received.pop(_LABELS).tobytes())
  words = vocabulary_lib.Vocabulary(tuple(entities), tuple(relations))
  return config, arrays.from_arrays(name, words, received)


def share_config(
  config: ml_collections.ConfigDict | None,
) -> ml_collections.ConfigDict:
  """Returns, in all processes, the settings of process 0.

  Args:
    config: the settings in process 0. Other processes ignore this argument.
  """
  if hosts.num_processes() == 1:
    assert config is not None
    return config
  own = config.to_dict() if hosts.is_main() and config is not None else None
  return config_lib.from_dict(hosts.broadcast(own))


def _connect_devices() -> None:
  """Connects the devices of all processes.

  Gloo connects the devices in the first collective operation, and waits for at
  most 30 s. To compile a train step, one process may need 30 s more than
  another. So the devices are connected before the compilation.
  """
  hosts.wait_for_all()
  jax.block_until_ready(parallel.start_maximum(np.zeros(1, np.int32)))
